"""Messages: an append-only log per session, each with the next number, its cost and its place in the text index."""

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.model.messages import Message, Role, seq_from_id
from holdfast.model.parts import Part
from holdfast.store.database import Row, Tx
from holdfast.store.tables import call_ids
from holdfast.store.tables.lineage import LogRange
from holdfast.store.tables.sessions import StoredSession
from holdfast.store.timestamps import from_micros
from holdfast.text.words import indexed

SYSTEM_MESSAGES = 20
"""How many of the last system messages are looked at for one that says something."""
_COLUMNS = "id, role, created_at, seq, tokens, extra, parts"
_decode_parts = msgspec.json.Decoder(list[list[Part]]).decode

_INSERT = (
    "INSERT INTO messages (account_id, log_id, seq, id, id_given, role, parts, tokens, tokens_through, author,"
    " created_at, added_at, extra) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class Extra(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fields that few messages have."""

    peer_id: str | None = None
    turn_id: str | None = None
    message_kind: str | None = None
    source_message_ids: list[str] | None = None
    metadata: dict[str, Any] | None = None


_decode_extra = msgspec.json.Decoder(Extra).decode


class Draft(msgspec.Struct, frozen=True):
    """A message ready to be stored: checked, counted, encoded."""

    id: str | None
    """The caller's, if there is one; else it is made when the message gets its number."""
    role: Role
    parts: str
    extra: str | None
    tokens: int
    created_at: int
    said: list[Part]
    """What `parts` encodes."""


class StoredMessage(msgspec.Struct, frozen=True):
    """What a retry is compared with."""

    id: str
    role: str
    parts: str
    extra: str | None
    created_at: int
    seq: int


def append(tx: Tx, session: StoredSession, author: str, drafts: Sequence[Draft], ids: Sequence[str], now: int) -> int:
    """Store `drafts` behind the last message of a session, which is locked; the session's new number of tokens."""
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
                draft.parts,
                draft.tokens,
                tokens,
                author,
                draft.created_at,
                now,
                draft.extra,
            ),
        )
        call_ids.insert(tx, log_id, seq, draft.said)
        if tx.dialect.insert_text:
            tx.execute(tx.dialect.insert_text, (tx.account, log_id, seq, indexed(draft.said)))
    return tokens


def read(tx: Tx, log_ranges: Sequence[LogRange], limit: int, words: Sequence[str] | None = None) -> list[Message]:
    """Up to `limit` messages in order; with `words`, those that contain all of them."""
    condition, query = ("TRUE", []) if words is None else tx.dialect.match_text(tx.account, list(words))
    rows: list[Row] = []
    for stretch in log_ranges:
        rows += tx.all(
            f"SELECT {_COLUMNS} FROM messages m WHERE m.account_id = ? AND m.log_id = ? AND m.seq BETWEEN ? AND ?"
            f" AND {condition} ORDER BY m.seq LIMIT ?",
            (tx.account, stretch.log_id, stretch.first, stretch.last, *query, limit - len(rows)),
        )
        if len(rows) == limit:
            break
    return _messages(rows)


def seq_of(tx: Tx, log_ranges: Sequence[LogRange], id: str) -> int | None:
    """The number of the message with this id within `log_ranges`."""
    told = seq_from_id(id)
    for stretch in log_ranges:
        row = tx.one(
            "SELECT seq FROM messages WHERE account_id = ? AND id = ? AND log_id = ? AND id_given = 1",
            (tx.account, id, stretch.log_id),
        )
        if row is None and told is not None:
            row = tx.one(
                "SELECT seq FROM messages WHERE account_id = ? AND log_id = ? AND seq = ? AND id = ?",
                (tx.account, stretch.log_id, told, id),
            )
        if row is not None and stretch.first <= row[0] <= stretch.last:
            return int(row[0])
    return None


