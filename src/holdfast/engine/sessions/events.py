"""Events of a session: its messages and its changes, merged in order.

An event id consists of the log id, the seq of the last message and the number of the last change up to the event. It
works as a cursor at any time and on any server: the events after it are always the same.
"""

from holdfast.engine.gate.operation_handler import CallContext, OperationHandler
from holdfast.engine.gate.session_access import require_session
from holdfast.model.identity import Principal
from holdfast.model.sessions import Event, EventPage
from holdfast.ops.sessions import ReadEvents
from holdfast.store.database import Tx
from holdfast.store.tables import changes, lineage, messages
from holdfast.store.tables.sessions import StoredSession

NOW = "now"
"""The cursor after the last event."""


def _read(tx: Tx, principal: Principal, op: ReadEvents, _prepared: None, _context: CallContext) -> EventPage:
    session = require_session(tx, principal, op.session_id)
    seq, change_number = _start(tx, session, op.after)
    new_messages = messages.read(tx, lineage.log_ranges(tx, session, seq + 1), op.limit)
    new_changes = changes.read(tx, session.log_id, change_number, op.limit)
    events: list[Event] = []
    while len(events) < op.limit and (new_messages or new_changes):
        # A change follows the message that was the last one when the change happened.
        if new_changes and (not new_messages or new_changes[0].after_seq < new_messages[0].seq):
            change_number = new_changes[0].number
            events.append(Event(id=_id(session, seq, change_number), event="session", change=new_changes.pop(0).change))
        else:
            seq = new_messages[0].seq
            events.append(Event(id=_id(session, seq, change_number), event="message", message=new_messages.pop(0)))
    return EventPage(events, _id(session, seq, change_number))


def _start(tx: Tx, session: StoredSession, after: str | None) -> tuple[int, int]:
    """Return the seq of the last message and the number of the last change before the first event to return."""
    if after is None:
        return 0, 0
    if after == NOW:
        return session.last_seq, changes.last_number(tx, session.log_id)
    log_id, seq, change_number = after.split("-")
    cursor = int(seq), int(change_number)
    # Start over if the id belongs to a deleted session of the same name,
    # or is ahead because the database was restored from a backup.
    is_same_log = int(log_id, 16) == session.log_id
    is_ahead = cursor[0] > session.last_seq or cursor[1] > changes.last_number(tx, session.log_id)
    return cursor if is_same_log and not is_ahead else (0, 0)


def _id(session: StoredSession, seq: int, change_number: int) -> str:
    return f"{session.log_id:x}-{seq}-{change_number}"


HANDLERS: dict[type, OperationHandler] = {ReadEvents: OperationHandler(_read)}
