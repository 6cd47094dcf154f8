"""The lines of the audit log, made from a call: who, what, when, from where, and on which version."""

import threading

from holdfast.engine.gate.ids import Ids
from holdfast.model.identity import Origin, Principal
from holdfast.store.access.audit import NewLine
from holdfast.store.tables.sessions import StoredSession

SALT_BYTES = 16
MAX_ADDRESS_LENGTH = 100


class _ActedOn(threading.local):
    """The session that the transaction of this thread acts on, as it was before. None if it acts on none."""

    session: StoredSession | None = None


_acted_on = _ActedOn()


def begin_operation() -> None:
    """Forget the session that an earlier transaction of this thread acted on."""
    _acted_on.session = None


def note_session(session: StoredSession) -> None:
    """Note the session that a transaction acts on. The first one counts: it is the state before the change."""
    if _acted_on.session is None:
        _acted_on.session = session


def noted_session() -> StoredSession | None:
    """The session that the last transaction of this thread acted on."""
    return _acted_on.session


def version_of(session: StoredSession | None) -> str:
    return "" if session is None else f"{session.log_id:x}-{session.last_seq}"


def new_line(
    principal: Principal,
    action: str,
    resource: str,
    ids: Ids,
    now: int,
    origin: Origin,
    *,
    version: str = "",
    outcome: str = "done",
) -> NewLine:
    return NewLine(
        id=ids.new("aud"),
        at=now,
        user_id=principal.user_id,
        role=principal.role,
        action=action,
        resource=resource,
        agent_id=principal.agent_id,
        address=origin.address[:MAX_ADDRESS_LENGTH],
        key_id=origin.key_id,
        version=version,
        outcome=outcome,
    )


def new_salt(ids: Ids) -> str:
    return ids.secret_bytes(SALT_BYTES).hex()
