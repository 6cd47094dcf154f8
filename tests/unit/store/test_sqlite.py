"""Behaviour specific to the SQLite driver."""

from pathlib import Path

import apsw
import pytest

from holdfast.store.database import Tx
from holdfast.store.drivers.sqlite.database import SqliteDatabase


def pragmas(tx: Tx) -> dict[str, object]:
    names = ("journal_mode", "synchronous", "foreign_keys", "trusted_schema", "query_only")
    return {name: (tx.one(f"PRAGMA {name}") or [None])[0] for name in names}


@pytest.fixture
def database(tmp_path: Path) -> SqliteDatabase:
    database = SqliteDatabase(str(tmp_path / "holdfast.db"))
    database.migrate(0)
    return database


def test_the_writer_syncs_fully_and_checks_foreign_keys(database: SqliteDatabase) -> None:
    assert database.write("acme", pragmas) == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "trusted_schema": 0,
        "query_only": 0,
    }
    database.close()


def test_readers_cannot_write(database: SqliteDatabase) -> None:
    assert database.read("acme", pragmas)["query_only"] == 1
    database.close()


def test_the_database_folder_is_created_and_private(tmp_path: Path) -> None:
    SqliteDatabase(str(tmp_path / "deep" / "er" / "holdfast.db")).close()
    assert (tmp_path / "deep" / "er").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM messages WHERE account_id = ? ORDER BY n LIMIT ?",
        "SELECT s.title FROM sessions s LEFT JOIN messages m USING (log_id) WHERE s.account_id = ? AND s.log_id = ?",
    ],
)
def test_a_statement_is_prepared_once_for_all_values_of_its_parameters(database: SqliteDatabase, sql: str) -> None:
    authorised = 0

    def authorise(*_: object) -> int:
        nonlocal authorised
        authorised += 1  # SQLite asks while it prepares a statement
        return apsw.SQLITE_OK

    def set_authoriser(connection: apsw.Connection) -> None:
        connection.authorizer = authorise

    def run_often(tx: Tx) -> list[int]:
        counts = [authorised]
        for number in range(3):
            tx.all(sql, ("acme", number))
            counts.append(authorised)
        return counts

    apsw.connection_hooks.append(set_authoriser)
    try:
        before, first, second, third = database.read("acme", run_often)
    finally:
        apsw.connection_hooks.remove(set_authoriser)
        database.close()
    assert before < first == second == third


def test_the_schema_is_read_only_after_another_connection_has_written(tmp_path: Path) -> None:
    statements: list[str] = []

    def record(_cursor: apsw.Cursor, sql: str, _values: object) -> bool:
        statements.append(sql)
        return True

    def trace(connection: apsw.Connection) -> None:
        connection.exec_trace = record

    def schema_reads(database: SqliteDatabase) -> int:
        statements.clear()
        database.write("*", lambda tx: tx.execute("UPDATE clock SET id = 1"))
        return sum("user_version" in sql for sql in statements)

    apsw.connection_hooks.append(trace)
    databases = [SqliteDatabase(str(tmp_path / "holdfast.db")) for _ in range(2)]
    try:
        for database in databases:
            database.migrate(0)
        assert [schema_reads(databases[number]) for number in (0, 0, 0, 1, 1, 0, 0)] == [0, 0, 0, 1, 0, 1, 0]
    finally:
        apsw.connection_hooks.remove(trace)
        for database in databases:
            database.close()
