"""The time limits of PostgreSQL transactions, and connections that cannot be used any more."""

import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

import holdfast
from holdfast.errors import UnavailableError
from holdfast.store import migrations
from holdfast.store.database import EVERY_ACCOUNT, Submission, Tx
from holdfast.store.drivers.postgres.database import PostgresDatabase
from holdfast.store.drivers.postgres.pool import connection_options
from holdfast.testing.postgres import PostgresServer

WAIT_SECONDS = 20
NAMES = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")


@contextmanager
def opened(url: str, **options: Any) -> Iterator[PostgresDatabase]:
    database = PostgresDatabase(url, **options)
    try:
        yield database
    finally:
        database.close()


def read_limits(tx: Tx) -> list[str]:
    return [tx.all(f"SHOW {name}")[0][0] for name in NAMES]


def submit(database: PostgresDatabase, *works: Any) -> list[Future[Any]]:
    futures: list[Future[Any]] = [Future() for _ in works]
    replies = [
        lambda outcome, error, future=future: future.set_exception(error) if error else future.set_result(outcome)
        for future in futures
    ]
    database.submit([Submission("acme", work, reply) for work, reply in zip(works, replies, strict=True)])
    return futures


def test_the_limits_of_a_transaction_are_shorter_than_a_request(postgres: PostgresServer) -> None:
    with opened(postgres.new_database(), request_seconds=30) as database:
        assert database.read("acme", read_limits) == ["10s", "18s", "18s"]
        assert database.write("acme", read_limits) == ["100ms", "18s", "5s"]
        assert submit(database, read_limits)[0].result(WAIT_SECONDS) == ["20ms", "2s", "5s"]


def test_limits_that_the_url_sets_are_kept(postgres: PostgresServer) -> None:
    url = f"{postgres.new_database()}&options=-c%20lock_timeout%3D700%20-c%20statement_timeout%3D0"
    with opened(url) as database:
        assert database.read("acme", read_limits) == ["700ms", "1d", "1d"]
    url = f"{postgres.new_migrated_database()}&options=-c%20lock_timeout%3D300"
    with opened(url) as database, psycopg.connect(url) as other:
        other.execute("LOCK TABLE sessions IN EXCLUSIVE MODE")
        begun = time.monotonic()
        with pytest.raises(UnavailableError, match="locked by another transaction for 0"):
            database.write("acme", lambda tx: tx.one("LOCK TABLE sessions IN EXCLUSIVE MODE"))
        assert time.monotonic() - begun < 5


def test_options_that_the_url_sets_are_kept() -> None:
    defaults = connection_options("postgresql://db/holdfast")
    assert {"connect_timeout", "keepalives_idle", "tcp_user_timeout"} <= defaults.keys()
    assert "target_session_attrs" not in defaults
    options = connection_options("postgresql://a,b/holdfast?keepalives_idle=99&connect_timeout=1")
    assert {"keepalives_idle", "connect_timeout"}.isdisjoint(options)
    assert options["target_session_attrs"] == "primary"
    given = "postgresql://a,b/holdfast?target_session_attrs=read-write"
    assert "target_session_attrs" not in connection_options(given)


def test_a_statement_that_takes_too_long_is_ended(postgres: PostgresServer) -> None:
    with opened(postgres.new_database(), request_seconds=1.5) as database:
        begun = time.monotonic()
        with pytest.raises(UnavailableError, match="statement timeout"):
            database.write("acme", lambda tx: tx.one("SELECT pg_sleep(20)"))
        assert time.monotonic() - begun < 10
        assert database.write("acme", lambda tx: tx.one("SELECT 1")) == (1,)


def test_a_slow_statement_of_a_batch_does_not_end_the_others(postgres: PostgresServer) -> None:
    with opened(postgres.new_database(), request_seconds=1.5) as database:
        slow, *others = submit(database, lambda tx: tx.one("SELECT pg_sleep(20)"), *[lambda tx: tx.one("SELECT 2")] * 3)
        assert [future.result(WAIT_SECONDS) for future in others] == [(2,)] * 3
        with pytest.raises(UnavailableError, match=r"statement timeout: nothing was written"):
            slow.result(WAIT_SECONDS)


def test_a_read_of_a_locked_table_is_an_error(postgres: PostgresServer) -> None:
    url = postgres.new_migrated_database()
    with opened(url, request_seconds=0.6) as database, psycopg.connect(url) as other:
        other.execute("LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(UnavailableError, match="locked by another transaction"):
            database.read("acme", lambda tx: tx.all("SELECT 1 FROM sessions WHERE account_id = ?", (tx.account,)))


def test_a_transaction_may_declare_long_statements(postgres: PostgresServer) -> None:
    def take_long(tx: Tx) -> Any:
        tx.allow_long_statements()
        return tx.one("SELECT 1 FROM pg_sleep(1.3)")

    with opened(postgres.new_database(), request_seconds=1) as database:
        long, *others = submit(database, take_long, *[lambda tx: tx.one("SELECT 2")] * 3)
        assert [future.result(1) for future in others] == [(2,)] * 3
        assert not long.done()
        assert long.result(WAIT_SECONDS) == (1,)


def test_a_migration_has_limits_of_its_own(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    long = migrations.Migration(9_999, "9999_long", "SELECT pg_sleep(1.3)")
    monkeypatch.setattr(migrations, "list_pending", lambda _tx: [long])
    with opened(postgres.new_database(), request_seconds=1) as database:
        database.migrate(0)
        applied = database.read(EVERY_ACCOUNT, lambda tx: tx.all("SELECT name FROM schema_migrations"))
        assert applied == [("9999_long",)]


def test_connections_that_an_administrator_has_ended_are_replaced_without_an_error(postgres: PostgresServer) -> None:
    url = postgres.new_database()
    with holdfast.connect(url) as client, psycopg.connect(postgres.url(), autocommit=True) as operator:
        role = url.split("//")[1].split("@")[0]
        for number in range(1, 6):
            assert client.add_message("chat", "user", "hello").seq == number
            operator.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (role,))


def test_missing_prepared_statements_are_not_used_again(postgres: PostgresServer) -> None:
    """Behind a pooler, the next transaction may use a connection that has not prepared its statements."""
    with opened(postgres.new_database()) as database:
        for _ in range(5):
            assert database.write("acme", lambda tx: tx.one("SELECT 1")) == (1,)
        for _ in range(3):
            database.write("acme", lambda tx: tx.execute("DEALLOCATE ALL"))
            assert database.write("acme", lambda tx: tx.one("SELECT 1")) == (1,)
        prepared = database.read("acme", lambda tx: tx.all("SELECT name FROM pg_prepared_statements"))
        assert prepared == []


def test_a_client_stops_waiting_for_a_database_that_sends_nothing(postgres: PostgresServer) -> None:
    with opened(postgres.new_database(), request_seconds=0.5) as database:

        def take_long_without_the_servers_limit(tx: Tx) -> None:
            tx.one("SELECT set_config('statement_timeout', '0', true)")
            tx.one("SELECT pg_sleep(8)")

        with pytest.raises(UnavailableError, match=r"sent nothing for 3 s: nothing was written"):
            database.write("acme", take_long_without_the_servers_limit)
