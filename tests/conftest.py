"""Fixtures for empty databases, and the options `--quick` and `--soak`."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest

from holdfast.store.database import Database
from holdfast.store.drivers.postgres.database import PostgresDatabase
from holdfast.store.drivers.sqlite.database import SqliteDatabase
from holdfast.testing.postgres import PostgresServer, postgres_server
from holdfast.testing.ram_disk import find_ram_disk

SLOW_VARIANTS = {
    *("postgres", "http-postgres"),
    *("http-sqlite", "remote"),  # they start a Holdfast server
    "async",  # the asynchronous client is generated from the synchronous one
}
"""Test parameters that `--quick` skips."""
SLOW_FILES = {
    "test_provider_schemas.py",  # importing the providers' libraries takes seconds
    "test_process.py",  # its child processes are ended by limits of seconds
}
SOAK_FOLDER = Path(__file__).parent / "soak"

hypothesis.settings.register_profile("quick", max_examples=10, deadline=None)
hypothesis.settings.register_profile("test", max_examples=40, deadline=None)
hypothesis.settings.register_profile("soak", max_examples=400, deadline=None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="skip slow variants of tests: PostgreSQL, servers, async")
    parser.addoption("--soak", action="store_true", help="also collect tests/soak, whose rounds take minutes")


def pytest_configure(config: pytest.Config) -> None:
    name = "soak" if config.getoption("soak") else "quick" if config.getoption("quick") else "test"
    hypothesis.settings.load_profile(name)
    # A second thread for small matrices doubles the CPU time of every summary, and saves no time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    ram_disk = find_ram_disk()
    if ram_disk is not None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(ram_disk))  # the parent folder of every tmp_path
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell; programs would inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    is_slow = config.getoption("quick") and collection_path.name in SLOW_FILES
    is_soak = not config.getoption("soak") and collection_path == SOAK_FOLDER
    return True if is_slow or is_soak else None


def pytest_itemcollected(item: pytest.Item) -> None:
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        item.add_marker("rounds")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    deselected = [item for item in items if _is_deselected(config, item)]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if not _is_deselected(config, item)]


def _is_deselected(config: pytest.Config, item: pytest.Item) -> bool:
    is_for_soak_only = item.get_closest_marker("soak") is not None and not config.getoption("soak")
    return is_for_soak_only or (config.getoption("quick") and _is_slow(item))


def _is_slow(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    parameters = {value for value in callspec.params.values() if isinstance(value, str)} if callspec else set()
    return bool(parameters & SLOW_VARIANTS) or "postgres" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session")
def is_soak(pytestconfig: pytest.Config) -> bool:
    """Whether a test marked with `rounds` runs all its rounds instead of some."""
    return bool(pytestconfig.getoption("soak"))


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def empty_sqlite_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with empty tables, to be copied: creating the tables takes three times as long as opening a copy."""
    file = tmp_path_factory.mktemp("empty") / "holdfast.db"
    database = SqliteDatabase(str(file))
    database.migrate(0)
    database.close()
    return file


@pytest.fixture(params=["sqlite", "postgres"])
def target(request: pytest.FixtureRequest, tmp_path: Path, empty_sqlite_file: Path) -> Iterator[str]:
    """The argument for `connect`: an SQLite file, then a PostgreSQL database, both with empty tables."""
    if request.param == "sqlite":
        yield str(shutil.copy(empty_sqlite_file, tmp_path / "holdfast.db"))
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    url = server.new_migrated_database()
    yield url
    server.drop_database(url)


@pytest.fixture(params=["sqlite", "postgres"])
def target_without_tables(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Like `target`, for tests that migrate a database or create its tables."""
    if request.param == "sqlite":
        return str(tmp_path / "holdfast.db")
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.fixture
def open_database(target: str) -> Iterator[Callable[[], Database]]:
    """Opens `target` any number of times, like several processes that use the same database."""
    opened: list[Database] = []

    def open_another() -> Database:
        database: Database = PostgresDatabase(target) if "://" in target else SqliteDatabase(target)
        database.migrate(0)
        opened.append(database)
        return database

    yield open_another
    for database in opened:
        database.close()


@pytest.fixture
def database(open_database: Callable[[], Database]) -> Database:
    return open_database()
