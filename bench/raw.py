"""What things are measured against: SQLite through apsw with nothing around it."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import msgspec

import holdfast
from holdfast.store.index import sqlite_text

Statement = tuple[str, tuple[Any, ...]]

LOG_PAGES = 1_100
"""Somewhat more than SQLite lets a log have before it moves the pages into the database."""


class Recording(msgspec.Struct, frozen=True):
    """The statements that opening a database and each of some appends ran, with their values."""

    opening: list[Statement]
    appends: list[list[Statement]]


def connect(file: Path) -> apsw.Connection:
    """A connection that is as durable as ours."""
    connection = apsw.Connection(str(file))
    # fetchall: a pragma that answers with a row stops the statements behind it until the row is taken.
    connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL").fetchall()
    sqlite_text.register(connection)  # the schema calls it
    return connection


def connect_log(file: Path) -> apsw.Connection:
    """The simplest durable log there is: `INSERT INTO raw (body) VALUES (?)`."""
    connection = connect(file)
    connection.execute("CREATE TABLE raw (n INTEGER PRIMARY KEY, body TEXT NOT NULL)")
    return connection


def wrap_log(file: Path) -> None:
    """Bring the write-ahead log of an open database to where it is after its first checkpoint.

    From then on it is written over; until then it grows, and to sync a file that grows costs more. A raw insert
    writes fewer pages than an append, so it would pay this far longer.
    """
    connection = connect(file)
    connection.execute("PRAGMA synchronous = OFF").fetchall()
    before = connection.pragma("user_version")
    for number in range(LOG_PAGES):
        connection.pragma("user_version", number)  # writes one page and leaves the tables alone
    connection.pragma("user_version", before)
    connection.close()


def record_appends(appends: Sequence[tuple[str, str]]) -> Recording:
    """Make the appends (session, text) through a client, in memory, and write down what SQLite was asked to do.

    The bare statements are taken from life: they cannot fall behind the code they are compared with.
    """
    with _recorded() as statements, holdfast.connect(":memory:") as client:
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
    return [statement for statement in statements if not statement[0].startswith(("BEGIN", "COMMIT"))]


@contextmanager
def _recorded() -> Iterator[list[Statement]]:
    """The statements that connections opened by this thread run meanwhile."""
    statements: list[Statement] = []
    thread = threading.get_ident()

    def note(_cursor: apsw.Cursor, sql: str, values: Sequence[Any] | Mapping[str, Any] | None) -> bool:
        statements.append((sql.strip(), tuple(values or ())))
        return True

    def watch(connection: apsw.Connection) -> None:
        if threading.get_ident() == thread:
            connection.exec_trace = note

    apsw.connection_hooks.append(watch)
    try:
        yield statements
    finally:
        apsw.connection_hooks.remove(watch)
