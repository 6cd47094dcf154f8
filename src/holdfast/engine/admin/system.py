"""The health of the system, its queues, and statistics."""

import math
import time
from collections.abc import Iterator
from typing import get_args

from holdfast.config import Settings
from holdfast.engine.gate.operation_handler import CallContext, EngineResources, OperationHandler, always
from holdfast.engine.gate.session_access import require_session
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
from holdfast.model.tasks import COMMIT
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
from holdfast.store import diagnostics, migrations
from holdfast.store.access import task_lists
from holdfast.store.database import EVERY_ACCOUNT, Tx
from holdfast.store.tables import lineage, messages, sessions, tool_results, unindexed, usages
from holdfast.store.tables.embeddings import unembedded
from holdfast.store.tables.tree import unprocessed
from holdfast.store.timestamps import from_micros

MAX_WAIT_SHARE = 0.8
"""The share of the request timeout that an operation may spend waiting."""
FIRST_POLL_SECONDS, MAX_POLL_SECONDS = 0.02, 0.5


def _who_am_i(_tx: Tx, principal: Principal, _op: WhoAmI, _prepared: None, _context: CallContext) -> Identity:
    return Identity(principal.account_id, principal.user_id, principal.role, principal.agent_id)


def _status(
    _tx: Tx, principal: Principal, _op: GetSystemStatus, _prepared: None, _context: CallContext
) -> SystemStatus:
    return SystemStatus(initialized=True, user=principal.user_id)


def _health(tx: Tx, _principal: Principal, _op: CheckHealth, _prepared: None, _context: CallContext) -> Health:
    migrations.require_known_schema(tx)
    return Health(diagnostics.ping(tx))


def _queues(
    tx: Tx, principal: Principal, _op: WaitUntilIdle, _prepared: None, context: CallContext
) -> dict[str, QueueCounts]:
    """Count the queued work. Its handler declares a write, which runs after all writes that were accepted before it."""
    return {
        "writes": QueueCounts(context.count_waiting_writes()),
        "tasks": _queue_counts(task_lists.counts(tx, principal.account_id, principal.internal_id)),
    }


def _queue_counts(by_status: dict[str, int]) -> QueueCounts:
    return QueueCounts(by_status.get("pending", 0), by_status.get("running", 0), by_status.get("failed", 0))


def _wait_until_idle(resources: EngineResources, principal: Principal, op: WaitUntilIdle) -> Iterator[float]:
    """Wait until the caller has no pending or running task, and all their sessions are indexed.

    For the operator, until this is so for all accounts.
    """
    owner = (None, None) if principal == OPERATOR else (principal.account_id, principal.internal_id)
    account = EVERY_ACCOUNT if principal == OPERATOR else principal.account_id
    seconds = min(op.timeout or math.inf, resources.settings.request_timeout_seconds * MAX_WAIT_SHARE)
    deadline = time.monotonic() + seconds
    poll_seconds = FIRST_POLL_SECONDS
    is_first = True
    while True:
        tasks, unindexed_count = resources.db.read(account, lambda tx: _count_work(tx, *owner))
        remaining = tasks + unindexed_count
        if unindexed_count and is_first:
            resources.db.write(account, lambda tx: _make_due(tx, owner[0]))
            resources.wake_workers()
        is_first = False
        if not remaining:
            return
        if time.monotonic() > deadline or resources.is_stopping():
            raise DeadlineExceededError(
                f"{tasks} tasks are not done and {unindexed_count} sessions or files are not indexed after"
                f" {seconds:g} s; this continues in the background",
                pending=remaining,
            )
        yield poll_seconds
        poll_seconds = min(poll_seconds * 1.5, MAX_POLL_SECONDS)


def _count_work(tx: Tx, account_id: str | None, user_id: str | None) -> tuple[int, int]:
    """Count the tasks that are not done yet, and what of the user's sessions is not indexed yet."""
    queue = _queue_counts(task_lists.counts(tx, account_id, user_id))
    waiting = unindexed.count(tx, account_id, user_id) + unembedded.count(tx, account_id, user_id)
    return queue.pending + queue.in_progress, waiting + unprocessed.count(tx, account_id)


