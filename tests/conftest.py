"""Fixtures: each database is real, fresh, and gone afterwards."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.store.database import Database
from holdfast.store.drivers.postgres import PostgresDatabase
from holdfast.store.drivers.sqlite import SqliteDatabase
from holdfast.testing.postgres import PostgresServer, postgres_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """What to `connect` to: an empty SQLite file, then an empty PostgreSQL database."""
    if request.param == "sqlite":
        return str(tmp_path / "holdfast.db")
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.fixture
def open_database(target: str) -> Iterator[Callable[[], Database]]:
    """Opens `target` as often as asked: each is another user of the same database."""
    opened: list[Database] = []

    def open_one() -> Database:
        database: Database = PostgresDatabase(target) if "://" in target else SqliteDatabase(target)
        database.migrate(0)
        opened.append(database)
        return database

    yield open_one
    for database in opened:
        database.close()


@pytest.fixture
def database(open_database: Callable[[], Database]) -> Database:
    return open_database()