def stored(tx: Tx, log_ranges: Sequence[LogRange]) -> list[StoredMessage]:
    rows: list[Row] = []
    for stretch in log_ranges:
        rows += tx.all(
            "SELECT id, role, parts, extra, created_at, seq FROM messages"
            " WHERE account_id = ? AND log_id = ? AND seq BETWEEN ? AND ? ORDER BY seq",
            (tx.account, stretch.log_id, stretch.first, stretch.last),
        )
    return [StoredMessage(*row) for row in rows]


def last_of_role(tx: Tx, log_ranges: Sequence[LogRange], role: Role) -> int:
    """The number of the last message of a role, or 0. Looks from the end."""
    for stretch in reversed(log_ranges):
        row = tx.one(
            "SELECT seq FROM messages WHERE account_id = ? AND log_id = ? AND seq BETWEEN ? AND ? AND role = ?"
            " ORDER BY seq DESC LIMIT 1",
            (tx.account, stretch.log_id, stretch.first, stretch.last, role),
        )
        if row is not None:
            return int(row[0])
    return 0


def latest_system(tx: Tx, log_ranges: Sequence[LogRange]) -> Message | None:
    """The last system message with a text. A small index has only those, and is used: the role is written out."""
    for stretch in reversed(log_ranges):
        rows = tx.all(
            f"SELECT {_COLUMNS} FROM messages WHERE account_id = ? AND log_id = ? AND seq BETWEEN ? AND ?"
            " AND role = 'system' ORDER BY seq DESC LIMIT ?",
            (tx.account, stretch.log_id, stretch.first, stretch.last, SYSTEM_MESSAGES),
        )
        spoken = next((message for message in _messages(rows) if message.text.strip()), None)
        if spoken is not None:
            return spoken
    return None


def state_at(tx: Tx, stretch: LogRange) -> tuple[int, int | None, int | None]:
    """The tokens of a session through the last message of `stretch`, that message's time, and when it was added."""
    row = tx.one(
        "SELECT tokens_through, created_at, added_at FROM messages WHERE account_id = ? AND log_id = ? AND seq = ?",
        (tx.account, stretch.log_id, stretch.last),
    )
    return (row[0], row[1], row[2]) if row else (0, None, None)


def totals(tx: Tx, log_ranges: Sequence[LogRange]) -> tuple[dict[str, int], int | None]:
    """How many messages there are of each role, and the time of the first of all."""
    counts: dict[str, int] = {}
    first: int | None = None
    for stretch in log_ranges:
        for role, count, earliest in tx.all(
            "SELECT role, COUNT(*), MIN(created_at) FROM messages"
            " WHERE account_id = ? AND log_id = ? AND seq BETWEEN ? AND ? GROUP BY role",
            (tx.account, stretch.log_id, stretch.first, stretch.last),
        ):
            counts[role] = counts.get(role, 0) + count
            first = earliest if first is None else min(first, earliest)
    return counts, first


def delete_after(tx: Tx, log_id: int, seq: int) -> None:
    """Erase the messages of a log behind `seq`, also from the text index."""
    tx.execute(tx.dialect.delete_text, (tx.account, log_id, seq))
    call_ids.delete_after(tx, log_id, seq)
    tx.execute("DELETE FROM messages WHERE account_id = ? AND log_id = ? AND seq > ?", (tx.account, log_id, seq))


def _messages(rows: Sequence[Row]) -> list[Message]:
    # One decode for all rows: the parts are JSON arrays, and so is a list of them.
    parts = _decode_parts("[" + ",".join([row[6] for row in rows]) + "]")
    return [
        Message(id, role, its_parts, from_micros(created_at), seq, tokens)
        if extra is None
        else _with_extra(Message(id, role, its_parts, from_micros(created_at), seq, tokens), extra)
        for (id, role, created_at, seq, tokens, extra, _), its_parts in zip(rows, parts, strict=True)  # noqa: A001
    ]


def _with_extra(message: Message, extra: str) -> Message:
    return msgspec.structs.replace(message, **msgspec.structs.asdict(_decode_extra(extra)))