def _make_due(tx: Tx, account_id: str | None) -> None:
    """Let what waits for a burst of changes to end be done now."""
    unindexed.make_due(tx, account_id)
    unprocessed.make_due(tx, account_id)


def _component(tx: Tx, principal: Principal, name: ComponentName, context: CallContext) -> Component:
    status, has_errors = "", False
    match name:
        case "storage":
            status = f"{tx.dialect.name}, schema {migrations.latest_applied(tx)}"
        case "queue":
            # Only the operator sees the tasks of all accounts. An administrator sees those of their own account.
            by_kind = task_lists.counts_by_kind(tx, None if principal.role == "root" else principal.account_id)
            queues = {kind: _queue_counts(by_kind.get(kind, {})) for kind in sorted({COMMIT, *by_kind})}
            status, has_errors = _queue_table(queues, context), any(queue.failed for queue in queues.values())
        case "vikingdb":
            status = "a text index of messages, in the database"
        case "models":
            status = _models_status(context.settings)
        case "lock":
            status = "locks of the database, held during a transaction"
        case "retrieval":
            status = "text search in the messages of a session"
        case "filesystem":
            status = "no files; the tree is a view of database rows"
    return Component(name=name, is_healthy=True, has_errors=has_errors, status=status)


def _queue_table(queues: dict[str, QueueCounts], context: CallContext) -> str:
    rows = [
        ("writes", context.count_waiting_writes(), 0, 0),
        *((kind, queue.pending, queue.in_progress, queue.failed) for kind, queue in queues.items()),
    ]
    total = ("TOTAL", *(sum(column) for column in zip(*(row[1:] for row in rows), strict=True)))
    lines = [("Queue", "Pending", "In Progress", "Errors"), *rows, total]
    return "\n".join(f"{name:<16}{pending:>9}{running:>13}{errors:>8}" for name, pending, running, errors in lines)


def _models_status(settings: Settings) -> str:
    if settings.model_provider == "none":
        return "no model is configured; none is required"
    return f"{settings.model_provider} {settings.model_name}, at most {settings.model_concurrency} calls at once"


def _observe_component(
    tx: Tx, principal: Principal, op: ObserveComponent, _prepared: None, context: CallContext
) -> Component:
    return _component(tx, principal, op.component, context)


def _observe_system(
    tx: Tx, principal: Principal, _op: ObserveSystem, _prepared: None, context: CallContext
) -> SystemHealth:
    components: dict[str, Component] = {
        name: _component(tx, principal, name, context) for name in get_args(ComponentName)
    }
    return SystemHealth(is_healthy=True, errors=[], components=components)


def _memory_stats(
    tx: Tx, principal: Principal, _op: GetMemoryStats, _prepared: None, _context: CallContext
) -> MemoryStats:
    session_count, message_count, tokens = sessions.totals(tx, principal.internal_id)
    return MemoryStats(sessions=session_count, messages=message_count, tokens=tokens, total_memories=0, by_category={})


def _session_stats(
    tx: Tx, principal: Principal, op: GetSessionStats, _prepared: None, _context: CallContext
) -> SessionStats:
    session = require_session(tx, principal, op)
    log_ranges = lineage.log_ranges(tx, session)
    by_role, first_at = messages.totals(tx, log_ranges)
    contexts, skills = usages.totals(tx, session.log_id)
    last_at = session.last_message_at
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
        first_message_at=None if first_at is None else from_micros(first_at),
        last_message_at=None if last_at is None else from_micros(last_at),
    )


HANDLERS: dict[type, OperationHandler] = {
    WhoAmI: OperationHandler(_who_am_i),
    GetSystemStatus: OperationHandler(_status),
    CheckHealth: OperationHandler(_health),
    WaitUntilIdle: OperationHandler(_queues, writes=always, wait=_wait_until_idle),
    ObserveComponent: OperationHandler(_observe_component),
    ObserveSystem: OperationHandler(_observe_system),
    GetMemoryStats: OperationHandler(_memory_stats),
    GetSessionStats: OperationHandler(_session_stats),
}
