"""The caller's identity, the health of the system, and waiting until its queues are empty."""

from collections.abc import Iterator

from holdfast.engine.admin.queues import count_queues, own_scope
from holdfast.engine.gate.operation_handler import CallContext, EngineResources, OperationHandler, always
from holdfast.engine.gate.polling import poll
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

    def count() -> tuple[int, int]:
        return resources.db.read(account, lambda tx: _count_work(tx, *owner))

    def timeout_error(seconds: float) -> DeadlineExceededError:
        tasks, unindexed_count = count()
        return DeadlineExceededError(
            f"{tasks} tasks are not done and {unindexed_count} sessions or files are not indexed after {seconds:g} s;"
            " this continues in the background",
            pending=tasks + unindexed_count,
        )

    if count()[1]:
        resources.db.write(account, lambda tx: _make_due(tx, owner[0]))
        resources.wake_workers()
    yield from poll(resources, lambda: not any(count()), op.timeout, timeout_error)


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
