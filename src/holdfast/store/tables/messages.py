"""Messages: an append-only log per session. Each has a sequence number, a token count and a text index entry."""

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.model.messages import Message, Role, seq_from_id
from holdfast.model.parts import Part
from holdfast.store import read_memory
from holdfast.store.database import Row, Tx
from holdfast.store.tables import tool_calls
from holdfast.store.tables.lineage import LogRange
from holdfast.store.tables.sessions import StoredSession
from holdfast.store.timestamps import from_micros

MAX_SYSTEM_MESSAGES = 20
"""How many of the last system messages are searched for one with text."""
CHARS_PER_TOKEN = 4
_COLUMNS = "id, role, created_at, seq, tokens, extra, parts"
_OVERHEAD_BYTES = 200
"""About the bytes of a message in a response without its parts."""
_SIZE = f"OCTET_LENGTH(m.parts) + COALESCE(OCTET_LENGTH(m.extra), 0) + {_OVERHEAD_BYTES}"
"""About the bytes of a message in a response. The database knows them without reading the columns."""
_decode_parts = msgspec.json.Decoder(list[list[Part]]).decode

_INSERT = (
    "INSERT INTO messages (account_id, log_id, seq, id, id_given, role, parts, tokens, tokens_through, author,"
    " created_at, added_at, extra) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class Extra(msgspec.Struct, frozen=True, omit_defaults=True):
    """Fields that few messages have, stored as JSON in the column `extra`."""

    peer_id: str | None = None
    turn_id: str | None = None
    message_kind: str | None = None
    source_message_ids: list[str] | None = None
    metadata: dict[str, Any] | None = None


_decode_extra = msgspec.json.Decoder(Extra).decode


class Draft(msgspec.Struct, frozen=True):
    """A validated message that is ready to be stored."""

    id: str | None
    """The id that the caller gave. Without one, an id is generated when the message gets its sequence number."""
    role: Role
    parts_json: str
    extra: str | None
    tokens: int
    created_at: int
    parts: list[Part]
    """The decoded `parts_json`."""


class StoredMessage(msgspec.Struct, frozen=True):
    """The columns that are compared to recognise a retry."""

    id: str
    role: str
    parts_json: str
    extra: str | None
    created_at: int
    seq: int


class MessageRows(msgspec.Struct, frozen=True):
    """Messages that were read at once."""

    messages: list[Message]
    bytes: int
    """Their size, or 0 if reads are not limited."""
    has_more: bool
    """Whether messages follow that did not fit."""


def append(tx: Tx, session: StoredSession, author: str, drafts: Sequence[Draft], ids: Sequence[str], now: int) -> int:
    """Store `drafts` after the last message of a locked session. Return the session's new number of tokens."""
    tokens = session.tokens_total
    log_id = session.log_id
    for seq, (draft, id) in enumerate(zip(drafts, ids, strict=True), session.last_seq + 1):  # noqa: A001
        tokens += draft.tokens
        tx.execute(
            _INSERT,
            (
                tx.account,
                log_id,
                seq,
                id,
                int(draft.id is not None),
                draft.role,
                draft.parts_json,
                draft.tokens,
                tokens,
                author,
                draft.created_at,
                now,
                draft.extra,
            ),
        )
        tool_calls.insert(tx, log_id, seq, draft.parts)
    if tx.dialect.index_text is not None:
        largest = max([len(draft.parts_json) for draft in drafts])
        tx.dialect.index_text(tx, log_id, session.last_seq, session.last_seq + len(drafts), largest)
    return tokens


def read(tx: Tx, log_ranges: Sequence[LogRange], limit: int, words: Sequence[str] | None = None) -> list[Message]:
    """Read up to `limit` messages in order; with `words`, only messages that contain all of them."""
    rows: list[Row] = []
    for log_range in log_ranges:
        condition, query = ("TRUE", ()) if words is None else tx.dialect.match_text(tx, log_range.log_id, list(words))
        rows += tx.all(
            f"SELECT {_COLUMNS} FROM messages m WHERE m.account_id = ? AND m.log_id = ? AND m.seq BETWEEN ? AND ?"
            f" AND {condition} ORDER BY m.seq LIMIT ?",
            (tx.account, log_range.log_id, log_range.first, log_range.last, *query, limit - len(rows)),
        )
        if len(rows) == limit:
            break
    return _messages(rows)


def read_page(
    tx: Tx,
    log_ranges: Sequence[LogRange],
    limit: int,
    words: Sequence[str] | None = None,
    *,
    max_bytes: int = read_memory.NO_LIMIT,
    at_least_one: bool = True,
) -> MessageRows:
    """As `read`, but return at most `max_bytes`, and at most as much as a read may hold at once.

    With `at_least_one`, a message that is larger than `max_bytes` is returned if it is the first one.
    """
    if not read_memory.is_limited():
        return MessageRows(read(tx, log_ranges, limit, words), 0, has_more=False)
    largest, max_bytes = read_memory.largest_row(), min(max_bytes, read_memory.page_bytes())
    rows: list[Row] = []
    total, has_more = 0, False
    for log_range in log_ranges:
        condition, query = ("TRUE", ()) if words is None else tx.dialect.match_text(tx, log_range.log_id, list(words))
        # More rows do not fit, and PostgreSQL would count them.
        row_limit = min(limit - len(rows), (max_bytes - total) // _OVERHEAD_BYTES + 2)
        found, has_more = tx.all_within(
            "SELECT id, role, created_at, seq, tokens, CASE WHEN OCTET_LENGTH(m.extra) <= ? THEN extra END AS extra,"
            f" CASE WHEN OCTET_LENGTH(m.parts) <= ? THEN parts END AS parts, {_SIZE} AS bytes FROM messages m"
            f" WHERE m.account_id = ? AND m.log_id = ? AND m.seq BETWEEN ? AND ? AND {condition}"
            " ORDER BY m.seq LIMIT ?",
            (
                *(largest, largest, tx.account, log_range.log_id, log_range.first, log_range.last),
                *(*query, row_limit),
            ),
            max_bytes - total,
            "seq",
        )
        if found and total + found[0][-1] > max_bytes:
            if rows or not at_least_one:
                has_more = True
                break
            read_memory.require(found[0][-1])
        rows += [row[:-1] for row in found]
        total += sum([row[-1] for row in found])
        if has_more or len(rows) == limit:
            break
    return MessageRows(_messages(rows), total, has_more=has_more)


def read_seqs(tx: Tx, log_id: int, seqs: Sequence[int]) -> list[Message]:
    """Read the messages of a log with the given sequence numbers, in order."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM messages m WHERE m.account_id = ? AND m.log_id = ? AND m.seq IN ({_marks(seqs)})"
        " ORDER BY m.seq",
        (tx.account, log_id, *seqs),
    )
    return _messages(rows)


def token_counts(tx: Tx, log_ranges: Sequence[LogRange], limit: int) -> list[tuple[int, int]]:
    """List the sequence number and the tokens of up to `limit` messages in order, without reading the messages."""
    counts: list[tuple[int, int]] = []
    for log_range in log_ranges:
        rows = tx.all(
            "SELECT seq, tokens FROM messages WHERE account_id = ? AND log_id = ? AND seq BETWEEN ? AND ?"
            " ORDER BY seq LIMIT ?",
            (tx.account, log_range.log_id, log_range.first, log_range.last, limit - len(counts)),
        )
        counts += [(seq, tokens) for seq, tokens in rows]
        if len(counts) == limit:
            break
    return counts


def sizes(tx: Tx, log_id: int, seqs: Sequence[int]) -> list[tuple[int, int]]:
    """List the sequence number and the size in bytes of messages of a log, in order, without reading the messages."""
    return [
        (seq, size)
        for seq, size in tx.all(
            "SELECT seq, OCTET_LENGTH(parts) FROM messages WHERE account_id = ? AND log_id = ?"
            f" AND seq IN ({_marks(seqs)}) ORDER BY seq",
            (tx.account, log_id, *seqs),
        )
    ]


def _marks(values: Sequence[int]) -> str:
    return ", ".join("?" * len(values)) or "NULL"


def find_seq(tx: Tx, log_ranges: Sequence[LogRange], id: str) -> int | None:
    """Find the sequence number of the message with this id within `log_ranges`."""
    generated_seq = seq_from_id(id)
    for log_range in log_ranges:
        row = tx.one(
            "SELECT seq FROM messages WHERE account_id = ? AND id = ? AND log_id = ? AND id_given = 1",
            (tx.account, id, log_range.log_id),
        )
        if row is None and generated_seq is not None:
            row = tx.one(
                "SELECT seq FROM messages WHERE account_id = ? AND log_id = ? AND seq = ? AND id = ?",
                (tx.account, log_range.log_id, generated_seq, id),
            )
        if row is not None and log_range.first <= row[0] <= log_range.last:
            return int(row[0])
    return None


def read_stored(tx: Tx, log_ranges: Sequence[LogRange]) -> list[StoredMessage]:
    rows: list[Row] = []
    for log_range in log_ranges:
        rows += tx.all(
            "SELECT id, role, parts, extra, created_at, seq FROM messages"
            " WHERE account_id = ? AND log_id = ? AND seq BETWEEN ? AND ? ORDER BY seq",
            (tx.account, log_range.log_id, log_range.first, log_range.last),
        )
    return [StoredMessage(*row) for row in rows]


def last_seq_of_role(tx: Tx, log_ranges: Sequence[LogRange], role: Role) -> int:
    """Find the sequence number of the last message of a role, or 0."""
    for log_range in reversed(log_ranges):
        row = tx.one(
            "SELECT seq FROM messages WHERE account_id = ? AND log_id = ? AND seq BETWEEN ? AND ? AND role = ?"
            " ORDER BY seq DESC LIMIT 1",
            (tx.account, log_range.log_id, log_range.first, log_range.last, role),
        )
        if row is not None:
            return int(row[0])
    return 0


def latest_system_message(tx: Tx, log_ranges: Sequence[LogRange]) -> Message | None:
    """Find the last system message with text.

    The role is a literal in the SQL, so that the partial index on system messages is used.
    """
    for log_range in reversed(log_ranges):
        rows = tx.all(
            f"SELECT seq, {_SIZE} FROM messages m WHERE account_id = ? AND log_id = ? AND seq BETWEEN ? AND ?"
            " AND role = 'system' ORDER BY seq DESC LIMIT ?",
            (tx.account, log_range.log_id, log_range.first, log_range.last, MAX_SYSTEM_MESSAGES),
        )
        for seq, size in rows:
            read_memory.require(size)
            (message,) = read_seqs(tx, log_range.log_id, [seq])
            if message.text.strip():
                return message
    return None


def state_at(tx: Tx, log_range: LogRange) -> tuple[int, int | None, int | None]:
    """The session's tokens up to the last message of `log_range`, and that message's `created_at` and `added_at`."""
    row = tx.one(
        "SELECT tokens_through, created_at, added_at FROM messages WHERE account_id = ? AND log_id = ? AND seq = ?",
        (tx.account, log_range.log_id, log_range.last),
    )
    return (row[0], row[1], row[2]) if row else (0, None, None)


def totals(tx: Tx, log_ranges: Sequence[LogRange]) -> tuple[dict[str, int], int | None]:
    """Count the messages of each role, and find the earliest `created_at`."""
    counts: dict[str, int] = {}
    first: int | None = None
    for log_range in log_ranges:
        for role, count, earliest in tx.all(
            "SELECT role, COUNT(*), MIN(created_at) FROM messages"
            " WHERE account_id = ? AND log_id = ? AND seq BETWEEN ? AND ? GROUP BY role",
            (tx.account, log_range.log_id, log_range.first, log_range.last),
        ):
            counts[role] = counts.get(role, 0) + count
            first = earliest if first is None else min(first, earliest)
    return counts, first


def last_seq(tx: Tx, log_id: int) -> int:
    """The sequence number of the last message in a log, or 0."""
    row = tx.one("SELECT MAX(seq) FROM messages WHERE account_id = ? AND log_id = ?", (tx.account, log_id))
    return row[0] or 0 if row else 0


def estimated_sizes(tx: Tx, log_id: int, after: int) -> list[tuple[int, int]]:
    """List the sequence number and the estimated characters of each message after `after`, newest first."""
    rows = tx.all(
        "SELECT seq, tokens FROM messages WHERE account_id = ? AND log_id = ? AND seq > ? ORDER BY seq DESC",
        (tx.account, log_id, after),
    )
    return [(seq, CHARS_PER_TOKEN * tokens) for seq, tokens in rows]


def delete_after(tx: Tx, log_id: int, seq: int) -> None:
    """Delete the messages of a log after `seq`, with their tool calls and text index entries."""
    tx.execute(tx.dialect.delete_text, (tx.account, log_id, seq))
    tool_calls.delete_after(tx, log_id, seq)
    tx.execute("DELETE FROM messages WHERE account_id = ? AND log_id = ? AND seq > ?", (tx.account, log_id, seq))


def _messages(rows: Sequence[Row]) -> list[Message]:
    # Joining the JSON arrays and decoding once is faster than decoding each row.
    parts_by_row = _decode_parts("[" + ",".join([row[6] for row in rows]) + "]")
    return [
        Message(id, role, parts, from_micros(created_at), seq, tokens)
        if extra is None
        else _with_extra(Message(id, role, parts, from_micros(created_at), seq, tokens), extra)
        for (id, role, created_at, seq, tokens, extra, _), parts in zip(rows, parts_by_row, strict=True)  # noqa: A001
    ]


def _with_extra(message: Message, extra: str) -> Message:
    return msgspec.structs.replace(message, **msgspec.structs.asdict(_decode_extra(extra)))
