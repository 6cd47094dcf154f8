"""How the system is doing, and counts of what it holds."""

import math
import time
from typing import get_args

from holdfast.config import Settings
from holdfast.engine.gate.rule import CallContext, Rule, WaitContext, always
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
FIRST_POLL_SECONDS, MAX_POLL_SECONDS = 0.02, 0.5


def _who_am_i(_tx: Tx, principal: Principal, _op: WhoAmI, _ready: None, _context: CallContext) -> Identity:
    return Identity(principal.account_id, principal.user_id, principal.role)


def _status(_tx: Tx, principal: Principal, _op: GetSystemStatus, _ready: None, _context: CallContext) -> SystemStatus:
    return SystemStatus(initialized=True, user=principal.user_id)


def _health(tx: Tx, _principal: Principal, _op: CheckHealth, _ready: None, _context: CallContext) -> Health:
    return Health(tx.one("SELECT 1") == (1,))


def _wait(
    tx: Tx, principal: Principal, _op: WaitUntilIdle, _ready: None, context: CallContext
) -> dict[str, QueueCounts]:
    """As a write it comes behind all that were accepted before it."""
    return {
        "writes": QueueCounts(context.waiting()),
        "tasks": _queue(tasks.counts(tx, principal.account_id, principal.user_id)),
    }


def _queue(counts: dict[str, int]) -> QueueCounts:
    return QueueCounts(counts.get("pending", 0), counts.get("running", 0), counts.get("failed", 0))


def _until_idle(wait_context: WaitContext, principal: Principal, op: WaitUntilIdle) -> None:
    """Wait until no task of the caller's is to be done any more; the operator, of anybody's. One that failed is not
    waited for.
    """
    whose = (None, None) if principal == OPERATOR else (principal.account_id, principal.user_id)
    account = EVERY_ACCOUNT if principal == OPERATOR else principal.account_id
    seconds = min(op.timeout or math.inf, wait_context.settings.request_timeout_seconds * PATIENCE)
    deadline = time.monotonic() + seconds
    glance = FIRST_POLL_SECONDS
    while True:
        queue = _queue(wait_context.db.read(account, lambda tx: tasks.counts(tx, *whose)))
        left = queue.pending + queue.in_progress
        if not left:
            return
        if time.monotonic() > deadline or wait_context.stopping():
            raise DeadlineExceededError(f"{left} tasks are not done after {seconds:g} s; they go on", pending=left)
        time.sleep(glance)
        glance = min(glance * 1.5, MAX_POLL_SECONDS)


def _component(tx: Tx, principal: Principal, name: ComponentName, context: CallContext) -> Component:
    status, has_errors = "", False
    match name:
        case "storage":
            status = f"{tx.dialect.name}, schema {tx.all('SELECT MAX(number) FROM schema_migrations')[0][0]}"
        case "queue":
            # What all tenants together do is for the operator; an administrator sees the account's own.
            queue = _queue(tasks.counts(tx, None if principal.role == "root" else principal.account_id))
            status, has_errors = _queue_table(queue, context), queue.failed > 0
        case "vikingdb":
            status = "words of messages, in the database itself"
        case "models":
            status = _models(context.settings)
        case "lock":
            status = "held by the database, for no longer than a transaction"
        case "retrieval":
            status = "messages of a session by their words"
        case "filesystem":
            status = "none of its own; files are views of rows"
    return Component(name=name, is_healthy=True, has_errors=has_errors, status=status)


def _queue_table(queue: QueueCounts, context: CallContext) -> str:
    rows = [("writes", context.waiting(), 0, 0), ("session_commit", queue.pending, queue.in_progress, queue.failed)]
    total = ("TOTAL", *(sum(column) for column in zip(*(row[1:] for row in rows), strict=True)))
    lines = [("Queue", "Pending", "In Progress", "Errors"), *rows, total]
    return "\n".join(f"{name:<16}{pending:>9}{running:>13}{errors:>8}" for name, pending, running, errors in lines)


def _models(settings: Settings) -> str:
    if settings.model_provider == "none":
        return "none is configured; none is needed"
    return f"{settings.model_provider} {settings.model_name}, at most {settings.model_concurrency} calls at once"


def _observe_component(
    tx: Tx, principal: Principal, op: ObserveComponent, _ready: None, context: CallContext
) -> Component:
    return _component(tx, principal, op.component, context)


def _observe_system(
    tx: Tx, principal: Principal, _op: ObserveSystem, _ready: None, context: CallContext
) -> SystemHealth:
    components: dict[str, Component] = {
        name: _component(tx, principal, name, context) for name in get_args(ComponentName)
    }
    return SystemHealth(is_healthy=True, errors=[], components=components)


def _memory_stats(
    tx: Tx, principal: Principal, _op: GetMemoryStats, _ready: None, _context: CallContext
) -> MemoryStats:
    count, said, tokens = sessions.totals(tx, principal.user_id)
    return MemoryStats(sessions=count, messages=said, tokens=tokens, total_memories=0, by_category={})


def _session_stats(
    tx: Tx, principal: Principal, op: GetSessionStats, _ready: None, _context: CallContext
) -> SessionStats:
    session = require(tx, principal, op.session_id)
    log_ranges = lineage.log_ranges(tx, session)
    by_role, first = messages.totals(tx, log_ranges)
    contexts, skills = usages.totals(tx, session.log_id)
    last = session.last_message_at
    return SessionStats(
        session_id=session.session_id,
        messages=session.last_seq,
        live_messages=session.live_count,
        messages_by_role=by_role,
        tokens=session.tokens_total,
        pending_tokens=session.tokens_total - session.tokens_archived,
        tool_results=tool_results.count(tx, log_ranges),
        contexts_used=contexts,
        skills_used=skills,
        first_message_at=None if first is None else from_micros(first),
        last_message_at=None if last is None else from_micros(last),
    )


RULES: dict[type, Rule] = {
    WhoAmI: Rule(_who_am_i),
    GetSystemStatus: Rule(_status),
    CheckHealth: Rule(_health),
    WaitUntilIdle: Rule(_wait, always, wait_for=_until_idle),
    ObserveComponent: Rule(_observe_component),
    ObserveSystem: Rule(_observe_system),
    GetMemoryStats: Rule(_memory_stats),
    GetSessionStats: Rule(_session_stats),
}
