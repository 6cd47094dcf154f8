"""Reading messages where some are damaged or missing. A placeholder takes the place of each of those.

This is slow, and used only after a fast read has found a problem. While the backfill of checksums runs, it also reads
messages of earlier versions, which have none.
"""

from collections.abc import Iterator, Sequence
from typing import Any, get_args

import msgspec

from holdfast.model.messages import Message, Role
from holdfast.model.parts import TextPart
from holdfast.store.checked.message_rows import COLUMNS, decode
from holdfast.store.checksums import are_intact, seed_of_log
from holdfast.store.database import Row, Tx
from holdfast.store.timestamps import from_micros

MAX_GAP = 1_000
"""A longer gap gets one placeholder. A damaged sequence number can make a gap of any length."""
MAX_PROBES = 10_000
"""How many messages are looked up one by one where the index cannot be read."""
MISSING = "is missing"
_UNREADABLE = "is damaged"
_OF_LOG = "account_id = ? AND log_id = ?"
_CHARS_PER_TOKEN = 4


def read_range(tx: Tx, log_id: int, first: int, last: int, limit: int) -> list[Message]:
    """Read up to `limit` of the messages `first` to `last` of a log, with placeholders."""
    found: list[Message] = []
    for start, end in _seqs_and_gaps(tx, log_id, first, last, limit):
        if len(found) >= limit:
            break
        if start == end:
            found.append(read_one(tx, log_id, start))
        elif end - start < MAX_GAP:
            found += [_placeholder(tx, log_id, seq, MISSING) for seq in range(start, end + 1)]
        else:
            found.append(missing_range(start, end))
    return found[:limit]


def _seqs_and_gaps(tx: Tx, log_id: int, first: int, last: int, limit: int) -> Iterator[tuple[int, int]]:
    """Yield the sequence numbers of a range in order: each that exists as (seq, seq), and each gap as (first, last)."""
    expected = first
    for seq in _existing_seqs(tx, log_id, first, last, limit):
        if seq < expected:
            continue
        if seq > expected:
            yield expected, seq - 1
        yield seq, seq
        expected = seq + 1
    if expected <= last:
        end = min(last, first + limit - 1)
        yield expected, max(end, expected)


def _existing_seqs(tx: Tx, log_id: int, first: int, last: int, limit: int) -> list[int]:
    try:
        rows = tx.all(
            f"SELECT DISTINCT seq FROM messages WHERE {_OF_LOG} AND seq BETWEEN ? AND ? ORDER BY seq LIMIT ?",
            (tx.account, log_id, first, last, limit),
        )
    except tx.dialect.unreadable_row:
        return list(range(first, min(last, first + min(limit, MAX_PROBES) - 1) + 1))
    return [row[0] for row in rows if isinstance(row[0], int)]


def read_one(tx: Tx, log_id: int, seq: int) -> Message:
    """Read a message, or a placeholder for it."""
    try:
        rows = tx.all(f"SELECT {COLUMNS} FROM messages WHERE {_OF_LOG} AND seq = ?", (tx.account, log_id, seq))
    except tx.dialect.unreadable_row:
        return _placeholder(tx, log_id, seq, _UNREADABLE)
    for row in rows:  # a damaged index may find several
        intact = decode_intact(tx, log_id, [row])
        if intact is not None:
            return intact[0]
    return _placeholder(tx, log_id, seq, _UNREADABLE if rows else MISSING)


def decode_rows(tx: Tx, log_id: int, rows: Sequence[Row]) -> list[Message]:
    """Convert rows, with placeholders for damaged ones."""
    intact = decode_intact(tx, log_id, rows)
    return [read_one(tx, log_id, row[3]) for row in rows] if intact is None else intact


def decode_intact(tx: Tx, log_id: int, rows: Sequence[Row]) -> list[Message] | None:
    """Convert rows, or return None if one of them is damaged."""
    if not are_intact(tx, "messages", rows, seed_of_log(tx.account, log_id)):
        return None
    try:
        return decode(rows)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError):  # in a row that has no checksum yet
        return None


def read_rows(tx: Tx, log_id: int, first: int, last: int) -> list[Row]:
    """Read the checked columns of a short range of messages, and for each whether it is damaged."""
    found: list[Row] = []
    for seq in range(first, last + 1):
        try:
            rows = tx.all(f"SELECT {COLUMNS} FROM messages WHERE {_OF_LOG} AND seq = ?", (tx.account, log_id, seq))
        except tx.dialect.unreadable_row:
            rows = []
        intact = [row for row in rows if decode_intact(tx, log_id, [row]) is not None]
        if intact:
            found.append((*intact[0][:-1], False))
        else:
            stored_id = _stored_value(tx, log_id, seq, "id")
            found.append((stored_id, None, None, seq, None, None, None, True))
    return found


def placeholder_text(seq: int, problem: str) -> str:
    return f"Message {seq} of this session {problem}. A backup may have it; `holdfast doctor --deep` lists all damage."


def _placeholder(tx: Tx, log_id: int, seq: int, problem: str) -> Message:
    """A message in place of a damaged one, with the id, the role and the time that are stored, if they are valid."""
    id_: Any
    role: Any
    id_, role, created_at = (
        (None, None, None)
        if problem == MISSING
        else [_stored_value(tx, log_id, seq, column) for column in ("id", "role", "created_at")]
    )
    text = placeholder_text(seq, problem)
    return Message(
        id=id_ if isinstance(id_, str) and id_ else f"damaged_{seq}",
        role=role if role in get_args(Role) else "assistant",
        parts=[TextPart(text)],
        created_at=from_micros(created_at if isinstance(created_at, int) and 0 <= created_at < 2**52 else 0),
        seq=seq,
        tokens=len(text) // _CHARS_PER_TOKEN,
        damaged=True,
    )


def missing_range(first: int, last: int) -> Message:
    text = (
        f"Messages {first} to {last} of this session are missing. A backup may have them; `holdfast doctor --deep`"
        " lists all damage."
    )
    return Message(
        id=f"damaged_{first}_{last}",
        role="assistant",
        parts=[TextPart(text)],
        created_at=from_micros(0),
        seq=last,
        tokens=len(text) // _CHARS_PER_TOKEN,
        damaged=True,
    )


def _stored_value(tx: Tx, log_id: int, seq: int, column: str) -> Any:
    """One column of a message, or None if it cannot be read."""
    try:
        row = tx.one(f"SELECT {column} FROM messages WHERE {_OF_LOG} AND seq = ?", (tx.account, log_id, seq))
    except tx.dialect.unreadable_row:
        return None
    return row[0] if row else None
