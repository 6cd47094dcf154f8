"""Looking after background work: what there is, and to retry or cancel it."""

from holdfast.engine.commits import archives as reading
from holdfast.engine.commits import order
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
    """The task, if it is the caller's. The operator may look after those of others."""
    task = store.find(tx, task_id)
    if task is None or (task.user_id != principal.user_id and principal != OPERATOR):
        raise NotFoundError("task", task_id)
    return task


def _shown(tx: Tx, principal: Principal, task_id: str) -> Task:
    return store.shown(_require(tx, principal, task_id), to_operator=principal == OPERATOR)


def _get(tx: Tx, principal: Principal, op: GetTask, _ready: None, _context: CallContext) -> Task:
    return _shown(tx, principal, op.task_id)


def _list(tx: Tx, principal: Principal, op: ListTasks, _ready: None, _context: CallContext) -> list[Task]:
    whose = None if principal == OPERATOR else principal.user_id
    found = store.page(tx, whose, kind=op.task_type, status=op.status, resource_id=op.resource_id, limit=op.limit)
    return [store.shown(task, to_operator=principal == OPERATOR) for task in found]


def _cancel(tx: Tx, principal: Principal, op: CancelTask, _ready: None, context: CallContext) -> Task:
    session, task = _locked(tx, principal, op.task_id)
    if task.status == "completed":
        raise FailedPreconditionError(
            f"Task {task.task_id} is completed; what is done cannot be cancelled", resource=task.task_id
        )
    if task.status != "cancelled":
        store.cancel(tx, task.task_id, context.now)
        archives.mark(tx, task.log_id, task.number, "cancelled", ended_at=context.now, failure=None)
        told = {"archive_id": archive_id(task.number), "task_id": task.task_id}
        changes.record(tx, session, "commit_cancelled", principal.user_id, context.now, told)
        order.release_next(tx, task.log_id, context)
    return _shown(tx, principal, op.task_id)


def _retry(tx: Tx, principal: Principal, op: RetryTask, _ready: None, context: CallContext) -> Task:
    session, task = _locked(tx, principal, op.task_id)
    if task.status == "completed":
        raise FailedPreconditionError(
            f"Task {task.task_id} is completed; there is nothing to retry", resource=task.task_id
        )
    if task.status != "running":
        store.renew(tx, task.task_id, context.now)
        archives.mark(tx, task.log_id, task.number, "pending", ended_at=None, failure=None)
        order.release_next(tx, task.log_id, context)
        told = {"archive_id": archive_id(task.number), "task_id": task.task_id}
        changes.record(tx, session, "commit_retried", principal.user_id, context.now, told)
    return _shown(tx, principal, op.task_id)


def _retry_archive(tx: Tx, principal: Principal, op: RetryArchive, _ready: None, context: CallContext) -> Task:
    session = session_access.require(tx, principal, op.session_id)
    archive = reading.require(tx, session, op.archive_id)
    if archive.state == "done":
        raise FailedPreconditionError(f"{op.archive_id} is done; there is nothing to retry", resource=op.archive_id)
    return _retry(tx, principal, RetryTask(task_id=archive.task_id), None, context)


def _locked(tx: Tx, principal: Principal, task_id: str) -> tuple[StoredSession, StoredTask]:
    """A task and its session. Who changes tasks of a session has the session first, so that none waits in a ring."""
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
