"""Sessions: a name that points to a log of messages, and what is known of it."""

from typing import Any

import msgspec

from holdfast.model.sessions import SessionConfig, SessionRow, SessionState, session_uri
from holdfast.store.database import Tx
from holdfast.store.timestamps import from_micros

_COLUMNS = (
    "user_id, session_id, log_id, title, metadata, state, created_at, updated_at, live_from, tokens_archived,"
    " forked_from, fork_seq, fork_tokens, fork_time, fork_added, config"
)
_LAST_SEQ, _LAST_TOKENS, _LAST_TIME, _LAST_ADDED = (
    f"(SELECT m.{column} FROM messages m WHERE m.account_id = s.account_id AND m.log_id = s.log_id"
    " ORDER BY m.seq DESC LIMIT 1)"
    for column in ("seq", "tokens_through", "created_at", "added_at")
)
_SELECT = f"SELECT {_COLUMNS}, {_LAST_SEQ}, {_LAST_TOKENS}, {_LAST_TIME}, {_LAST_ADDED} FROM sessions s"
_THE_ONE = "account_id = ? AND user_id = ? AND session_id = ?"
_EXISTS = f"SELECT 1 FROM sessions WHERE {_THE_ONE}"
_FIND = f"{_SELECT} WHERE s.account_id = ? AND s.user_id = ? AND s.session_id = ?"
_BY_LOG = "account_id = ? AND log_id = ?"


class StoredSession(msgspec.Struct, frozen=True):
    """A row of `sessions` and what its last message tells.

    Message `seq` is live from `live_from` on; up to `fork_seq` it is an ancestor's.
    """

    user_id: str
    session_id: str
    log_id: int
    title: str
    metadata: str
    state: SessionState
    created_at: int
    updated_at: int
    live_from: int
    tokens_archived: int
    forked_from: str | None
    fork_seq: int
    fork_tokens: int
    fork_time: int | None
    fork_added: int | None
    config: str
    own_seq: int | None = None
    own_tokens: int | None = None
    own_time: int | None = None
    own_added: int | None = None

    @property
    def last_seq(self) -> int:
        return self.fork_seq if self.own_seq is None else self.own_seq

    @property
    def tokens_total(self) -> int:
        return self.fork_tokens if self.own_tokens is None else self.own_tokens

    @property
    def last_message_at(self) -> int | None:
        return self.fork_time if self.own_time is None else self.own_time

    @property
    def last_added_at(self) -> int:
        return (self.fork_added if self.own_added is None else self.own_added) or 0

    @property
    def changed_at(self) -> int:
        return max(self.updated_at, self.own_added or 0)

    @property
    def live_count(self) -> int:
        return self.last_seq - self.live_from + 1


def find(tx: Tx, user_id: str, session_id: str, *, lock: bool = False) -> StoredSession | None:
    """The session, or None. With `lock` nobody else adds to it or changes it until the transaction ends."""
    key = (tx.account, user_id, session_id)
    # The lock is a statement of its own: what is read next must see what the one before us added. And a session
    # that comes into being between the two is not there yet: it would be read but not locked.
    if lock and tx.dialect.lock_row and not tx.one(f"{_EXISTS}{tx.dialect.lock_row}", key):
        return None
    row = tx.one(_FIND, key)
    return StoredSession(*row) if row else None


def find_by_log(tx: Tx, log_id: int, *, lock: bool = False) -> StoredSession | None:
    """The session that appends to a log, or None; `lock` as in `find`."""
    key = (tx.account, log_id)
    if lock and tx.dialect.lock_row and not tx.one(f"SELECT 1 FROM sessions WHERE {_BY_LOG}{tx.dialect.lock_row}", key):
        return None
    row = tx.one(f"{_SELECT} WHERE {_BY_LOG}", key)
    return StoredSession(*row) if row else None


