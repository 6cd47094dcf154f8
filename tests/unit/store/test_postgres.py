"""Behaviour specific to the PostgreSQL driver."""

import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from random import Random
from typing import Any

import psycopg
import pytest

import holdfast
from holdfast import Settings, ToolPart
from holdfast.client.local import LocalTransport
from holdfast.errors import UnavailableError
from holdfast.store.database import EVERY_ACCOUNT, Submission, Tx
from holdfast.store.drivers.postgres.database import PostgresDatabase
from holdfast.testing.faults.proxy import Proxy, proxy_to
from holdfast.testing.postgres import PostgresServer

WAIT_SECONDS = 20


def test_defaults_of_the_server_have_no_effect(postgres: PostgresServer) -> None:
    url = postgres.new_database()
    with psycopg.connect(postgres.url(), autocommit=True) as operator:
        role = url.split("//")[1].split("@")[0]
        for setting, value in (
            ("default_transaction_isolation", "'repeatable read'"),
            ("default_transaction_read_only", "on"),
            ("synchronous_commit", "off"),
        ):
            operator.execute(f"ALTER ROLE {role} SET {setting} = {value}".encode())
    with holdfast.connect(url) as client:
        with ThreadPoolExecutor(8) as threads:
            added = list(threads.map(lambda _: client.add_message("s", "user", "hi"), range(40)))
        assert sorted(result.seq for result in added) == list(range(1, 41))
    database = PostgresDatabase(url)
    assert database.write("default", lambda tx: tx.one("SHOW synchronous_commit")) == ("on",)
    database.close()


def test_appends_that_share_large_outputs_do_not_deadlock(postgres: PostgresServer) -> None:
    outputs = [f"{n}" * 10_000 for n in range(4)]
    with holdfast.connect(postgres.new_database()) as client:

        def add(number: int) -> int:
            shuffled = Random(number).sample(outputs, 4)
            return client.add_message(
                f"s{number % 8}", "tool", parts=[ToolPart(output=output) for output in shuffled]
            ).added

        with ThreadPoolExecutor(8) as threads:
            assert sum(threads.map(add, range(80))) == 80


def test_a_user_without_privileges_gets_an_explanation(postgres: PostgresServer) -> None:
    url = postgres.new_database()
    with psycopg.connect(postgres.url(), autocommit=True) as operator:
        role = url.split("//")[1].split("@")[0]
        operator.execute(f"ALTER SCHEMA {role} OWNER TO postgres".encode())
    with pytest.raises(UnavailableError, match=r"permission denied.*privileges of its user"):
        holdfast.connect(url)


@contextmanager
def counters(url: str, names: str) -> Iterator[PostgresDatabase]:
    """A database with a table of counters, one for each letter of `names`."""
    database = PostgresDatabase(url)
    try:
        database.write(EVERY_ACCOUNT, lambda tx: create_counters(tx, names))
        yield database
    finally:
        database.close()


def create_counters(tx: Tx, names: str) -> None:
    tx.execute(
        "CREATE TABLE IF NOT EXISTS counters (name text PRIMARY KEY, value bigint NOT NULL CHECK (value < 1000))"
    )
    for name in names:
        tx.execute("INSERT INTO counters VALUES (?, 0)", (name,))


def count(name: str, amount: int = 1) -> Callable[[Tx], Any]:
    """Lock a counter, as an append locks its session, and add to it."""

    def work(tx: Tx) -> Any:
        row = tx.one("SELECT value FROM counters WHERE name = ? FOR NO KEY UPDATE", (name,))
        assert row is not None
        tx.execute("UPDATE counters SET value = ? WHERE name = ?", (row[0] + amount, name))
        return row[0] + amount

    return work


def submit(database: PostgresDatabase, *works: Callable[[Tx], Any]) -> list[Future[Any]]:
    """Submit works as one batch."""
    return submit_for(database, [("acme", work) for work in works])


def submit_for(database: PostgresDatabase, works: list[tuple[str, Callable[[Tx], Any]]]) -> list[Future[Any]]:
    """Submit works of accounts as one batch."""
    futures: list[Future[Any]] = [Future() for _ in works]

    def replying(future: Future[Any]) -> Callable[[Any, BaseException | None], None]:
        return lambda outcome, error: future.set_exception(error) if error else future.set_result(outcome)

    database.submit([Submission(*work, replying(future)) for work, future in zip(works, futures, strict=True)])
    return futures


