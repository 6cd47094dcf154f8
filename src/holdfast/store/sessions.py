"""Sessions: a name that points to a log of messages, and what is known of it."""

from typing import Any

import msgspec

from holdfast.model import Fork, SessionInfo, SessionRow, SessionState, UserRef, session_uri
from holdfast.store import usages
from holdfast.store.database import Tx
from holdfast.store.moments import from_micros

_COLUMNS = (
    "user_id, session_id, log_id, title, metadata, state, created_at, updated_at, last_message_at,"
    " last_seq, live_from, tokens_total, tokens_archived, fork_seq, forked_from"
)
_BY_NAME = f"SELECT {_COLUMNS} FROM sessions WHERE account_id = ? AND user_id = ? AND session_id = ?"


class StoredSession(msgspec.Struct, frozen=True):
    """A row of `sessions`. Message `seq` is live from `live_from` on; up to `fork_seq` it is an ancestor's."""

    user_id: str
    session_id: str
    log_id: int
    title: str
    metadata: str
    state: SessionState
    created_at: int
    updated_at: int
    last_message_at: int | None
    last_seq: int
    live_from: int
    tokens_total: int
    tokens_archived: int
    fork_seq: int
    forked_from: str | None

    @property
    def live_count(self) -> int:
        return self.last_seq - self.live_from + 1


def find(tx: Tx, user_id: str, session_id: str, *, lock: bool = False) -> StoredSession | None:
    """The session, or None. With `lock` it stays as it is until the transaction ends."""
    row = tx.one(_BY_NAME + tx.dialect.lock_row if lock else _BY_NAME, (tx.account, user_id, session_id))
    return StoredSession(*row) if row else None


def insert(tx: Tx, session: StoredSession) -> bool:
    """Whether the name was free."""
    values = msgspec.structs.astuple(session)
    marks = ", ".join("?" * len(values))
    row = tx.one(
        f"INSERT INTO sessions (account_id, {_COLUMNS}) VALUES (?, {marks}) ON CONFLICT DO NOTHING RETURNING 1",
        (tx.account, *values),
    )
    return row is not None


def advance(tx: Tx, session: StoredSession, *, by: int, tokens: int, now: int) -> None:
    """Move the end of the log. The caller holds the session's lock."""
    tx.execute(
        "UPDATE sessions SET last_seq = ?, tokens_total = ?, last_message_at = ?, updated_at = ?"
        " WHERE account_id = ? AND user_id = ? AND session_id = ?",
        (
            session.last_seq + by,
            session.tokens_total + tokens,
            now,
            now,
            tx.account,
            session.user_id,
            session.session_id,
        ),
    )


def update(tx: Tx, session: StoredSession, *, title: str, metadata: str, state: str, now: int) -> None:
    tx.execute(
        "UPDATE sessions SET title = ?, metadata = ?, state = ?, updated_at = ?"
        " WHERE account_id = ? AND user_id = ? AND session_id = ?",
        (title, metadata, state, now, tx.account, session.user_id, session.session_id),
    )


def delete(tx: Tx, session: StoredSession) -> None:
    tx.execute(
        "DELETE FROM sessions WHERE account_id = ? AND user_id = ? AND session_id = ?",
        (tx.account, session.user_id, session.session_id),
    )


def log_is_alive(tx: Tx, log_id: int) -> bool:
    """Whether a session still appends to this log."""
    return tx.one("SELECT 1 FROM sessions WHERE account_id = ? AND log_id = ?", (tx.account, log_id)) is not None


def page(
    tx: Tx, user_id: str, *, limit: int, before: int | None, q: str | None, state: str | None
) -> list[StoredSession]:
    """Newest first. Log ids sort by the time of creation, so they order the listing and mark its pages."""
    where = ["account_id = ?", "user_id = ?"]
    params: list[str | int] = [tx.account, user_id]
    if before is not None:
        where.append("log_id < ?")
        params.append(before)
    if q is not None:
        where.append("(LOWER(session_id) LIKE ? ESCAPE '!' OR LOWER(title) LIKE ? ESCAPE '!')")
        params += [_containing(q)] * 2
    if state is not None:
        where.append("state = ?")
        params.append(state)
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM sessions WHERE {' AND '.join(where)} ORDER BY log_id DESC LIMIT ?",
        (*params, limit),
    )
    return [StoredSession(*row) for row in rows]


def _containing(q: str) -> str:
    literal = q.lower().replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return f"%{literal}%"


def info(tx: Tx, session: StoredSession) -> SessionInfo:
    contexts_used, skills_used = usages.totals(tx, session.log_id)
    return SessionInfo(
        session_id=session.session_id,
        uri=session_uri(session.user_id, session.session_id),
        user=UserRef(tx.account, session.user_id),
        title=session.title,
        metadata=decode_metadata(session.metadata),
        state=session.state,
        created_at=from_micros(session.created_at),
        updated_at=from_micros(session.updated_at),
        last_message_at=None if session.last_message_at is None else from_micros(session.last_message_at),
        message_count=session.live_count,
        total_message_count=session.last_seq,
        pending_tokens=session.tokens_total - session.tokens_archived,
        contexts_used=contexts_used,
        skills_used=skills_used,
        forked_from=None if session.forked_from is None else Fork(session.forked_from, session.fork_seq),
    )


def line(session: StoredSession) -> SessionRow:
    return SessionRow(
        session_id=session.session_id,
        uri=session_uri(session.user_id, session.session_id),
        mod_time=from_micros(session.updated_at),
        created_at=from_micros(session.created_at),
        title=session.title,
        state=session.state,
        message_count=session.live_count,
        total_message_count=session.last_seq,
    )


def decode_metadata(metadata: str) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(metadata)
    return decoded
