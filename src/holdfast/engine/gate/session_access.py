"""The session that an operation names: found for its caller, or created."""

import msgspec

from holdfast.engine.gate import access
from holdfast.engine.gate.rule import CallContext
from holdfast.errors import ConflictError, NotFoundError
from holdfast.model.identity import Principal
from holdfast.store.database import Tx
from holdfast.store.tables import changes
from holdfast.store.tables import sessions as store
from holdfast.store.tables.sessions import NO_CONFIG, StoredSession

ATTEMPTS = 5
"""How often to repeat what a concurrent transaction prevented."""


def require(tx: Tx, principal: Principal, session_id: str, *, lock: bool = False) -> StoredSession:
    session = store.find(tx, principal.user_id, session_id, lock=lock)
    if session is None:
        raise NotFoundError("session", session_id)
    return session


def ensure(tx: Tx, principal: Principal, session_id: str, context: CallContext) -> StoredSession:
    """The session, locked; created if it is missing."""
    for _ in range(ATTEMPTS):
        found = store.find(tx, principal.user_id, session_id, lock=True)
        if found is not None:
            return found
        if insert(tx, principal, blank(principal, session_id, context), context):
            access.record(tx, principal, "CreateSession", session_id, context)
    raise ConflictError(
        f"Session {session_id} is being created and deleted at the same time; try again",
        resource=session_id,
        type="session",
    )


def blank(principal: Principal, session_id: str, context: CallContext) -> StoredSession:
    return StoredSession(
        user_id=principal.user_id,
        session_id=session_id,
        log_id=context.ids.log_id(),
        title="",
        metadata="{}",
        state="active",
        created_at=context.now,
        updated_at=context.now,
        live_from=1,
        tokens_archived=0,
        forked_from=None,
        fork_seq=0,
        fork_tokens=0,
        fork_time=None,
        fork_added=None,
        config=NO_CONFIG,
    )


def insert(tx: Tx, principal: Principal, session: StoredSession, context: CallContext) -> StoredSession | None:
    """The session as it was stored, or None if its name is taken."""
    access.require_account(tx, principal, context)
    for _ in range(ATTEMPTS):
        if store.insert(tx, session):
            came_from = {} if session.forked_from is None else {"forked_from": session.forked_from}
            changes.record(
                tx, session, "created", principal.user_id, context.now, {"title": session.title, **came_from}
            )
            return session
        if store.find(tx, principal.user_id, session.session_id):
            return None
        # Another process drew the same log id within the same millisecond.
        session = msgspec.structs.replace(session, log_id=context.ids.log_id())
    return None
