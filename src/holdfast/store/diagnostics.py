"""Checks of a database, for its health and for `holdfast doctor`. They change nothing."""

from holdfast.store import migrations
from holdfast.store.database import EVERY_ACCOUNT, Database, Tx, read_time

MAX_PROBLEMS = 3
"""How many problems an integrity check reports."""

_FIND_SCHEMA = {
    "sqlite": "SELECT name FROM sqlite_master WHERE name = 'schema_migrations'",
    "postgres": "SELECT to_regclass('schema_migrations')::text",
}


class _RollBack(Exception):  # noqa: N818 - not an error: it makes a test write roll back
    pass


def ping(tx: Tx) -> bool:
    """Run a trivial query. Return whether the database answers it correctly."""
    return tx.one("SELECT 1") == (1,)


def check_read(database: Database) -> None:
    """Ping the database. Raises an error if it cannot be opened or read."""
    database.read(EVERY_ACCOUNT, ping)


def has_schema(database: Database) -> bool:
    """Whether the database has Holdfast's tables, of any version."""
    return database.read(EVERY_ACCOUNT, lambda tx: tx.one(_FIND_SCHEMA[tx.dialect.name])) not in (None, (None,))


def list_pending_migrations(database: Database) -> list[str]:
    """The names of the migrations that are not applied yet. Requires that the database has the schema."""
    return [migration.name for migration in database.read(EVERY_ACCOUNT, migrations.list_pending)]


def check_write(database: Database, now: int) -> None:
    """Write a row and roll it back. Raises an error if the database cannot be written."""

    def write(tx: Tx) -> None:
        migrations.record(tx, migrations.Migration(-1, "doctor", ""), now)
        raise _RollBack

    try:
        database.write(EVERY_ACCOUNT, write)
    except _RollBack:
        return
    raise AssertionError("unreachable: the write ends with an exception")


def clock_difference(database: Database, now: int) -> int:
    """The system's time `now` minus the database's time, in microseconds. For SQLite, when it was stored last."""

    def read(tx: Tx) -> int:
        if tx.dialect.name != "sqlite":
            return now - read_time(tx)
        rows = tx.all("SELECT system_time - time FROM clock")
        return int(rows[0][0]) if rows else 0

    return database.read(EVERY_ACCOUNT, read)


def find_corruption(database: Database) -> list[str] | None:
    """The problems that SQLite finds in the file, at most `MAX_PROBLEMS`. None if the database is not SQLite."""
    if database.read(EVERY_ACCOUNT, lambda tx: tx.dialect.name) != "sqlite":
        return None
    rows = database.read(EVERY_ACCOUNT, lambda tx: tx.all(f"PRAGMA quick_check({MAX_PROBLEMS})"))
    return [] if rows == [("ok",)] else [str(row[0]) for row in rows]
