"""The caller's identity, the health of the system, and waiting until its queues are empty."""

import math
import time
from collections.abc import Iterator

from holdfast.engine.admin.queues import count_queues, own_scope
from holdfast.engine.gate.operation_handler import CallContext, EngineResources, OperationHandler, always
from holdfast.errors import DeadlineExceededError
from holdfast.model.identity import OPERATOR, Identity, Principal
from holdfast.model.system import Health, QueueCounts, SystemStatus
from holdfast.ops.system import CheckHealth, GetSystemStatus, WaitUntilIdle, WhoAmI
from holdfast.store import diagnostics, migrations
from holdfast.store.access import task_lists
from holdfast.store.database import EVERY_ACCOUNT, Tx
from holdfast.store.tables import unindexed
from holdfast.store.tables.embeddings import unembedded
from holdfast.store.tables.tree import unprocessed

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
        **count_queues(tx, own_scope(principal), with_messages=principal != OPERATOR),
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


HANDLERS: dict[type, OperationHandler] = {
    WhoAmI: OperationHandler(_who_am_i),
    GetSystemStatus: OperationHandler(_status),
    CheckHealth: OperationHandler(_health),
    WaitUntilIdle: OperationHandler(_queues, writes=always, wait=_wait_until_idle),
}
