"""Changes to a session other than new messages, for the event stream."""

from typing import Any

import msgspec

from holdfast.model.sessions import Change
from holdfast.store import read_memory
from holdfast.store.database import Tx
from holdfast.store.tables.sessions import StoredSession
from holdfast.store.timestamps import from_micros

_OVERHEAD_BYTES = 200
"""The approximate size of a change in a response, without its data."""
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class StoredChange(msgspec.Struct, frozen=True):
    number: int
    after_seq: int
    """The sequence number of the last message at the time of the change."""
    change: Change
    bytes: int
    """Its approximate size in a response."""


def record(tx: Tx, session: StoredSession, kind: str, user_id: str, now: int, data: dict[str, Any]) -> None:
    """Record a change after the last message and the last change of a session. The session must be locked or new."""
    tx.execute(
        "INSERT INTO changes (account_id, log_id, number, after_seq, kind, at, user_id, data)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            tx.account,
            session.log_id,
            last_number(tx, session.log_id) + 1,
            session.last_seq,
            kind,
            now,
            user_id,
            msgspec.json.encode(data).decode(),
        ),
    )


def last_number(tx: Tx, log_id: int) -> int:
    row = tx.one("SELECT MAX(number) FROM changes WHERE account_id = ? AND log_id = ?", (tx.account, log_id))
    return row[0] or 0 if row else 0


def read_page(tx: Tx, log_id: int, after: int, limit: int, max_bytes: int) -> tuple[list[StoredChange], bool]:
    """Read up to `limit` changes after number `after`, and whether there are more that exceed `max_bytes`."""
    rows, has_more = tx.all_within(
        f"SELECT number, after_seq, kind, at, user_id, data, OCTET_LENGTH(data) + {_OVERHEAD_BYTES} AS bytes"
        " FROM changes WHERE account_id = ? AND log_id = ? AND number > ? ORDER BY number LIMIT ?",
        (tx.account, log_id, after, limit),
        min(max_bytes, read_memory.page_bytes()),
        "number",
    )
    changes = [
        StoredChange(
            row[0], row[1], Change(kind=row[2], at=from_micros(row[3]), user_id=row[4], data=_decode(row[5])), row[6]
        )
        for row in rows
    ]
    return changes, has_more
