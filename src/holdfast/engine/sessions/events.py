"""What happened to a session, in order: its messages and its changes, read as one.

An event id tells the log, the last message and the last change that came up to it. It can be handed in again at any
time, to any server: what comes behind it is the same.
"""

from holdfast.engine.gate.rule import CallContext, Rule
from holdfast.engine.gate.session_access import require
from holdfast.model.identity import Principal
from holdfast.model.sessions import Event, EventPage
from holdfast.ops.sessions import ReadEvents
from holdfast.store.database import Tx
from holdfast.store.tables import changes, lineage, messages
from holdfast.store.tables.sessions import StoredSession

NOW = "now"


def _read(tx: Tx, principal: Principal, op: ReadEvents, _ready: None, _context: CallContext) -> EventPage:
    session = require(tx, principal, op.session_id)
    seq, number = _start(tx, session, op.after)
    said = messages.read(tx, lineage.log_ranges(tx, session, seq + 1), op.limit)
    done = changes.read(tx, session.log_id, number, op.limit)
    events: list[Event] = []
    while len(events) < op.limit and (said or done):
        # A change comes behind the message that was the last one when it happened.
        if done and (not said or done[0].after_seq < said[0].seq):
            number = done[0].number
            events.append(Event(id=_id(session, seq, number), event="session", change=done.pop(0).change))
        else:
            seq = said[0].seq
            events.append(Event(id=_id(session, seq, number), event="message", message=said.pop(0)))
    return EventPage(events, _id(session, seq, number))


def _start(tx: Tx, session: StoredSession, after: str | None) -> tuple[int, int]:
    """The last message and the last change that the reader has seen."""
    if after is None:
        return 0, 0
    if after == NOW:
        return session.last_seq, changes.last_number(tx, session.log_id)
    log_id, seq, number = after.split("-")
    seen = int(seq), int(number)
    # The id of a session that was deleted since says nothing about its successor of the same name,
    # nor one that is ahead of us about a database that was put back to an earlier state.
    known = int(log_id, 16) == session.log_id
    ahead = seen[0] > session.last_seq or seen[1] > changes.last_number(tx, session.log_id)
    return seen if known and not ahead else (0, 0)


def _id(session: StoredSession, seq: int, number: int) -> str:
    return f"{session.log_id:x}-{seq}-{number}"


RULES: dict[type, Rule] = {ReadEvents: Rule(_read)}
