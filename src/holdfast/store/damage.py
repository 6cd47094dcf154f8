"""A search for damage in all rows, for `holdfast doctor --deep` and for backups. It changes nothing.

It reads a few rows per transaction, so that it can run while the database is in use.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal

import msgspec

from holdfast.errors import HoldfastError
from holdfast.model.archives import archive_id
from holdfast.store import checksums, diagnostics
from holdfast.store.checked import archive_rows, message_rows
from holdfast.store.database import EVERY_ACCOUNT, Database, Row, Tx
from holdfast.store.tables import tool_results
from holdfast.store.tables.sessions import decode_config, decode_metadata

SLICE_ROWS = 200
MAX_FILE_PROBLEMS = 100
Progress = Callable[[int, int, str], None]
"""Called with the number of checked rows, the number of all rows, and the table."""
RowTable = Literal["sessions", "messages", "archives", "blobs"]
NUMBERED = ("messages", "archives")
"""Tables whose rows are numbered in their log, without gaps."""
Key = tuple[str, int | str, int]
"""The account, then the log and the number of a row; of a session its log and 0, of a tool output its id and 0."""


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """A damaged or missing row, or a problem of the file."""

    table: str
    problem: str
    account: str = ""
    key: Key | None = None
    session_id: str = ""
    is_missing: bool = False

    def describe(self) -> str:
        """Describe the damage in one line.

        >>> Damage(table="file", problem="wrong # of entries in index tasks_by_status").describe()
        'file: wrong # of entries in index tasks_by_status'
        """
        if self.key is None:
            return f"{self.table}: {self.problem}"
        _, log, number = self.key
        if self.table == "sessions":
            return f"account {self.account}: session {self.session_id or log} {self.problem}"
        row = {"messages": f"message {number}", "archives": archive_id(number)}.get(self.table, f"tool output {log}")
        owner = f" of session {self.session_id}" if self.session_id else f" of log {log}" if number else ""
        return f"account {self.account}: {row}{owner} {self.problem}"


class _Table(msgspec.Struct, frozen=True):
    key: str
    """The columns that order the rows, after the account."""
    columns: str
    find_problem: Callable[[Tx, Key, Row], str | None]


def find(database: Database, progress: Progress) -> Iterator[Damage]:
    """Find all damage, in the file and in its rows."""
    yield from find_in_file(database)
    yield from find_in_rows(database, progress)


def find_in_rows(database: Database, progress: Progress, max_rows: int | None = None) -> Iterator[Damage]:
    """Find damaged and missing rows; with `max_rows`, check about that many rows of each table."""
    total = 0
    for table in _TABLES:
        try:
            total += database.read(EVERY_ACCOUNT, partial(_count, table=table))
        except HoldfastError as error:
            yield Damage(table=table, problem=error.message)
    done = 0
    for table in _TABLES:
        for checked, damages in _find_in_table(database, table, max_rows):
            done += checked
            yield from damages
            progress(done, max(total, done), table)


def find_in_file(database: Database) -> Iterator[Damage]:
    """Find problems of an SQLite file and of its indexes."""
    try:
        problems = diagnostics.find_corruption(database, "integrity_check", MAX_FILE_PROBLEMS) or []
        problems += diagnostics.find_text_index_problems(database)
    except HoldfastError as error:
        problems = [error.message]
    yield from (Damage(table="file", problem=problem) for problem in problems)


def _count(tx: Tx, table: str) -> int:
    row = tx.one(f"SELECT COUNT(*) FROM {table}")
    return int(row[0]) if row else 0


def _find_in_table(database: Database, table: RowTable, max_rows: int | None) -> Iterator[tuple[int, list[Damage]]]:
    """Check the rows of a table slice by slice. Yield the number of rows and the damage of each slice."""
    after: Key | None = None
    checked = 0
    while max_rows is None or checked < max_rows:
        try:
            keys, damages = database.read(EVERY_ACCOUNT, partial(_check_slice, table=table, after=after))
        except HoldfastError as error:
            yield 0, [Damage(table=table, problem=f"rows after {after or 'the first'} cannot be read: {error.message}")]
            return
        yield len(keys), damages
        if not keys or (after is not None and keys[-1] <= after):
            return
        after = keys[-1]
        checked += len(keys)


def _check_slice(tx: Tx, table: RowTable, after: Key | None) -> tuple[list[Key], list[Damage]]:
    definition = _TABLES[table]
    start, params = _after(definition, after)
    end = f"FROM {table} {start} ORDER BY account_id, {definition.key} LIMIT ?"
    key_length = 1 + definition.key.count(",") + 1
    try:
        rows = tx.all(f"SELECT account_id, {definition.key}, {definition.columns} {end}", (*params, SLICE_ROWS))
    except tx.dialect.unreadable_row:
        rows = tx.all(f"SELECT account_id, {definition.key} {end}", (*params, SLICE_ROWS))
    keys = [_key(row[:key_length]) for row in rows]
    damages: list[Damage] = []
    previous = after
    for key, row in zip(keys, rows, strict=True):
        if table in NUMBERED:
            damages += _find_gap(tx, table, previous, key)
        # Without its columns, the row is read alone: one of this slice cannot be read.
        is_whole = len(row) > key_length
        problem = definition.find_problem(tx, key, row[key_length:]) if is_whole else _problem_of_row(tx, table, key)
        if problem is not None:
            damages.append(_damage(tx, table, key, problem))
        previous = key
    return keys, damages


def _after(definition: _Table, after: Key | None) -> tuple[str, tuple[str | int, ...]]:
    if after is None:
        return "", ()
    names = ["account_id", *definition.key.split(", ")]
    return f"WHERE ({', '.join(names)}) > ({', '.join('?' * len(names))})", after[: len(names)]


def _key(row: Row) -> Key:
    account, log, *number = row
    return (str(account), log, number[0] if number else 0)


def _problem_of_row(tx: Tx, table: RowTable, key: Key) -> str | None:
    definition = _TABLES[table]
    names = ["account_id", *definition.key.split(", ")]
    condition = " AND ".join(f"{name} = ?" for name in names)
    try:
        rows = tx.all(f"SELECT {definition.columns} FROM {table} WHERE {condition}", key[: len(names)])
    except tx.dialect.unreadable_row:
        return "is damaged: it cannot be read"
    if len(rows) != 1:
        return f"is damaged: the index leads to {len(rows)} rows"
    return definition.find_problem(tx, key, rows[0])


def _problem_of_session(_tx: Tx, _key: Key, row: Row) -> str | None:
    metadata, config, *numbers = row
    try:
        decode_metadata(metadata)
        decode_config(config)
    except (msgspec.MsgspecError, TypeError):
        return "is damaged: its metadata or its settings cannot be decoded"
    return (
        None if all(isinstance(number, int) for number in numbers) else "is damaged: a number is stored as another type"
    )


def _problem_of_message(tx: Tx, key: Key, row: Row) -> str | None:
    if not checksums.are_intact(tx, "messages", [row], checksums.seed_of_log(key[0], int(key[1]))):
        return "is damaged: its checksum does not match"
    try:
        message_rows.decode([row])
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError):
        return "is damaged: it cannot be decoded"
    return None


def _problem_of_archive(tx: Tx, key: Key, row: Row) -> str | None:
    seed = checksums.seed_of_log(key[0], int(key[1]))
    parts = (row[:-3], row[-3:])
    if all(checksums.are_intact(tx, "archives", [part], seed) for part in parts):
        return None
    return "is damaged: its checksum does not match"


def _problem_of_output(_tx: Tx, key: Key, row: Row) -> str | None:
    content, chars = row
    is_intact = isinstance(content, str) and tool_results.id_of_content(content) == key[1] and len(content) == chars
    return None if is_intact else "is damaged: its content does not match its id"


_TABLES: dict[RowTable, _Table] = {
    "sessions": _Table("log_id", "metadata, config, created_at, updated_at, live_from, fork_seq", _problem_of_session),
    "messages": _Table("log_id, seq", message_rows.COLUMNS, _problem_of_message),
    "archives": _Table("log_id, number", f"{archive_rows.COLUMNS}, {archive_rows.SUMMARIES}", _problem_of_archive),
    "blobs": _Table("hash", "content, chars", _problem_of_output),
}


def _find_gap(tx: Tx, table: RowTable, previous: Key | None, key: Key) -> list[Damage]:
    """Numbers in a log have no gaps. The messages of a fork begin after those that it shares."""
    account, log, number = key
    expected = previous[2] + 1 if previous is not None and previous[:2] == (account, log) else None
    if expected is None:
        expected = 1 if table == "archives" else _first_own_seq(tx, key)
    if expected is None or number <= expected:
        return []
    problem = "is missing" if number == expected + 1 else f"and all up to {number - 1} are missing"
    return [_damage(tx, table, (account, log, expected), problem, is_missing=True)]


def _first_own_seq(tx: Tx, key: Key) -> int | None:
    """The first message in the log of a session. None if no session owns the log: it is being deleted, or shared."""
    row = tx.one("SELECT fork_seq FROM sessions WHERE account_id = ? AND log_id = ?", key[:2])
    return None if row is None or not isinstance(row[0], int) else row[0] + 1


def _damage(tx: Tx, table: RowTable, key: Key, problem: str, *, is_missing: bool = False) -> Damage:
    row = None
    if table != "blobs":
        try:
            row = tx.one("SELECT session_id FROM sessions WHERE account_id = ? AND log_id = ?", key[:2])
        except tx.dialect.unreadable_row:
            row = None
    return Damage(
        table=table,
        problem=problem,
        account=key[0],
        key=key,
        session_id=str(row[0]) if row else "",
        is_missing=is_missing,
    )
