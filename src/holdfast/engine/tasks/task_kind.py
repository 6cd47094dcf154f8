"""The kinds of background tasks."""

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from holdfast.config import Settings
from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.tasks.claimed_task import ClaimedTask
from holdfast.model.identity import Principal
from holdfast.model.summaries import Cost
from holdfast.store.database import Tx
from holdfast.store.tables.tasks import Failure, StoredTask

WriteResults = Callable[[Tx, CallContext], Any]
"""The last transaction of a task. It writes what others see, and returns the result of the task."""


def _do_nothing(*_: Any) -> None:
    return None


def _nothing_to_lock(_tx: Tx, _task: StoredTask) -> bool:
    return True


def _never_blocks(_settings: Settings) -> bool:
    return False


def _default_retention(settings: Settings) -> int:
    return settings.task_retention_hours


class TaskKind(msgspec.Struct, frozen=True, kw_only=True):
    """What distinguishes one kind of task from another.

    `failed`, `cancelled` and `retried` run in the transaction that changes the status of the task, after the change.
    An error that one of them raises undoes the change.
    """

    perform: Callable[[ClaimedTask], WriteResults]
    """Runs the task, and returns its last transaction. An exception fails the attempt."""
    failed: Callable[[Tx, CallContext, StoredTask, Failure], None] = _do_nothing
    """Records that the last attempt failed."""
    cancelled: Callable[[Tx, CallContext, StoredTask, Principal], None] = _do_nothing
    retried: Callable[[Tx, CallContext, StoredTask, Principal], None] = _do_nothing
    spent: Callable[[Tx, StoredTask, str, Cost], None] = _do_nothing
    """Records what a step, by its name, has cost. The task itself has a record already."""
    lock: Callable[[Tx, StoredTask], bool] = _nothing_to_lock
    """Locks what the tasks with the same ordering key share, before the task is locked. False if it does not exist.

    A kind whose tasks have an ordering key needs it on PostgreSQL: of two tasks that end at the same time, one must see
    that the other has ended, and start the next task.
    """
    blocks_after_failure: Callable[[Settings], bool] = _never_blocks
    """Whether later tasks with the same ordering key wait while a task of this kind is failed."""
    visible_to: Literal["user", "operator"] = "user"
    """`user`: the user that the task belongs to, and the operator. `operator`: only the operator."""
    queued_stage: str | None = None
    """The stage that a task shows before its first one."""
    retention_hours: Callable[[Settings], int | None] = _default_retention
    """How long a completed task is kept. None keeps it for ever."""


TASK_KINDS: dict[str, TaskKind] = {}
"""The kinds by name. `engine/kinds.py` fills it.

A process leaves tasks of other kinds alone: a later version has written them.
"""
