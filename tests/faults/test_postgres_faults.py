"""PostgreSQL that dies under load, and connections that break in the middle of a transaction."""

from collections.abc import Iterator

import pytest

import holdfast
from holdfast.testing.faults.processes import writing
from holdfast.testing.faults.proxy import Side, at_request, line_to
from holdfast.testing.faults.verification import verify
from holdfast.testing.faults.workload import SHAPES, Append, Ledger, attempt, retry_unanswered
from holdfast.testing.faults.writer import Orders
from holdfast.testing.postgres import PostgresServer, postgres_server

BATCH = 1


@pytest.fixture
def mortal() -> Iterator[PostgresServer]:
    """A server of one's own, as others would not like to see theirs die."""
    with postgres_server() as server:
        yield server


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("side", ["before", "after"])
def test_a_connection_cut_at_any_request_of_an_append_loses_and_doubles_nothing(
    postgres: PostgresServer, side: Side, keyed: bool
) -> None:
    target, ledger = postgres.new_database(), Ledger()
    with line_to(target) as (through, line), holdfast.connect(through) as client:
        for request in range(1, 60):
            line.cut(at_request(request), side)
            attempt(client, Append("chat", "writer", BATCH + request * len(SHAPES), keyed), ledger.note)
            if not line.mend():
                break
            retry_unanswered(client, ledger)
    assert request > 8
    assert len(ledger.acknowledged) > 8
    verify(target, ledger)


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_connection_cut_before_the_commit_is_not_even_noticed(postgres: PostgresServer, side: Side) -> None:
    target, ledger = postgres.new_database(), Ledger()
    with line_to(target) as (through, line), holdfast.connect(through) as client:
        line.cut(lambda request: b"INSERT INTO messages" in request, side)
        assert attempt(client, Append("chat", "writer", BATCH), ledger.note)
        assert line.mend()
    verify(target, ledger)


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_connection_cut_at_the_commit_leaves_the_outcome_unknown_until_the_retry(
    postgres: PostgresServer, side: Side
) -> None:
    target, ledger = postgres.new_database(), Ledger()
    with line_to(target) as (through, line), holdfast.connect(through) as client:
        line.cut(lambda request: b"COMMIT\0" in request, side)  # a statement ends with NUL; BEGIN says COMMITTED
        assert not attempt(client, Append("chat", "writer", BATCH, keyed=True), ledger.note)
        assert not ledger.refused()
        retry_unanswered(client, ledger)
    assert ledger.acknowledged["writern1"].seq == 3
    verify(target, ledger)


def test_a_server_killed_and_restarted_under_load_loses_and_doubles_nothing(mortal: PostgresServer) -> None:
    ledger = Ledger()
    target = mortal.new_database()
    orders = {
        name: Orders(target=target, writer=name, sessions=["shared", name], threads=3, keyed=name == "careful")
        for name in ("careful", "plain")
    }
    with writing(ledger, orders["careful"]) as careful, writing(ledger, orders["plain"]) as plain:
        careful.wait_for(acknowledged=30)
        plain.wait_for(acknowledged=30)
        mortal.kill()
        mortal.restart()
        careful.wait_for(acknowledged=60)
        plain.wait_for(acknowledged=60)
        careful.kill()
        plain.kill()
    with holdfast.connect(target) as client:
        retry_unanswered(client, ledger)
    verify(target, ledger)
