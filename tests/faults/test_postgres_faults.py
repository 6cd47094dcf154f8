"""A PostgreSQL server that is killed under load, and connections that are cut during a transaction."""

from collections.abc import Iterator

import pytest

import holdfast
from holdfast.testing.faults.processes import run_writer
from holdfast.testing.faults.proxy import Side, nth_message, proxy_to
from holdfast.testing.faults.verification import verify
from holdfast.testing.faults.workload import APPEND_KINDS, Append, AppendLog, attempt, retry_unacknowledged
from holdfast.testing.faults.writer import WriterOptions
from holdfast.testing.postgres import PostgresServer, postgres_server

BATCH = 1
"""The index in `APPEND_KINDS` of a batch of three messages, and the number of an append of this kind."""


@pytest.fixture
def killable_postgres() -> Iterator[PostgresServer]:
    """A server for one test, because killing the shared one would break other tests."""
    with postgres_server() as server:
        yield server


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("side", ["before", "after"])
def test_a_connection_cut_at_any_message_of_an_append_loses_and_duplicates_nothing(
    postgres: PostgresServer, side: Side, keyed: bool
) -> None:
    target, append_log = postgres.new_database(), AppendLog()
    with proxy_to(target) as (proxy_url, proxy), holdfast.connect(proxy_url) as client:
        for message in range(1, 100):
            proxy.cut(nth_message(message), side)
            attempt(client, Append("chat", "writer", BATCH + message * len(APPEND_KINDS), keyed), append_log.record)
            if not proxy.cancel_cut():
                break
            retry_unacknowledged(client, append_log)
    assert message > 30
    assert len(append_log.acknowledged) > 10
    verify(target, append_log)


@pytest.mark.parametrize("side", ["before", "after"])
def test_an_append_is_retried_if_the_connection_is_cut_before_its_commit(postgres: PostgresServer, side: Side) -> None:
    target, append_log = postgres.new_database(), AppendLog()
    with proxy_to(target) as (proxy_url, proxy), holdfast.connect(proxy_url) as client:
        proxy.cut(lambda message: b"FOR NO KEY UPDATE" in message, side)
        assert attempt(client, Append("chat", "writer", BATCH), append_log.record)
        assert proxy.cancel_cut()
    verify(target, append_log)


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_connection_cut_at_the_commit_leaves_the_result_unknown_until_the_retry(
    postgres: PostgresServer, side: Side
) -> None:
    target, append_log = postgres.new_database(), AppendLog()
    with proxy_to(target) as (proxy_url, proxy), holdfast.connect(proxy_url) as client:
        client.whoami()  # reads the internal id of the user, in a transaction of its own
        proxy.cut(lambda message: b"COMMIT\0" in message, side)  # not BEGIN, which contains READ COMMITTED
        assert not attempt(client, Append("chat", "writer", BATCH, keyed=True), append_log.record)
        assert not append_log.not_written()
        retry_unacknowledged(client, append_log)
    assert append_log.acknowledged["writern1"].seq == 3
    verify(target, append_log)


def test_a_server_killed_and_restarted_under_load_loses_and_duplicates_nothing(
    killable_postgres: PostgresServer,
) -> None:
    append_log = AppendLog()
    target = killable_postgres.new_database()
    options = {
        name: WriterOptions(target=target, writer=name, sessions=["shared", name], threads=3, keyed=name == "careful")
        for name in ("careful", "plain")
    }
    with run_writer(append_log, options["careful"]) as careful, run_writer(append_log, options["plain"]) as plain:
        careful.wait_for(acknowledged=30)
        plain.wait_for(acknowledged=30)
        killable_postgres.kill()
        killable_postgres.restart()
        careful.wait_for(acknowledged=60)
        plain.wait_for(acknowledged=60)
        careful.kill()
        plain.kill()
    with holdfast.connect(target) as client:
        retry_unacknowledged(client, append_log)
    verify(target, append_log)
