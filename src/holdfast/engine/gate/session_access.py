"""The session that an operation names: found for its caller, or created."""

import msgspec

from holdfast.engine.gate import access
from holdfast.engine.gate.rule import Moment
from holdfast.errors import ConflictError, NotFoundError
from holdfast.model.identity import Principal
from holdfast.store.database import Tx
from holdfast.store.tables import changes
from holdfast.store.tables import sessions as store
from holdfast.store.tables.sessions import NO_CONFIG, StoredSession

ATTEMPTS = 5
"""How often to repeat what a concurrent transaction prevented."""


def require(tx: Tx, who: Principal, session_id: str, *, lock: bool = False) -> StoredSession:
    session = store.find(tx, who.user_id, session_id, lock=lock)
    if session is None:
        raise NotFoundError("session", session_id)
    return session


def ensure(tx: Tx, who: Principal, session_id: str, moment: Moment) -> StoredSession:
    """The session, locked; created if it is missing."""
    for _ in range(ATTEMPTS):
        found = store.find(tx, who.user_id, session_id, lock=True)
        if found is not None:
            return found
        if insert(tx, who, blank(who, session_id, moment), moment):
            access.record(tx, who, "CreateSession", session_id, moment)
    raise ConflictError(
        f"Session {session_id} is being created and deleted at the same time; try again",
        resource=session_id,
        type="session",
    )


def blank(who: Principal, session_id: str, moment: Moment) -> StoredSession:
    return StoredSession(
        user_id=who.user_id,
        session_id=session_id,
        log_id=moment.ids.log_id(),
        title="",
        metadata="{}",
        state="active",
        created_at=moment.now,
        updated_at=moment.now,
        live_from=1,
        tokens_archived=0,
        forked_from=None,
        fork_seq=0,
        fork_tokens=0,
        fork_time=None,
        fork_added=None,
        config=NO_CONFIG,
    )


def insert(tx: Tx, who: Principal, session: StoredSession, moment: Moment) -> StoredSession | None:
    """The session as it was stored, or None if its name is taken."""
    access.require_account(tx, who, moment)
    for _ in range(ATTEMPTS):
        if store.insert(tx, session):
            came_from = {} if session.forked_from is None else {"forked_from": session.forked_from}
            changes.record(tx, session, "created", who.user_id, moment.now, {"title": session.title, **came_from})
            return session
        if store.find(tx, who.user_id, session.session_id):
            return None
        # Another process drew the same log id within the same millisecond.
        session = msgspec.structs.replace(session, log_id=moment.ids.log_id())
    return None
