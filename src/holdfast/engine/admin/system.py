"""How the system is doing, and counts of what it holds."""

import math
import time
from typing import get_args

from holdfast.config import Settings
from holdfast.engine.gate.rule import Moment, Patience, Rule, always
from holdfast.engine.gate.session_access import require
from holdfast.errors import DeadlineExceededError
from holdfast.model.identity import OPERATOR, Identity, Principal
from holdfast.model.system import (
    Component,
    ComponentName,
    Health,
    MemoryStats,
    QueueCounts,
    SessionStats,
    SystemHealth,
    SystemStatus,
)
from holdfast.ops.sessions import GetSessionStats
from holdfast.ops.system import (
    CheckHealth,
    GetMemoryStats,
    GetSystemStatus,
    ObserveComponent,
    ObserveSystem,
    WaitUntilIdle,
    WhoAmI,
)
from holdfast.store.database import EVERY_ACCOUNT, Tx
from holdfast.store.tables import lineage, messages, sessions, tasks, tool_results, usages
from holdfast.store.timestamps import from_micros

PATIENCE = 0.8
"""How much of the time that a server gives a request may be spent waiting."""
FIRST_GLANCE, LONGEST_GLANCE = 0.02, 0.5


def _who_am_i(_tx: Tx, who: Principal, _op: WhoAmI, _ready: None, _moment: Moment) -> Identity:
    return Identity(who.account_id, who.user_id, who.role)


def _status(_tx: Tx, who: Principal, _op: GetSystemStatus, _ready: None, _moment: Moment) -> SystemStatus:
    return SystemStatus(initialized=True, user=who.user_id)


def _health(tx: Tx, _who: Principal, _op: CheckHealth, _ready: None, _moment: Moment) -> Health:
    return Health(tx.one("SELECT 1") == (1,))


def _wait(tx: Tx, who: Principal, _op: WaitUntilIdle, _ready: None, moment: Moment) -> dict[str, QueueCounts]:
    """As a write it comes behind all that were accepted before it."""
    return {"writes": QueueCounts(moment.waiting()), "tasks": _queue(tasks.counts(tx, who.account_id, who.user_id))}


def _queue(counts: dict[str, int]) -> QueueCounts:
    return QueueCounts(counts.get("pending", 0), counts.get("running", 0), counts.get("failed", 0))


def _until_idle(patience: Patience, who: Principal, op: WaitUntilIdle) -> None:
    """Wait until no task of the caller's is to be done any more; the operator, of anybody's. One that failed is not
    waited for.
    """
    whose = (None, None) if who == OPERATOR else (who.account_id, who.user_id)
    account = EVERY_ACCOUNT if who == OPERATOR else who.account_id
    seconds = min(op.timeout or math.inf, patience.settings.request_timeout_seconds * PATIENCE)
    deadline = time.monotonic() + seconds
    glance = FIRST_GLANCE
    while True:
        queue = _queue(patience.db.read(account, lambda tx: tasks.counts(tx, *whose)))
        left = queue.pending + queue.in_progress
        if not left:
            return
        if time.monotonic() > deadline or patience.stopping():
            raise DeadlineExceededError(f"{left} tasks are not done after {seconds:g} s; they go on", pending=left)
        time.sleep(glance)
        glance = min(glance * 1.5, LONGEST_GLANCE)


def _component(tx: Tx, who: Principal, name: ComponentName, moment: Moment) -> Component:
    status, has_errors = "", False
    match name:
        case "storage":
            status = f"{tx.dialect.name}, schema {tx.all('SELECT MAX(number) FROM schema_migrations')[0][0]}"
        case "queue":
            # What all tenants together do is for the operator; an administrator sees the account's own.
            queue = _queue(tasks.counts(tx, None if who.role == "root" else who.account_id))
            status, has_errors = _queue_table(queue, moment), queue.failed > 0
        case "vikingdb":
            status = "words of messages, in the database itself"
        case "models":
            status = _models(moment.settings)
        case "lock":
            status = "held by the database, for no longer than a transaction"
        case "retrieval":
            status = "messages of a session by their words"
        case "filesystem":
            status = "none of its own; files are views of rows"
    return Component(name=name, is_healthy=True, has_errors=has_errors, status=status)


def _queue_table(queue: QueueCounts, moment: Moment) -> str:
    rows = [("writes", moment.waiting(), 0, 0), ("session_commit", queue.pending, queue.in_progress, queue.failed)]
    total = ("TOTAL", *(sum(column) for column in zip(*(row[1:] for row in rows), strict=True)))
    lines = [("Queue", "Pending", "In Progress", "Errors"), *rows, total]
    return "\n".join(f"{name:<16}{pending:>9}{running:>13}{errors:>8}" for name, pending, running, errors in lines)


def _models(settings: Settings) -> str:
    if settings.model_provider == "none":
        return "none is configured; none is needed"
    return f"{settings.model_provider} {settings.model_name}, at most {settings.model_concurrency} calls at once"


def _observe_component(tx: Tx, who: Principal, op: ObserveComponent, _ready: None, moment: Moment) -> Component:
    return _component(tx, who, op.component, moment)


def _observe_system(tx: Tx, who: Principal, _op: ObserveSystem, _ready: None, moment: Moment) -> SystemHealth:
    components: dict[str, Component] = {name: _component(tx, who, name, moment) for name in get_args(ComponentName)}
    return SystemHealth(is_healthy=True, errors=[], components=components)


def _memory_stats(tx: Tx, who: Principal, _op: GetMemoryStats, _ready: None, _moment: Moment) -> MemoryStats:
    count, said, tokens = sessions.totals(tx, who.user_id)
    return MemoryStats(sessions=count, messages=said, tokens=tokens, total_memories=0, by_category={})


def _session_stats(tx: Tx, who: Principal, op: GetSessionStats, _ready: None, _moment: Moment) -> SessionStats:
    session = require(tx, who, op.session_id)
    stretches = lineage.stretches(tx, session)
    by_role, first = messages.totals(tx, stretches)
    contexts, skills = usages.totals(tx, session.log_id)
    last = session.last_message_at
    return SessionStats(
        session_id=session.session_id,
        messages=session.last_seq,
        live_messages=session.live_count,
        messages_by_role=by_role,
        tokens=session.tokens_total,
        pending_tokens=session.tokens_total - session.tokens_archived,
        tool_results=tool_results.count(tx, stretches),
        contexts_used=contexts,
        skills_used=skills,
        first_message_at=None if first is None else from_micros(first),
        last_message_at=None if last is None else from_micros(last),
    )


RULES: dict[type, Rule] = {
    WhoAmI: Rule(_who_am_i),
    GetSystemStatus: Rule(_status),
    CheckHealth: Rule(_health),
    WaitUntilIdle: Rule(_wait, always, first=_until_idle),
    ObserveComponent: Rule(_observe_component),
    ObserveSystem: Rule(_observe_system),
    GetMemoryStats: Rule(_memory_stats),
    GetSessionStats: Rule(_session_stats),
}