def values(database: PostgresDatabase) -> dict[str, int]:
    return dict(database.read("acme", lambda tx: tx.all("SELECT name, value FROM counters")))


@contextmanager
def counted_round_trips(proxy: Proxy) -> Iterator[list[bytes]]:
    """Collects the messages that ask the server to respond: Flush and Sync."""
    sent: list[bytes] = []

    def never_cut(message: bytes) -> bool:
        if message[:1] in {b"H", b"S"}:
            sent.append(message[:1])
        return False

    proxy.cut(never_cut, "before")
    yield sent
    proxy.cancel_cut()


@pytest.mark.parametrize("is_indexed", [True, False])
def test_an_append_takes_two_round_trips(postgres: PostgresServer, *, is_indexed: bool) -> None:
    """Also if nothing else of the session waits to be indexed, so that the append registers the session."""
    target = postgres.new_database()
    with holdfast.connect(target) as client:
        client.add_message("s", "user", "first")
        client.wait_until_idle()
    with proxy_to(target) as (url, proxy), holdfast.connect(url, settings=Settings(worker_threads=0)) as client:
        client.add_message("other" if is_indexed else "s", "user", "pending")
        assert isinstance(client._transport, LocalTransport)
        client._transport.engine.audit_log.settle()  # a new session has an audit line, which is sealed afterwards
        with counted_round_trips(proxy) as round_trips:
            client.add_message("s", "user", "last")
        assert round_trips == [b"S", b"S"]


def test_submitted_writes_of_different_scopes_take_two_round_trips_together(postgres: PostgresServer) -> None:
    def limited(name: str) -> Callable[[Tx], Any]:
        def work(tx: Tx) -> Any:
            tx.limit_to(name)
            return count(name)(tx)

        return work

    with proxy_to(postgres.new_database()) as (url, proxy), counters(url, "abcdefgh") as database:
        with counted_round_trips(proxy) as round_trips:
            futures = submit(database, *map(limited, "hgfedcba"))
            assert [future.result(WAIT_SECONDS) for future in futures] == [1] * 8
        assert round_trips == [b"S", b"S"]
        assert values(database) == dict.fromkeys("abcdefgh", 1)


def test_submitted_writes_share_a_transaction(postgres: PostgresServer) -> None:
    with counters(postgres.new_database(), "abc") as database:
        ids = [lambda tx: tx.one("SELECT pg_current_xact_id()::text")] * 20
        assert len({future.result(WAIT_SECONDS) for future in submit(database, *ids)}) == 1


def test_a_write_that_waits_for_a_lock_does_not_delay_the_others_of_its_batch(postgres: PostgresServer) -> None:
    url = postgres.new_database()
    with counters(url, "abc") as database, psycopg.connect(url) as other:
        other.execute("SELECT 1 FROM counters WHERE name = 'b' FOR NO KEY UPDATE")
        a, b, c = submit(database, count("a"), count("b"), count("c"))
        assert (a.result(WAIT_SECONDS), c.result(WAIT_SECONDS)) == (1, 1)
        later = submit(database, count("a"), count("c"))
        assert [future.result(WAIT_SECONDS) for future in later] == [2, 2]
        assert not b.done()
        other.execute("UPDATE counters SET value = 10 WHERE name = 'b'")
        other.commit()
        assert b.result(WAIT_SECONDS) == 11
        assert values(database) == {"a": 2, "b": 11, "c": 2}


