"""Checks of a database, for its health and for `holdfast doctor`. They change nothing."""

from typing import Literal

from holdfast.store import migrations
from holdfast.store.database import EVERY_ACCOUNT, Database, Row, Tx, read_time

MAX_PROBLEMS = 3
"""How many problems an integrity check reports."""

_FIND_SCHEMA = {
    "sqlite": "SELECT name FROM sqlite_master WHERE name = 'schema_migrations'",
    "postgres": "SELECT to_regclass('schema_migrations')::text",
}

_COUNT_TEXT_DIFFERENCES = """
SELECT (SELECT COUNT(*) FROM documents WHERE n NOT IN (SELECT id FROM document_text_docsize)),
       (SELECT COUNT(*) FROM document_text_docsize WHERE id NOT IN (SELECT n FROM documents)),
       (SELECT COUNT(*) FROM messages m JOIN sessions s ON s.account_id = m.account_id AND s.log_id = m.log_id
            WHERE m.seq <= s.indexed_seq AND NOT EXISTS (SELECT 1 FROM documents d WHERE d.account_id = m.account_id
            AND d.log_id = m.log_id AND d.kind = 'message' AND d.number = m.seq))
"""


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


def write_and_delete(tx: Tx, number: int, now: int) -> None:
    """Write a row and delete it again. The commit needs the disk, and changes nothing.

    `number` is negative and used by nobody else at the same time, so that no row lock is waited for.
    """
    migrations.record(tx, migrations.Migration(number, "probe", ""), now)
    tx.execute("DELETE FROM schema_migrations WHERE number = ?", (number,))


def clock_difference(database: Database, now: int) -> int:
    """The system's time `now` minus the database's time, in microseconds.

    For SQLite it is the difference at the moment when the database's time was last stored.
    """

    def read(tx: Tx) -> int:
        if tx.dialect.name != "sqlite":
            return now - read_time(tx)
        rows = tx.all("SELECT system_time - time FROM clock")
        return int(rows[0][0]) if rows else 0

    return database.read(EVERY_ACCOUNT, read)


def find_corruption(
    database: Database, check: Literal["quick_check", "integrity_check"], limit: int = MAX_PROBLEMS
) -> list[str] | None:
    """The problems that SQLite finds in the file, at most `limit`. None if the database is not SQLite.

    `quick_check` does not compare indexes and tables.
    """
    if not _is_sqlite(database):
        return None
    rows = database.read(EVERY_ACCOUNT, lambda tx: _check_file(tx, f"PRAGMA {check}({limit})"))
    problems = [] if rows == [("ok",)] else [str(row[0]) for row in rows]
    if check == "integrity_check":
        orphans = database.read(EVERY_ACCOUNT, lambda tx: tx.all("PRAGMA foreign_key_check"))
        problems += [f"a row of {table} refers to a missing row of {parent}" for table, _, parent, *_ in orphans]
    return problems


def _check_file(tx: Tx, pragma: str) -> list[Row]:
    if tx.one("SELECT 1 FROM sqlite_master WHERE name = 'document_text'"):
        # A connection keeps what it has read of the text index. Only a query notices that others have emptied it.
        tx.all("SELECT 1 FROM document_text WHERE document_text MATCH 'x' LIMIT 1")
    return tx.all(pragma)


def find_text_index_problems(database: Database) -> list[str]:
    """Compare SQLite's text index, the documents and the messages. Pending messages are not indexed yet."""
    if not _is_sqlite(database):
        return []
    row = database.read(EVERY_ACCOUNT, lambda tx: tx.one(_COUNT_TEXT_DIFFERENCES))
    missing, orphaned, unindexed = row or (0, 0, 0)
    problems = {f"{missing} documents are not in the text index": missing}
    problems[f"{orphaned} entries of the text index have no document"] = orphaned
    problems[f"{unindexed} messages have no document"] = unindexed
    return [problem for problem, count in problems.items() if count]


def _is_sqlite(database: Database) -> bool:
    return database.read(EVERY_ACCOUNT, lambda tx: tx.dialect.name) == "sqlite"
