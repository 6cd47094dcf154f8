"""Events of a session: its messages and its changes, merged in order.

An event id consists of the log id, the seq of the last message and the number of the last change up to the event. It
works as a cursor at any time and on any server: the events after it are always the same.
"""

from collections import deque
from typing import Any

from holdfast.engine.gate.operation_handler import CallContext, OperationHandler
from holdfast.engine.gate.session_access import require_session, require_unchanged
from holdfast.engine.gate.streams import Page, as_result, response_bytes
from holdfast.model.identity import Principal
from holdfast.model.sessions import Event, EventPage
from holdfast.ops.sessions import ReadEvents
from holdfast.store.database import Tx
from holdfast.store.tables import changes, lineage, messages
from holdfast.store.tables.sessions import StoredSession

NOW = "now"
"""The cursor after the last event."""


def _read(tx: Tx, principal: Principal, op: ReadEvents, _prepared: None, context: CallContext) -> Any:
    session = require_session(tx, principal, op)
    budget = response_bytes(context)
    page = _page(tx, session, principal, _start(tx, session, op.after), op.limit, budget, is_first=True)
    return as_result(EventPage([], "", has_more=False), "events", page)


def _page(
    tx: Tx,
    session: StoredSession,
    principal: Principal,
    start: tuple[int, int],
    limit: int,
    max_bytes: int,
    *,
    is_first: bool,
) -> Page[Event]:
    """Read events after the message and the change of `start`."""
    seq, change_number = start
    rows = messages.read_page(
        tx, lineage.log_ranges(tx, session, seq + 1), limit, max_bytes=max_bytes, at_least_one=is_first
    )
    new_messages = deque(rows.messages)
    found_changes, has_more_changes = changes.read_page(tx, session.log_id, change_number, limit, max_bytes)
    new_changes = deque(found_changes)
    events: list[Event] = []
    size = rows.bytes
    while len(events) < limit and (new_messages or new_changes):
        # A change follows the message that was the last one when the change happened.
        if new_changes and (new_changes[0].after_seq <= seq or not (new_messages or rows.has_more)):
            stored = new_changes.popleft()
            change_number, size = stored.number, size + stored.bytes
            events.append(Event(id=_id(session, seq, change_number), event="session", change=stored.change))
        elif new_messages and (new_changes or not has_more_changes):
            message = new_messages.popleft()
            seq = message.seq
            events.append(Event(id=_id(session, seq, change_number), event="message", message=message))
        else:  # what comes next was not read
            break
    has_more = seq < session.last_seq or has_more_changes or bool(new_changes) or len(found_changes) == limit
    cursor = _id(session, seq, change_number)
    if not has_more or not events or len(events) == limit or size >= max_bytes:
        return Page(events, ending={"cursor": cursor, "has_more": has_more})
    limit_left, bytes_left = limit - len(events), max_bytes - size

    def read_next(tx: Tx) -> Page[Event]:
        current = require_unchanged(tx, principal, session)
        return _page(tx, current, principal, (seq, change_number), limit_left, bytes_left, is_first=False)

    return Page(events, read_next, ending={"cursor": cursor, "has_more": has_more})


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
