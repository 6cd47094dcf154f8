"""Find or create the session that an operation names.

A caller reaches their own sessions, and those that a grant opens. The table of operations has the right that each
operation needs. A session without a grant looks the same as one that does not exist.
"""

from typing import Any, Protocol

import msgspec

from holdfast.engine.gate import access, audit_lines
from holdfast.engine.gate.operation_handler import CallContext
from holdfast.errors import ConflictError, NotFoundError, PermissionDeniedError
from holdfast.model.access import RIGHT_BITS, to_rights
from holdfast.model.identity import Principal
from holdfast.ops.table import rights_needed
from holdfast.store.access import grants, shared_sessions
from holdfast.store.access.grants import Grantee
from holdfast.store.database import Tx
from holdfast.store.tables import changes
from holdfast.store.tables import sessions as store
from holdfast.store.tables.sessions import NO_CONFIG, StoredSession

MAX_ATTEMPTS = 5
"""How often to try a write that a concurrent transaction defeats."""


class SessionOperation(Protocol):
    """An operation on a session. Without `owner`, the session is the caller's own."""

    @property
    def session_id(self) -> str: ...
    @property
    def owner(self) -> str | None: ...


def grantee_of(principal: Principal) -> Grantee:
    return Grantee(principal.internal_id, principal.agent_id)


def require_session(tx: Tx, principal: Principal, op: SessionOperation, *, lock: bool = False) -> StoredSession:
    """Return the session of an operation.

    Raise `NotFoundError` if the caller has no access to it, and `PermissionDeniedError` if a right is missing.
    """
    session = _find(tx, principal, op, lock=lock)
    if session is None:
        error = NotFoundError("session", op.session_id)
        error.denies_access = op.owner is not None or principal.role == "guest"
        raise error
    require_rights(principal, session, rights_needed(op))  # type: ignore[arg-type]
    audit_lines.note_session(session)
    return session


def find_readable(tx: Tx, principal: Principal, op: SessionOperation) -> StoredSession | None:
    """Return the session of an operation, or None if it does not exist or the caller may not read it."""
    session = _find(tx, principal, op, lock=False)
    return session if session is not None and session.rights & RIGHT_BITS["read"] else None


def require_rights(principal: Principal, session: StoredSession, needed: int) -> None:
    missing = needed & ~session.rights
    if not missing:
        return
    if missing & RIGHT_BITS["own"]:
        problem = f"only its owner may do this, not {principal.user_id}; ask the owner"
    else:
        names = " and ".join(to_rights(missing))
        problem = f"{principal.user_id} lacks the right to {names}; ask its owner to share it with that right"
    raise PermissionDeniedError(
        f"Session {session.session_id}: {problem}", resource=session.session_id, missing=to_rights(missing) or ["own"]
    )


def require_unchanged(tx: Tx, principal: Principal, session: StoredSession) -> StoredSession:
    """Return the session as it is now, for the next page of a read.

    Raise `NotFoundError` if it was deleted, also if its name was used again, or if the caller may no longer read it.
    """
    current = store.find_by_log(tx, session.log_id)
    if current is None or not _can_read(tx, principal, current):
        raise NotFoundError("session", session.session_id)
    return current


def may_access_log(tx: Tx, principal: Principal, log_id: int, right: str) -> bool:
    """Whether the caller has a grant with a right on the session of a log."""
    return bool(grants.find_rights(tx, log_id, grantee_of(principal)) & RIGHT_BITS[right])


def _can_read(tx: Tx, principal: Principal, session: StoredSession) -> bool:
    return session.owner_id == principal.internal_id or may_access_log(tx, principal, session.log_id, "read")


def get_or_create_session(tx: Tx, principal: Principal, op: SessionOperation, context: CallContext) -> StoredSession:
    """Return the session with its row locked. If it is the caller's own and does not exist, create it."""
    if op.owner is not None or principal.role == "guest":
        return require_session(tx, principal, op, lock=True)
    for _ in range(MAX_ATTEMPTS):
        session = store.find(tx, principal.internal_id, op.session_id, lock=True)
        if session is not None:
            audit_lines.note_session(session)
            return session
        if insert_session(tx, principal, new_session(principal, op.session_id, context), context):
            access.record_audit(tx, principal, "CreateSession", op.session_id, context)
    raise ConflictError(
        f"Session {op.session_id} is being created and deleted at the same time; try again",
        resource=op.session_id,
        type="session",
    )


def _find(tx: Tx, principal: Principal, op: SessionOperation, *, lock: bool) -> StoredSession | None:
    """Find the session at an address. An owner in an address is an internal id: it means one user for ever."""
    grantee = grantee_of(principal)
    if op.owner is None and principal.role == "guest":
        return shared_sessions.find_of_link(tx, grantee, op.session_id, lock=lock)
    if principal.role != "guest" and op.owner in {None, principal.user_id, principal.internal_id}:
        own = store.find(tx, principal.internal_id, op.session_id, lock=lock)
        if own is not None or op.owner in {None, principal.internal_id}:
            return own
    return None if op.owner is None else shared_sessions.find(tx, grantee, op.owner, op.session_id, lock=lock)


def new_session(principal: Principal, session_id: str, context: CallContext) -> StoredSession:
    """An empty session that is not stored yet."""
    return StoredSession(
        owner_id=principal.internal_id,
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
        indexed_seq=0,
    )


def insert_session(tx: Tx, principal: Principal, session: StoredSession, context: CallContext) -> StoredSession | None:
    """Store a session. Return it as it was stored, or None if its id is taken."""
    access.ensure_account(tx, principal, context)
    for _ in range(MAX_ATTEMPTS):
        if store.insert(tx, session):
            origin = {} if session.forked_from is None else {"forked_from": session.forked_from}
            details: dict[str, Any] = {"title": session.title, **origin}
            changes.record(tx, session, "created", principal.user_id, context.now, details)
            return session
        if store.find(tx, session.owner_id, session.session_id):
            return None
        # Another process generated the same log id within the same millisecond.
        session = msgspec.structs.replace(session, log_id=context.ids.log_id())
    return None