def insert(tx: Tx, session: StoredSession) -> bool:
    """Whether the name and the log id were free."""
    values = msgspec.structs.astuple(session)[: _COLUMNS.count(",") + 1]
    marks = ", ".join("?" * len(values))
    row = tx.one(
        f"INSERT INTO sessions (account_id, {_COLUMNS}) VALUES (?, {marks}) ON CONFLICT DO NOTHING RETURNING 1",
        (tx.account, *values),
    )
    return row is not None


def update(tx: Tx, session: StoredSession, *, title: str, metadata: str, state: str, now: int) -> None:
    tx.execute(
        f"UPDATE sessions SET title = ?, metadata = ?, state = ?, updated_at = ? WHERE {_THE_ONE}",
        (title, metadata, state, now, tx.account, session.user_id, session.session_id),
    )


def configure(tx: Tx, session: StoredSession, config: str, now: int) -> None:
    tx.execute(
        f"UPDATE sessions SET config = ?, updated_at = ? WHERE {_THE_ONE}",
        (config, now, tx.account, session.user_id, session.session_id),
    )


def seal(tx: Tx, session: StoredSession, through: int, tokens: int, now: int) -> None:
    """Let the live messages begin behind `through`; `tokens` is what the session has up to there."""
    tx.execute(
        f"UPDATE sessions SET live_from = ?, tokens_archived = ?, updated_at = ? WHERE {_THE_ONE}",
        (through + 1, tokens, now, tx.account, session.user_id, session.session_id),
    )


def delete(tx: Tx, session: StoredSession) -> None:
    tx.execute(
        f"DELETE FROM sessions WHERE {_THE_ONE}",
        (tx.account, session.user_id, session.session_id),
    )


def log_is_alive(tx: Tx, log_id: int) -> bool:
    """Whether a session still appends to this log."""
    return tx.one("SELECT 1 FROM sessions WHERE account_id = ? AND log_id = ?", (tx.account, log_id)) is not None


def page(
    tx: Tx, user_id: str, *, limit: int, before: int | None, q: str | None, state: str | None
) -> list[StoredSession]:
    """Newest first. Log ids sort by the time of creation, so they order the listing and mark its pages."""
    where = ["s.account_id = ?", "s.user_id = ?"]
    params: list[str | int] = [tx.account, user_id]
    if before is not None:
        where.append("s.log_id < ?")
        params.append(before)
    if q is not None:
        where.append("(LOWER(s.session_id) LIKE ? ESCAPE '!' OR LOWER(s.title) LIKE ? ESCAPE '!')")
        params += [_containing(q)] * 2
    if state is not None:
        where.append("s.state = ?")
        params.append(state)
    rows = tx.all(f"{_SELECT} WHERE {' AND '.join(where)} ORDER BY s.log_id DESC LIMIT ?", (*params, limit))
    return [StoredSession(*row) for row in rows]


def _containing(q: str) -> str:
    literal = q.lower().replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return f"%{literal}%"


def line(session: StoredSession) -> SessionRow:
    return SessionRow(
        session_id=session.session_id,
        uri=session_uri(session.user_id, session.session_id),
        mod_time=from_micros(session.changed_at),
        created_at=from_micros(session.created_at),
        title=session.title,
        state=session.state,
        message_count=session.live_count,
        total_message_count=session.last_seq,
    )


def totals(tx: Tx, user_id: str) -> tuple[int, int, int]:
    """How many sessions a user has, and the messages and tokens in them."""
    row = tx.one(
        f"SELECT COUNT(*), SUM(COALESCE(last_seq, fork_seq)), SUM(COALESCE(tokens, fork_tokens)) FROM"
        f" (SELECT s.fork_seq, s.fork_tokens, {_LAST_SEQ} AS last_seq, {_LAST_TOKENS} AS tokens FROM sessions s"
        " WHERE s.account_id = ? AND s.user_id = ?) AS mine",
        (tx.account, user_id),
    )
    return (row[0], int(row[1] or 0), int(row[2] or 0)) if row else (0, 0, 0)


NO_CONFIG = "{}"
decode_config = msgspec.json.Decoder(SessionConfig).decode


def decode_metadata(metadata: str) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(metadata)
    return decoded
