"""Getting, listing, retrying and cancelling background tasks."""

from holdfast.engine.commits import order
from holdfast.engine.commits.archives import require_archive
from holdfast.engine.gate import session_access
from holdfast.engine.gate.rule import CallContext, Rule, always
from holdfast.errors import FailedPreconditionError, NotFoundError
from holdfast.model.archives import archive_id
from holdfast.model.identity import OPERATOR, Principal
from holdfast.model.tasks import Task
from holdfast.ops.commits import CancelTask, GetTask, ListTasks, RetryArchive, RetryTask
from holdfast.store.database import Tx
from holdfast.store.tables import archives, changes
from holdfast.store.tables import sessions as stored_sessions
from holdfast.store.tables import tasks as store
from holdfast.store.tables.sessions import StoredSession
from holdfast.store.tables.tasks import StoredTask


def _require(tx: Tx, principal: Principal, task_id: str) -> StoredTask:
    """Return a task of the caller. The operator may access the tasks of all users."""
    task = store.find(tx, task_id)
    if task is None or (task.user_id != principal.user_id and principal != OPERATOR):
        raise NotFoundError("task", task_id)
    return task


def _task(tx: Tx, principal: Principal, task_id: str) -> Task:
    return store.to_task(_require(tx, principal, task_id), to_operator=principal == OPERATOR)


def _get(tx: Tx, principal: Principal, op: GetTask, _prepared: None, _context: CallContext) -> Task:
    return _task(tx, principal, op.task_id)


def _list(tx: Tx, principal: Principal, op: ListTasks, _prepared: None, _context: CallContext) -> list[Task]:
    user_id = None if principal == OPERATOR else principal.user_id
    page = store.page(tx, user_id, kind=op.task_type, status=op.status, resource_id=op.resource_id, limit=op.limit)
    return [store.to_task(task, to_operator=principal == OPERATOR) for task in page]


def _cancel(tx: Tx, principal: Principal, op: CancelTask, _prepared: None, context: CallContext) -> Task:
    session, task = _lock(tx, principal, op.task_id)
    if task.status == "completed":
        raise FailedPreconditionError(
            f"Task {task.task_id} is completed and cannot be cancelled", resource=task.task_id
        )
    if task.status != "cancelled":
        store.cancel(tx, task.task_id, context.now)
        archives.set_state(tx, task.log_id, task.number, "cancelled", ended_at=context.now, failure=None)
        details = {"archive_id": archive_id(task.number), "task_id": task.task_id}
        changes.record(tx, session, "commit_cancelled", principal.user_id, context.now, details)
        order.unblock_next(tx, task.log_id, context)
    return _task(tx, principal, op.task_id)


def _retry(tx: Tx, principal: Principal, op: RetryTask, _prepared: None, context: CallContext) -> Task:
    session, task = _lock(tx, principal, op.task_id)
    if task.status == "completed":
        raise FailedPreconditionError(
            f"Task {task.task_id} is completed; there is nothing to retry", resource=task.task_id
        )
    if task.status != "running":
        store.reset_for_retry(tx, task.task_id, context.now)
        archives.set_state(tx, task.log_id, task.number, "pending", ended_at=None, failure=None)
        order.unblock_next(tx, task.log_id, context)
        details = {"archive_id": archive_id(task.number), "task_id": task.task_id}
        changes.record(tx, session, "commit_retried", principal.user_id, context.now, details)
    return _task(tx, principal, op.task_id)


def _retry_archive(tx: Tx, principal: Principal, op: RetryArchive, _prepared: None, context: CallContext) -> Task:
    session = session_access.require_session(tx, principal, op.session_id)
    archive = require_archive(tx, session, op.archive_id)
    if archive.state == "done":
        raise FailedPreconditionError(f"{op.archive_id} is done; there is nothing to retry", resource=op.archive_id)
    return _retry(tx, principal, RetryTask(task_id=archive.task_id), None, context)


def _lock(tx: Tx, principal: Principal, task_id: str) -> tuple[StoredSession, StoredTask]:
    """Lock and return a session and its task. The session is always locked first, which prevents deadlocks."""
    session = stored_sessions.find_by_log(tx, _require(tx, principal, task_id).log_id, lock=True)
    task = store.find(tx, task_id, lock=True)
    if session is None or task is None:
        raise NotFoundError("task", task_id)
    return session, task


RULES: dict[type, Rule] = {
    GetTask: Rule(_get),
    ListTasks: Rule(_list),
    CancelTask: Rule(_cancel, always),
    RetryTask: Rule(_retry, always),
    RetryArchive: Rule(_retry_archive, always),
}
