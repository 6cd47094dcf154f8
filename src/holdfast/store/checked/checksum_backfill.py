"""Adding checksums to the rows of earlier versions, which have none."""

from collections.abc import Callable
from typing import Literal

import msgspec

from holdfast.store.checked import archive_rows, message_rows
from holdfast.store.checksums import checksum_of, seed_of_log
from holdfast.store.database import Row, Tx

Key = tuple[str, int, int]
"""The account, the log and the number of a message or an archive."""
FIRST: Key = ("", 0, 0)
"""Before the first row."""


class Added(msgspec.Struct, frozen=True):
    rows: int
    last: Key | None
    """The last row of this slice. None if there was none."""


def add(tx: Tx, table: Literal["messages", "archives"], after: Key, limit: int) -> Added:
    """Add checksums to up to `limit` rows after a position, of all accounts. A row that cannot be read gets none."""
    number, add_to_row = _TABLES[table]
    keys: list[Key] = [
        (account, log_id, key)
        for account, log_id, key in tx.all(
            f"SELECT account_id, log_id, {number} FROM {table} WHERE (account_id, log_id, {number}) > (?, ?, ?)"
            f" AND checksum IS NULL ORDER BY account_id, log_id, {number} LIMIT ?",
            (*after, limit),
        )
    ]
    for key in keys:
        add_to_row(tx, key)
    return Added(len(keys), keys[-1] if keys else None)


def _add_to_message(tx: Tx, key: Key) -> None:
    row = _read(tx, message_rows.CHECKED_COLUMNS, "messages", "seq", key)
    try:
        message_rows.decode([(*row, None)] if row else [])
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError):
        return
    if row is not None:
        _write(tx, "messages SET checksum = ?", "seq", key, [checksum_of(row, seed_of_log(*key[:2]))])


def _add_to_archive(tx: Tx, key: Key) -> None:
    seed = seed_of_log(*key[:2])
    row = _read(tx, archive_rows.CHECKED_COLUMNS, "archives", "number", key)
    summaries = _read(tx, "summary, earlier", "archives", "number", key)
    if row is not None and summaries is not None:
        checksums = [checksum_of(row, seed), checksum_of(summaries, seed)]
        _write(tx, "archives SET checksum = ?, summary_checksum = ?", "number", key, checksums)


def _read(tx: Tx, columns: str, table: str, number: str, key: Key) -> Row | None:
    try:
        return tx.one(
            f"SELECT {columns} FROM {table} WHERE account_id = ? AND log_id = ? AND {number} = ?{tx.dialect.lock_row}",
            key,
        )
    except tx.dialect.unreadable_row:
        return None


def _write(tx: Tx, change: str, number: str, key: Key, checksums: list[int]) -> None:
    tx.execute(f"UPDATE {change} WHERE account_id = ? AND log_id = ? AND {number} = ?", (*checksums, *key))


_TABLES: dict[str, tuple[str, Callable[[Tx, Key], None]]] = {
    "messages": ("seq", _add_to_message),
    "archives": ("number", _add_to_archive),
}
