"""Sessions: each has a name, properties and a log of messages."""

import functools
from typing import Any

import msgspec

from holdfast.json_documents import decode_json, json_decoder
from holdfast.model.access import OWNER_RIGHTS, RIGHT_BITS, to_rights
from holdfast.model.sessions import SessionConfig, SessionRow, SessionState, session_uri
from holdfast.store.database import Dialect, Tx
from holdfast.store.tables import unindexed
from holdfast.store.timestamps import from_micros

_COLUMNS = (
    "user_id, session_id, log_id, title, metadata, state, created_at, updated_at, live_from, tokens_archived,"
    " forked_from, fork_seq, fork_tokens, fork_time, fork_added, config, indexed_seq"
)
_LAST_SEQ, _LAST_TOKENS = (
    f"(SELECT m.{column} FROM messages m WHERE m.account_id = s.account_id AND m.log_id = s.log_id"
    " ORDER BY m.seq DESC LIMIT 1)"
    for column in ("seq", "tokens_through")
)
_SESSION_COLUMNS = ", ".join(f"s.{column}" for column in _COLUMNS.split(", "))
_LISTED_COLUMNS = _SESSION_COLUMNS.replace("s.metadata", "'{}'").replace("s.config", "'{}'")
_MESSAGE_COLUMNS = "m.seq, m.tokens_through, m.created_at, m.added_at"
_LATERAL = (
    f" LEFT JOIN LATERAL (SELECT {_MESSAGE_COLUMNS} FROM messages m"
    " WHERE m.account_id = s.account_id AND m.log_id = s.log_id ORDER BY m.seq DESC LIMIT 1) m ON TRUE"
)
_JOINED = (
    " LEFT JOIN messages m ON m.account_id = s.account_id AND m.log_id = s.log_id"
    " AND m.seq = (SELECT MAX(seq) FROM messages WHERE account_id = s.account_id AND log_id = s.log_id)"
)
OF_OWNER = "s.account_id = ? AND s.user_id = ?"
_BY_ID = "s.account_id = ? AND s.user_id = ? AND s.session_id = ?"
_BY_LOG = "s.account_id = ? AND s.log_id = ?"


class StoredSession(msgspec.Struct, frozen=True):
    """A row of `sessions`, with columns of the last message in its own log.

    Messages from `live_from` on are live: not archived. Messages up to `fork_seq` belong to an ancestor's log.
    """

    owner_id: str
    """The internal id of the owner; the column `user_id`."""
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
    indexed_seq: int
    """Messages up to here are indexed. It is `fork_seq` if none of its own log is."""
    own_seq: int | None = None
    own_tokens: int | None = None
    own_time: int | None = None
    own_added: int | None = None
    rights: int = OWNER_RIGHTS
    """What the user may do who asked for the session."""

    @property
    def uri(self) -> str:
        return session_uri(self.owner_id, self.session_id)

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


def find(tx: Tx, owner_id: str, session_id: str, *, lock: bool = False) -> StoredSession | None:
    """Find a session of its owner. With `lock`, no other transaction adds to it or changes it until this one ends."""
    return _find(tx, _BY_ID, (tx.account, owner_id, session_id), lock=lock)


def find_by_log(tx: Tx, log_id: int, *, lock: bool = False) -> StoredSession | None:
    """Find the session that owns a log. `lock` works as in `find`."""
    return _find(tx, _BY_LOG, (tx.account, log_id), lock=lock)


def _find(tx: Tx, condition: str, key: tuple[str | int, ...], *, lock: bool) -> StoredSession | None:
    find = select_sessions(condition, has_lateral_joins=tx.dialect.has_lateral_joins)
    if not lock or not tx.dialect.lock_row:
        row = tx.one(find, key)
        return StoredSession(*row) if row else None
    # The lock is a statement of its own, so that the next read sees what the previous holder of the lock added.
    # Without a row to lock, the session is reported as missing: if it were created between the two statements,
    # it would be read but not locked.
    locked, found = tx.all_of([(_lock(tx.dialect, condition), key), (find, key)])
    return StoredSession(*found[0]) if locked and found else None