def test_a_failed_write_leaves_nothing_and_the_others_of_its_batch_commit(postgres: PostgresServer) -> None:
    """It fails in Python after it wrote, or in the database: at once, or when its last statement is executed."""

    def fails_in_python(tx: Tx) -> None:
        count("a", 5)(tx)
        raise ZeroDivisionError

    def fails_at_once(tx: Tx) -> None:
        count("a", 5)(tx)
        tx.one("SELECT 1 / 0")

    with counters(postgres.new_database(), "ab") as database:
        works = [count("a"), fails_in_python, count("b"), count("a", 5_000), count("b"), fails_at_once, count("a")]
        outcomes = [future.exception(WAIT_SECONDS) or future.result() for future in submit(database, *works)]
        assert [outcomes[index] for index in (0, 2, 4, 6)] == [1, 1, 2, 2]
        assert isinstance(outcomes[1], ZeroDivisionError)
        assert "violates check constraint" in str(outcomes[3])
        assert "division by zero" in str(outcomes[5])
        assert values(database) == {"a": 2, "b": 2}


def test_batches_of_two_servers_that_lock_in_opposite_order_all_commit(postgres: PostgresServer) -> None:
    url = postgres.new_database()
    with counters(url, "abcd") as first, counters(url, "") as second:
        began = time.monotonic()
        futures = [
            future
            for _ in range(40)
            for database, order in ((first, "abcd"), (second, "dcba"))
            for future in submit(database, *map(count, order))
        ]
        for future in futures:
            future.result(WAIT_SECONDS)
        assert time.monotonic() - began < WAIT_SECONDS
        assert values(first) == dict.fromkeys("abcd", 80)


def test_row_level_security_applies_to_each_write_of_a_batch(postgres: PostgresServer) -> None:
    with counters(postgres.new_database(), "") as database:
        database.migrate(0)

        def insert_and_read_all(tx: Tx) -> list[Any]:
            tx.execute("INSERT INTO accounts (account_id, created_at) VALUES (?, 0)", (tx.account,))
            return tx.all("SELECT account_id, pg_current_xact_id()::text FROM accounts")

        futures = submit_for(database, [(account, insert_and_read_all) for account in ("acme", "rival", "third")])
        (acme, acme_id), (rival, rival_id), (third, third_id) = [
            row for future in futures for row in future.result(WAIT_SECONDS)
        ]
        assert (acme, rival, third) == ("acme", "rival", "third")
        assert acme_id == rival_id == third_id


def test_a_batch_is_tried_again_if_its_connection_ends_before_the_commit(postgres: PostgresServer) -> None:
    calls: list[int] = []

    def ends_its_connection_once(tx: Tx) -> None:
        calls.append(1)
        if len(calls) == 1:
            with psycopg.connect(postgres.url(), autocommit=True) as operator:
                row = tx.one("SELECT pg_backend_pid()")
                operator.execute("SELECT pg_terminate_backend(%s)", row)
        tx.one("SELECT 1")

    with counters(postgres.new_database(), "ab") as database:
        a, ended, b = submit(database, count("a"), ends_its_connection_once, count("b"))
        assert (a.result(WAIT_SECONDS), ended.result(WAIT_SECONDS), b.result(WAIT_SECONDS)) == (1, None, 1)
        assert len(calls) == 2
        assert values(database) == {"a": 1, "b": 1}


@pytest.mark.parametrize("side", ["before", "after"])
def test_the_outcome_of_a_batch_is_unknown_if_its_connection_is_lost_during_the_commit(
    postgres: PostgresServer, side: Any
) -> None:
    url = postgres.new_database()
    with proxy_to(url) as (proxy_url, proxy), counters(proxy_url, "ab") as database:
        proxy.cut(lambda message: b"COMMIT\0" in message, side)
        futures = submit(database, count("a"), count("b"))
        for future in futures:
            with pytest.raises(UnavailableError, match="outcome of this call is unknown"):
                future.result(WAIT_SECONDS)
        assert submit(database, count("a"))[0].result(WAIT_SECONDS) in {1, 2}


def test_a_write_is_interrupted_while_it_waits_for_a_lock(postgres: PostgresServer) -> None:
    """KeyboardInterrupt is raised at once, and the connection is not used again."""
    url = postgres.new_database()
    with counters(url, "a") as database, psycopg.connect(url) as other:
        other.execute("SELECT 1 FROM counters FOR NO KEY UPDATE")
        interrupt = signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            with pytest.raises(KeyboardInterrupt):
                database.write("acme", count("a"))
        finally:
            signal.signal(signal.SIGALRM, interrupt)
        other.rollback()
        assert database.write("acme", count("a")) == 1
