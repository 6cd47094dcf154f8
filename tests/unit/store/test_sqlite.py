"""Behaviour specific to the SQLite driver."""

from pathlib import Path

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