@functools.lru_cache(1_000)
def select_sessions(
    condition: str,
    sessions: str = "sessions s",
    rights: str = str(OWNER_RIGHTS),
    *,
    has_lateral_joins: bool,
    for_list: bool = False,
) -> str:
    """Select sessions, each with columns of its last message, and with rights.

    `for_list` leaves the metadata and the settings out: they can be large, and lists do not show them.
    """
    last_message = _LATERAL if has_lateral_joins else _JOINED
    columns = f"{_LISTED_COLUMNS if for_list else _SESSION_COLUMNS}, {_MESSAGE_COLUMNS}, {rights}"
    return f"SELECT {columns} FROM {sessions}{last_message} WHERE {condition}"


@functools.lru_cache(1_000)
def _lock(dialect: Dialect, condition: str) -> str:
    return f"SELECT 1 FROM sessions s WHERE {condition}{dialect.lock_row}"


def insert(tx: Tx, session: StoredSession) -> bool:
    """Return False if the session id or the log id is already in use."""
    values = msgspec.structs.astuple(session)[: _COLUMNS.count(",") + 1]
    placeholders = ", ".join("?" * len(values))
    row = tx.one(
        f"INSERT INTO sessions (account_id, {_COLUMNS}) VALUES (?, {placeholders}) ON CONFLICT DO NOTHING RETURNING 1",
        (tx.account, *values),
    )
    return row is not None


def update(tx: Tx, session: StoredSession, *, title: str, metadata: str, state: str, now: int) -> None:
    tx.execute(
        f"UPDATE sessions AS s SET title = ?, metadata = ?, state = ?, updated_at = ? WHERE {_BY_ID}",
        (title, metadata, state, now, tx.account, session.owner_id, session.session_id),
    )


def configure(tx: Tx, session: StoredSession, config: str, now: int) -> None:
    tx.execute(
        f"UPDATE sessions AS s SET config = ?, updated_at = ? WHERE {_BY_ID}",
        (config, now, tx.account, session.owner_id, session.session_id),
    )


def seal(tx: Tx, session: StoredSession, through: int, tokens: int, now: int) -> None:
    """Archive the messages up to `through`. `tokens` is the number of tokens of the session up to there."""
    tx.execute(
        f"UPDATE sessions AS s SET live_from = ?, tokens_archived = ?, updated_at = ? WHERE {_BY_ID}",
        (through + 1, tokens, now, tx.account, session.owner_id, session.session_id),
    )


def set_indexed(tx: Tx, session: StoredSession, seq: int) -> None:
    """Record that the messages of a locked session up to `seq` are indexed."""
    tx.execute(
        f"UPDATE sessions AS s SET indexed_seq = ? WHERE {_BY_ID}",
        (seq, tx.account, session.owner_id, session.session_id),
    )


def transfer(tx: Tx, session: StoredSession, owner_id: str, now: int) -> bool:
    """Make another user the owner of a session. Return False if that user has a session with its id.

    Its documents are not valid any more, and all its messages are to be indexed again.
    """
    # A row that is inserted first waits for others that take the address at the same time; an update would fail.
    reservation = msgspec.structs.replace(session, owner_id=owner_id, log_id=-session.log_id)
    if not insert(tx, reservation):
        return False
    delete(tx, reservation)
    tx.execute(
        f"UPDATE sessions AS s SET user_id = ?, updated_at = ?, indexed_seq = fork_seq WHERE {_BY_ID}",
        (owner_id, now, tx.account, session.owner_id, session.session_id),
    )
    unindexed.mark_stale(tx, session.log_id)
    return True


def delete(tx: Tx, session: StoredSession) -> None:
    tx.execute(
        f"DELETE FROM sessions AS s WHERE {_BY_ID}",
        (tx.account, session.owner_id, session.session_id),
    )


def log_has_session(tx: Tx, log_id: int) -> bool:
    """Whether a session owns this log."""
    return tx.one("SELECT 1 FROM sessions WHERE account_id = ? AND log_id = ?", (tx.account, log_id)) is not None


class SessionFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which sessions to list, and from where on. Log ids sort by creation time: they order lists and are cursors."""

    before: int | None = None
    q: str | None = None
    state: str | None = None


def page(tx: Tx, owner_id: str, wanted: SessionFilter, limit: int, *, for_list: bool = False) -> list[StoredSession]:
    """List the sessions of an owner, newest first. With `for_list`, without metadata and settings."""
    where, params = filter_conditions(wanted)
    condition = " AND ".join([OF_OWNER, *where])
    select = select_sessions(condition, has_lateral_joins=tx.dialect.has_lateral_joins, for_list=for_list)
    rows = tx.all(f"{select} ORDER BY s.log_id DESC LIMIT ?", (tx.account, owner_id, *params, limit))
    return [StoredSession(*row) for row in rows]


def filter_conditions(wanted: SessionFilter) -> tuple[list[str], list[str | int]]:
    """Return SQL conditions on `sessions s`, with their parameters."""
    where, params = list[str](), list[str | int]()
    before, q, state = wanted.before, wanted.q, wanted.state
    if before is not None:
        where.append("s.log_id < ?")
        params.append(before)
    if q is not None:
        where.append("(LOWER(s.session_id) LIKE ? ESCAPE '!' OR LOWER(s.title) LIKE ? ESCAPE '!')")
        params += [_like_pattern(q)] * 2
    if state is not None:
        where.append("s.state = ?")
        params.append(state)
    return where, params


def _like_pattern(q: str) -> str:
    """A LIKE pattern for values that contain `q`."""
    escaped = q.lower().replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return f"%{escaped}%"


def to_row(session: StoredSession) -> SessionRow:
    """Return a session as lists show it. Without the right to read, its title and counts are not shown."""
    can_read = bool(session.rights & RIGHT_BITS["read"])
    return SessionRow(
        session_id=session.session_id,
        uri=session.uri,
        mod_time=from_micros(session.changed_at if can_read else session.created_at),
        created_at=from_micros(session.created_at),
        title=session.title if can_read else "",
        state=session.state,
        message_count=session.live_count if can_read else 0,
        total_message_count=session.last_seq if can_read else 0,
        owner=session.owner_id,
        rights=to_rights(session.rights),
    )


def totals(tx: Tx, owner_id: str) -> tuple[int, int, int]:
    """Count a user's sessions, and the messages and tokens in them."""
    row = tx.one(
        f"SELECT COUNT(*), SUM(COALESCE(last_seq, fork_seq)), SUM(COALESCE(tokens, fork_tokens)) FROM"
        f" (SELECT s.fork_seq, s.fork_tokens, {_LAST_SEQ} AS last_seq, {_LAST_TOKENS} AS tokens FROM sessions s"
        " WHERE s.account_id = ? AND s.user_id = ?) AS user_sessions",
        (tx.account, owner_id),
    )
    return (row[0], int(row[1] or 0), int(row[2] or 0)) if row else (0, 0, 0)


def unindexed_sessions(tx: Tx, owner_id: str, session_id: str | None, limit: int) -> list[tuple[str, int]]:
    """Return the sessions of an owner, or one of them, whose last messages are not indexed, and how many these are."""
    condition, params = ("", []) if session_id is None else (" AND s.session_id = ?", [session_id])
    rows = tx.all(
        f"SELECT session_id, last_seq - indexed_seq FROM (SELECT s.session_id, s.log_id, s.indexed_seq,"
        f" COALESCE({_LAST_SEQ}, s.fork_seq) AS last_seq FROM sessions s WHERE {OF_OWNER}{condition}) AS own"
        " WHERE last_seq > indexed_seq ORDER BY log_id DESC LIMIT ?",
        (tx.account, owner_id, *params, limit),
    )
    return [(found, count) for found, count in rows]


NO_CONFIG = "{}"
decode_config = json_decoder(SessionConfig).decode


def decode_metadata(metadata: str) -> dict[str, Any]:
    decoded: dict[str, Any] = decode_json(metadata)
    return decoded
