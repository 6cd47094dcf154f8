"""Getting, listing, retrying and cancelling background tasks of any kind."""

from datetime import datetime
from typing import Any

import msgspec

from holdfast.engine.gate.operation_handler import CallContext, OperationHandler, always
from holdfast.engine.gate.session_access import grantee_of, may_access_log
from holdfast.engine.tasks.order import unblock_next
from holdfast.engine.tasks.task_kind import TASK_KINDS, TaskKind
from holdfast.errors import FailedPreconditionError, NotFoundError, PermissionDeniedError
from holdfast.model.access import user_name
from holdfast.model.identity import OPERATOR, Principal
from holdfast.model.summaries import EmbeddingUsage
from holdfast.model.tasks import COMMIT, Progress, Task, TaskUsage, TotalUsage
from holdfast.ops.tasks import CancelTask, GetTask, ListTasks, RetryTask
from holdfast.store.access import task_lists
from holdfast.store.database import Tx
from holdfast.store.tables import tasks as store
from holdfast.store.tables.tasks import StoredTask
from holdfast.store.timestamps import from_micros

MAX_CLOCK_DIFFERENCE_MICROS = 5_000_000

_decode_result = msgspec.json.Decoder(dict[str, Any]).decode


def _visible_kinds() -> list[str]:
    """The kinds of tasks that users see."""
    return [name for name, kind in TASK_KINDS.items() if kind.visible_to == "user"]


def _require(tx: Tx, principal: Principal, task_id: str) -> StoredTask:
    """Return a task that the caller may see. The operator sees the tasks of all users."""
    task = store.find(tx, task_id)
    if task is None or not (principal == OPERATOR or _may_see(tx, principal, task)):
        raise NotFoundError("task", task_id)
    return task


def _may_see(tx: Tx, principal: Principal, task: StoredTask) -> bool:
    """Whether a task is visible: its session is the caller's own, or one that the caller may read or write."""
    if task.kind not in _visible_kinds():
        return False
    is_own = task.user_id == principal.internal_id
    return is_own or _has_right(tx, principal, task, "read") or _has_right(tx, principal, task, "write")


def _has_right(tx: Tx, principal: Principal, task: StoredTask, right: str) -> bool:
    log_id = store.log_of(task)
    return log_id is not None and may_access_log(tx, principal, log_id, right)


def _require_write(tx: Tx, principal: Principal, task: StoredTask) -> None:
    is_own = principal == OPERATOR or task.user_id == principal.internal_id
    if not is_own and not _has_right(tx, principal, task, "write"):
        raise PermissionDeniedError(
            f"Task {task.task_id}: {principal.user_id} lacks the right to write to session {task.resource_id}; ask its"
            " owner to share it with that right",
            resource=task.task_id,
            missing=["write"],
        )


def _get(tx: Tx, principal: Principal, op: GetTask, _prepared: None, context: CallContext) -> Task:
    return _read(tx, principal, op.task_id, context)


def _read(tx: Tx, principal: Principal, task_id: str, context: CallContext) -> Task:
    return _to_task(_require(tx, principal, task_id), context, to_operator=principal == OPERATOR)


def _list(tx: Tx, principal: Principal, op: ListTasks, _prepared: None, context: CallContext) -> list[Task]:
    is_operator = principal == OPERATOR
    page = task_lists.page(
        tx,
        None if is_operator else grantee_of(principal),
        kind=op.task_type,
        status=op.status,
        resource_id=op.resource_id,
        kinds=None if is_operator else _visible_kinds(),
        limit=op.limit,
    )
    return [_to_task(task, context, to_operator=is_operator) for task in page]


