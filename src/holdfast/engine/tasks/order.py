"""New tasks, and the order of tasks with the same ordering key: they run one after the other."""

import msgspec

from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.tasks.task_kind import TASK_KINDS
from holdfast.store.database import Tx
from holdfast.store.tables import tasks
from holdfast.store.tables.tasks import StoredTask


class Order(msgspec.Struct, frozen=True):
    """The place of a task among the tasks with the same key."""

    key: str
    position: int = 0
    """Tasks with the same position run in the order of their ids."""


def add_task(
    tx: Tx,
    context: CallContext,
    kind: str,
    *,
    user_id: str,
    resource_id: str,
    subject: str | None,
    payload: object,
    order: Order | None = None,
    steps_total: int = 1,
) -> str:
    """Insert a task and return its id. It is due when the transaction commits, or after the tasks before it in order.

    `payload` is encoded as JSON. `subject` is the address that the task is about.
    """
    task = new_task(tx, context, kind, user_id, context.ids.new("task"), resource_id)
    task = msgspec.structs.replace(
        task,
        subject=subject,
        order_key=None if order is None else order.key,
        order_position=0 if order is None else order.position,
        payload=msgspec.json.encode(payload).decode(),
        stage=None if order is None else "waiting",
        steps_total=steps_total,
    )
    tasks.insert(tx, task, is_due=order is None)
    if order is None:
        context.wake_workers()
    else:
        unblock_next(tx, order.key, context)
    return task.task_id


def new_task(tx: Tx, context: CallContext, kind: str, user_id: str, task_id: str, resource_id: str) -> StoredTask:
    """A pending task that is not stored yet."""
    return StoredTask(
        account_id=tx.account,
        task_id=task_id,
        user_id=user_id,
        kind=kind,
        status="pending",
        resource_id=resource_id,
        subject=None,
        order_key=None,
        order_position=0,
        payload="{}",
        stage=None,
        steps_done=0,
        steps_total=1,
        run_at=None,
        fence=0,
        attempts=0,
        failures=0,
        created_at=context.now,
        updated_at=context.now,
        worked=0,
        prompt_tokens=0,
        completion_tokens=0,
        total_tokens=0,
        cached_tokens=0,
        reasoning_tokens=0,
        embedding_tokens=0,
        result=None,
        error_code=None,
        error=None,
    )


def unblock_next(tx: Tx, order_key: str | None, context: CallContext) -> None:
    """Unblock the earliest unfinished task with this key, unless a failed task before it blocks it.

    The caller has locked what the tasks with this key share, such as the session (`TaskKind.lock`). Whether a failed
    task blocks may be a setting, which can change at any time. So every new task, and every change of a task, calls
    this function.
    """
    first = None if order_key is None else tasks.first_unfinished(tx, order_key)
    if first is None:
        return
    for kind in tasks.failed_kinds_before(tx, first):
        if kind not in TASK_KINDS or TASK_KINDS[kind].blocks_after_failure(context.settings):
            return
    tasks.unblock(tx, first.task_id)
    context.wake_workers()
