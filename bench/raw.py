"""The baseline: SQLite through apsw, without Holdfast."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import msgspec

import holdfast
from holdfast.config import Settings

Statement = tuple[str, tuple[Any, ...]]

WAL_PAGES = 1_100
"""Slightly more pages than the write-ahead log has when SQLite starts a checkpoint."""


class Recording(msgspec.Struct, frozen=True):
    """The recorded statements, with their values."""

    opening: list[Statement]
    """Create the schema and the sessions."""
    appends: list[list[Statement]]
    """The statements of each append."""


def connect(file: Path) -> apsw.Connection:
    """Open a connection with the same durability as Holdfast."""
    connection = apsw.Connection(str(file))
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)  # as Holdfast: parameters do not change plans
    # fetchall: a pragma that returns a row blocks the statements after it until the row is read.
    connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL").fetchall()
    connection.create_scalar_function("holdfast_now", lambda *_: time.monotonic_ns() // 1_000, 0)
    return connection


def connect_insert_log(file: Path) -> apsw.Connection:
    """Create the simplest durable log, for `INSERT INTO raw (body) VALUES (?)`."""
    connection = connect(file)
    connection.execute("CREATE TABLE raw (n INTEGER PRIMARY KEY, body TEXT NOT NULL)")
    return connection


def fill_wal(file: Path) -> None:
    """Grow the write-ahead log of an open database to its size at the first checkpoint.

    After that it is overwritten. Until then it grows, and syncing a growing file costs more. A raw insert writes
    fewer pages than an append, so it would have the higher cost for much longer.
    """
    connection = connect(file)
    connection.set_busy_timeout(10_000)  # a worker of the client may be writing
    connection.execute("PRAGMA synchronous = OFF").fetchall()
    before = connection.pragma("user_version")
    for number in range(WAL_PAGES):
        connection.pragma("user_version", number)  # writes one page, no tables
    connection.pragma("user_version", before)
    connection.close()


def record_appends(appends: Sequence[tuple[str, str]]) -> Recording:
    """Make the appends (session, text) through a client, in memory, and record the SQL statements.

    They are recorded rather than written down here, so that they always match the code.
    """
    with (
        _record_statements() as statements,
        holdfast.connect(":memory:", settings=Settings(worker_threads=0)) as client,
    ):
        for session in dict.fromkeys(session for session, _ in appends):
            client.create_session(session)
        opening = statements.copy()
        recorded: list[list[Statement]] = []
        for session, text in appends:
            statements.clear()
            client.add_message(session, "user", text)
            recorded.append(statements.copy())
    return Recording(opening, recorded)


def replay(connection: apsw.Connection, statements: Sequence[Statement]) -> None:
    for sql, values in statements:
        connection.execute(sql, values).fetchall()


def without_transaction(statements: Sequence[Statement]) -> list[Statement]:
    """Without what a batch of appends does once."""
    once = ("BEGIN", "PRAGMA user_version", "COMMIT")
    return [statement for statement in statements if not statement[0].startswith(once)]


@contextmanager
def _record_statements() -> Iterator[list[Statement]]:
    """Record the statements of connections that this thread opens during the block."""
    statements: list[Statement] = []
    thread = threading.get_ident()

    def record(_cursor: apsw.Cursor, sql: str, values: Sequence[Any] | Mapping[str, Any] | None) -> bool:
        statements.append((sql.strip(), tuple(values or ())))
        return True

    def trace(connection: apsw.Connection) -> None:
        if threading.get_ident() == thread:
            connection.exec_trace = record

    apsw.connection_hooks.append(trace)
    try:
        yield statements
    finally:
        apsw.connection_hooks.remove(trace)