def _cancel(tx: Tx, principal: Principal, op: CancelTask, _prepared: None, context: CallContext) -> Task:
    kind, task = _lock(tx, principal, op.task_id)
    if task.status == "completed":
        raise FailedPreconditionError(
            f"Task {task.task_id} is completed and cannot be cancelled", resource=task.task_id
        )
    if task.status != "cancelled":
        store.cancel(tx, task.task_id, context.now)
        kind.cancelled(tx, context, task, principal)
        unblock_next(tx, task.order_key, context)
    return _read(tx, principal, op.task_id, context)


def _retry(tx: Tx, principal: Principal, op: RetryTask, _prepared: None, context: CallContext) -> Task:
    return retry_task(tx, principal, op.task_id, context)


def retry_task(tx: Tx, principal: Principal, task_id: str, context: CallContext) -> Task:
    kind, task = _lock(tx, principal, task_id)
    if task.status == "completed":
        raise FailedPreconditionError(
            f"Task {task.task_id} is completed; there is nothing to retry", resource=task.task_id
        )
    if task.status != "running":
        store.reset_for_retry(tx, task, context.now)
        context.wake_workers()
        kind.retried(tx, context, task, principal)
        unblock_next(tx, task.order_key, context)
    return _read(tx, principal, task_id, context)


def _lock(tx: Tx, principal: Principal, task_id: str) -> tuple[TaskKind, StoredTask]:
    """Lock a task, after what its kind locks. Return its kind and its current row."""
    task = _require(tx, principal, task_id)
    _require_write(tx, principal, task)
    kind = TASK_KINDS.get(task.kind)
    if kind is None:
        raise FailedPreconditionError(
            f"Task {task_id} is of the kind {task.kind}, which this version does not know; upgrade holdfast",
            resource=task_id,
        )
    if task.status == "completed":
        return kind, task
    locked = store.lock(tx, task_id) if kind.lock(tx, task) else None
    if locked is None:
        raise NotFoundError("task", task_id)
    return kind, locked


def _to_task(task: StoredTask, context: CallContext, *, to_operator: bool = False) -> Task:
    """Convert to the task that callers see.

    The operator gets the error code instead of the message, which may quote a tenant's text.
    """
    return Task(
        task_id=task.task_id,
        account_id=task.account_id,
        user_id=user_name(task.user_id),
        task_type=task.kind,
        status=task.status,
        created_at=task.created_at / 1e6,
        updated_at=task.updated_at / 1e6,
        processing_seconds=task.worked / 1e6,
        resource_id=task.resource_id,
        stage=_stage(task),
        subject=task.subject,
        progress=Progress(task.steps_done, task.steps_total),
        attempts=task.attempts,
        next_attempt_at=_next_attempt_at(task, context),
        result=None if task.result is None else _decode_result(task.result),
        error_code=task.error_code,
        error=task.error_code if to_operator else task.error,
        archive_uri=task.subject if task.kind == COMMIT else None,
        token_usage=TaskUsage(
            task.usage,
            EmbeddingUsage(task.embedding_tokens),
            TotalUsage(task.total_tokens + task.embedding_tokens),
        ),
        created_at_iso=from_micros(task.created_at),
        updated_at_iso=from_micros(task.updated_at),
    )


def _stage(task: StoredTask) -> str | None:
    is_queued = task.stage is None and task.status in {"pending", "running"} and task.kind in TASK_KINDS
    return TASK_KINDS[task.kind].queued_stage if is_queued else task.stage


def _next_attempt_at(task: StoredTask, context: CallContext) -> datetime | None:
    """The time by the clock of this machine. If the database's clock is only seconds apart, its time is as good."""
    if task.status != "pending" or task.run_at is None or task.attempts == 0:
        return None
    difference = context.now - task.read_at
    return from_micros(task.run_at + (difference if abs(difference) > MAX_CLOCK_DIFFERENCE_MICROS else 0))


HANDLERS: dict[type, OperationHandler] = {
    GetTask: OperationHandler(_get),
    ListTasks: OperationHandler(_list),
    CancelTask: OperationHandler(_cancel, writes=always),
    RetryTask: OperationHandler(_retry, writes=always),
}
