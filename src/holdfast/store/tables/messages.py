"""Messages: an append-only log per session. Each has a sequence number and a token count."""

from collections.abc import Sequence

import msgspec

from holdfast.model.messages import Message, Role, seq_from_id
from holdfast.model.parts import Part, TextPart
from holdfast.store import read_memory
from holdfast.store.checked import salvage
from holdfast.store.checked.message_rows import COLUMNS
from holdfast.store.checksums import checksum_of, seed_of_log
from holdfast.store.database import Tx
from holdfast.store.tables import documents, tool_calls, unindexed
from holdfast.store.tables.lineage import LogRange
from holdfast.store.tables.sessions import StoredSession
from holdfast.store.timestamps import from_micros

MAX_SYSTEM_MESSAGES = 20
"""How many of the last system messages are searched for one with text."""
CHARS_PER_TOKEN = 4
UNREADABLE_PAGE = 20
"""How many messages a page has where the sizes cannot be read, because of damage."""
_OF_RANGE = "account_id = ? AND log_id = ? AND seq BETWEEN ? AND ?"
_OVERHEAD_BYTES = 200
"""The approximate size of a message in a response, without its parts."""
_SIZE = f"OCTET_LENGTH(m.parts) + COALESCE(OCTET_LENGTH(m.extra), 0) + {_OVERHEAD_BYTES}"
"""The approximate size of a message in a response. The database knows it without reading the columns."""

_INSERT = (
    "INSERT INTO messages (account_id, log_id, seq, id, id_given, role, parts, tokens, tokens_through, author,"
    " created_at, added_at, extra, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


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
    is_damaged: bool
    """Whether the other fields cannot be compared."""


class MessageRows(msgspec.Struct, frozen=True):
    """Messages that were read at once."""

    messages: list[Message]
    bytes: int
    """Their size, or 0 if reads are not limited."""
    has_more: bool
    """Whether messages follow that did not fit."""


def append(tx: Tx, session: StoredSession, author: str, drafts: Sequence[Draft], ids: Sequence[str], now: int) -> int:
    """Store `drafts` after the last message of a locked session. Return the session's new number of tokens."""
    tokens, last = session.tokens_total, session.last_seq
    log_id = session.log_id
    seed = seed_of_log(tx.account, log_id)
    for seq, (draft, id) in enumerate(zip(drafts, ids, strict=True), last + 1):  # noqa: A001
        tokens += draft.tokens
        checked = (id, draft.role, draft.created_at, seq, draft.tokens, draft.extra, draft.parts_json)
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
                checksum_of(checked, seed),
            ),
        )
        tool_calls.insert(tx, log_id, seq, draft.parts)
    if session.indexed_seq == last:
        unindexed.add(tx, log_id)
    return tokens


def read(tx: Tx, log_ranges: Sequence[LogRange], limit: int, words: Sequence[str] | None = None) -> list[Message]:
    """Read up to `limit` messages in order; with `words`, only messages that contain all of them.

    A placeholder takes the place of a damaged or missing message.
    """
    found: list[Message] = []
    for log_range in log_ranges:
        left = limit - len(found)
        if left <= 0:
            break
        found += _search_range(tx, log_range, left, words) if words is not None else _read_range(tx, log_range, left)
    return found


def _read_range(tx: Tx, log_range: LogRange, limit: int) -> list[Message]:
    first, last = log_range.first, min(log_range.last, log_range.first + limit - 1)
    try:
        rows = tx.all(
            f"SELECT {COLUMNS} FROM messages WHERE {_OF_RANGE} ORDER BY seq LIMIT ?",
            (tx.account, log_range.log_id, first, last, limit),
        )
    except tx.dialect.unreadable_row:
        rows = []
    # Sequence numbers have no gaps: a missing one is damage too.
    intact = salvage.decode_intact(tx, log_range.log_id, rows) if len(rows) == last - first + 1 else None
    return salvage.read_range(tx, log_range.log_id, first, log_range.last, limit) if intact is None else intact


def _search_range(tx: Tx, log_range: LogRange, limit: int, words: Sequence[str]) -> list[Message]:
    condition, query = tx.dialect.match_text(tx, log_range.log_id, list(words))
    found = (
        "FROM messages m WHERE m.account_id = ? AND m.log_id = ? AND m.seq BETWEEN ? AND ?"
        f" AND {condition} ORDER BY m.seq LIMIT ?"
    )
    params = (tx.account, log_range.log_id, log_range.first, log_range.last, *query, limit)
    try:
        rows = tx.all(f"SELECT {COLUMNS} {found}", params)
    except tx.dialect.unreadable_row:
        seqs = tx.all(f"SELECT m.seq {found}", params)
        return [salvage.read_one(tx, log_range.log_id, row[0]) for row in seqs]
    return salvage.decode_rows(tx, log_range.log_id, rows)


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
    max_bytes = min(max_bytes, read_memory.page_bytes())
    found: list[Message] = []
    total, has_more = 0, False
    for log_range in log_ranges:
        fitting, has_more = _fitting(tx, log_range, limit - len(found), words, max_bytes - total)
        if fitting and total + fitting[0][1] > max_bytes:
            if found or not at_least_one:
                has_more = True
                break
            read_memory.require(fitting[0][1])
        total += sum([size for _, size in fitting])
        if words is not None:
            found += read_seqs(tx, log_range.log_id, [seq for seq, _ in fitting])
        else:
            # Up to the last one that fits, or to the end: missing ones, which are damage, get placeholders.
            last = fitting[-1][0] if has_more or len(fitting) == limit - len(found) else log_range.last
            found += _read_range(tx, LogRange(log_range.log_id, log_range.first, last), limit - len(found))
        if has_more or len(found) >= limit:
            break
    return MessageRows(found, total, has_more=has_more)


