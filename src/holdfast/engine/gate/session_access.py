"""Find or create the session that an operation names. A caller reaches only their own sessions."""

import msgspec

from holdfast.engine.gate import access, audit_lines
from holdfast.engine.gate.operation_handler import CallContext
from holdfast.errors import ConflictError, NotFoundError
from holdfast.model.identity import Principal
from holdfast.store.database import Tx
from holdfast.store.tables import changes
from holdfast.store.tables import sessions as store
from holdfast.store.tables.sessions import NO_CONFIG, StoredSession

MAX_ATTEMPTS = 5
"""How often to try a write that a concurrent transaction defeats."""


def require_session(tx: Tx, principal: Principal, session_id: str, *, lock: bool = False) -> StoredSession:
    """Return the session, or raise `NotFoundError`."""
    session = store.find(tx, principal.user_id, session_id, lock=lock)
    if session is None:
        raise NotFoundError("session", session_id)
    audit_lines.note_session(session)
    return session


def require_unchanged(tx: Tx, principal: Principal, session: StoredSession) -> StoredSession:
    """Return the session as it is now. Raise `NotFoundError` if it was deleted, also if its name was used again."""
    current = require_session(tx, principal, session.session_id)
    if current.log_id != session.log_id:
        raise NotFoundError("session", session.session_id)
    return current


def get_or_create_session(tx: Tx, principal: Principal, session_id: str, context: CallContext) -> StoredSession:
    """Return the session with its row locked. Create it if it does not exist."""
    for _ in range(MAX_ATTEMPTS):
        session = store.find(tx, principal.user_id, session_id, lock=True)
        if session is not None:
            audit_lines.note_session(session)
            return session
        if insert_session(tx, principal, new_session(principal, session_id, context), context):
            access.record_audit(tx, principal, "CreateSession", session_id, context)
    raise ConflictError(
        f"Session {session_id} is being created and deleted at the same time; try again",
        resource=session_id,
        type="session",
    )


def new_session(principal: Principal, session_id: str, context: CallContext) -> StoredSession:
    """An empty session that is not stored yet."""
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


def insert_session(tx: Tx, principal: Principal, session: StoredSession, context: CallContext) -> StoredSession | None:
    """Store a session. Return it as it was stored, or None if its id is taken."""
    access.ensure_account(tx, principal, context)
    for _ in range(MAX_ATTEMPTS):
        if store.insert(tx, session):
            origin = {} if session.forked_from is None else {"forked_from": session.forked_from}
            details = {"title": session.title, **origin}
            changes.record(tx, session, "created", principal.user_id, context.now, details)
            return session
        if store.find(tx, principal.user_id, session.session_id):
            return None
        # Another process generated the same log id within the same millisecond.
        session = msgspec.structs.replace(session, log_id=context.ids.log_id())
    return None