def _fitting(
    tx: Tx, log_range: LogRange, limit: int, words: Sequence[str] | None, max_bytes: int
) -> tuple[list[tuple[int, int]], bool]:
    """List the sequence numbers and sizes of messages that fit, or of the first one. Return whether others follow."""
    condition, query = ("TRUE", ()) if words is None else tx.dialect.match_text(tx, log_range.log_id, list(words))
    # More rows do not fit, and PostgreSQL would count them.
    row_limit = min(limit, max_bytes // _OVERHEAD_BYTES + 2)
    try:
        rows, has_more = tx.all_within(
            f"SELECT m.seq, {_SIZE} AS bytes FROM messages m"
            f" WHERE m.account_id = ? AND m.log_id = ? AND m.seq BETWEEN ? AND ? AND {condition}"
            " ORDER BY m.seq LIMIT ?",
            (tx.account, log_range.log_id, log_range.first, log_range.last, *query, row_limit),
            max_bytes,
            "seq",
        )
    except tx.dialect.unreadable_row:
        last = min(log_range.last, log_range.first + min(limit, UNREADABLE_PAGE) - 1)
        return [(seq, _OVERHEAD_BYTES) for seq in range(log_range.first, last + 1)], last < log_range.last
    return [(seq, size) for seq, size in rows], has_more


def read_seqs(tx: Tx, log_id: int, seqs: Sequence[int]) -> list[Message]:
    """Read the messages of a log with the given sequence numbers, which are in order."""
    try:
        rows = tx.all(
            f"SELECT {COLUMNS} FROM messages WHERE account_id = ? AND log_id = ? AND seq IN ({_marks(seqs)})"
            " ORDER BY seq",
            (tx.account, log_id, *seqs),
        )
    except tx.dialect.unreadable_row:
        rows = []
    intact = salvage.decode_intact(tx, log_id, rows) if len(rows) == len(seqs) else None
    return [salvage.read_one(tx, log_id, seq) for seq in seqs] if intact is None else intact


def last_fitting(tx: Tx, log_range: LogRange, limit: int, max_bytes: int) -> int:
    """Return the last sequence number so that a read from the first one on is limited in messages and in bytes."""
    fitting, has_more = _fitting(tx, log_range, limit, None, max_bytes)
    if not fitting:
        return min(log_range.last, log_range.first + limit - 1)
    # Up to the end, missing messages are damage: placeholders take their places.
    return fitting[-1][0] if has_more or len(fitting) == limit else log_range.last


def newest_sizes(tx: Tx, log_range: LogRange, limit: int) -> list[tuple[int, int]]:
    """List the sequence number and the approximate size of the last messages of a range, newest first."""
    rows = tx.all(
        f"SELECT m.seq, {_SIZE} FROM messages m WHERE m.account_id = ? AND m.log_id = ? AND m.seq BETWEEN ? AND ?"
        " ORDER BY m.seq DESC LIMIT ?",
        (tx.account, log_range.log_id, log_range.first, log_range.last, limit),
    )
    return [(seq, size) for seq, size in rows]


def read_header(tx: Tx, log_id: int, seq: int, text: str) -> Message:
    """Read a message without its parts and further fields. `text` takes their place."""
    row = tx.one(
        "SELECT id, role, created_at, tokens FROM messages WHERE account_id = ? AND log_id = ? AND seq = ?",
        (tx.account, log_id, seq),
    )
    if row is None:
        return salvage.read_one(tx, log_id, seq)
    id, role, created_at, tokens = row  # noqa: A001
    return Message(id, role, [TextPart(text)], from_micros(created_at), seq, tokens)


def token_counts(tx: Tx, log_ranges: Sequence[LogRange], limit: int) -> list[tuple[int, int]]:
    """List the sequence number and the tokens of up to `limit` messages in order, without reading the messages."""
    counts: list[tuple[int, int]] = []
    for log_range in log_ranges:
        rows = tx.all(
            f"SELECT seq, tokens FROM messages WHERE {_OF_RANGE} ORDER BY seq LIMIT ?",
            (tx.account, log_range.log_id, log_range.first, log_range.last, limit - len(counts)),
        )
        counts += [(seq, tokens) for seq, tokens in rows]
        if len(counts) == limit:
            break
    return counts


def sizes(tx: Tx, log_id: int, seqs: Sequence[int]) -> dict[int, int]:
    """Return the sizes in bytes of messages of a log by sequence number, without reading the messages."""
    try:
        rows = tx.all(
            "SELECT seq, OCTET_LENGTH(parts) FROM messages WHERE account_id = ? AND log_id = ?"
            f" AND seq IN ({_marks(seqs)})",
            (tx.account, log_id, *seqs),
        )
    except tx.dialect.unreadable_row:
        return {}
    return {seq: size for seq, size in rows if isinstance(size, int)}


def next_seq(tx: Tx, log_range: LogRange) -> int | None:
    """Return the first sequence number of a range at which there is a message."""
    row = tx.one(
        f"SELECT seq FROM messages WHERE {_OF_RANGE} ORDER BY seq LIMIT 1",
        (tx.account, log_range.log_id, log_range.first, log_range.last),
    )
    return row[0] if row else None


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
    return [
        StoredMessage(row[0], row[1], row[6], row[5], row[2], row[3], row[7])
        for each in log_ranges
        for row in salvage.read_rows(tx, each.log_id, each.first, each.last)
    ]


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
    documents.delete_messages_after(tx, log_id, seq)
    tool_calls.delete_after(tx, log_id, seq)
    tx.execute("DELETE FROM messages WHERE account_id = ? AND log_id = ? AND seq > ?", (tx.account, log_id, seq))
