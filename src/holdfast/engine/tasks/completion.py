"""The last transaction of a task. All its results become visible at once, or none do."""

from typing import Any

import msgspec

from holdfast.engine.gate.rule import CallContext
from holdfast.engine.tasks.claimed_task import ClaimedTask, LeaseLostError
from holdfast.engine.tasks.order import unblock_next
from holdfast.engine.tasks.task_kind import TaskKind, WriteResults
from holdfast.store.database import Tx
from holdfast.store.tables import steps, tasks


def complete(kind: TaskKind, claimed: ClaimedTask, write_results: WriteResults) -> None:
    """Write the results, complete the task and start the next one in order."""

    def transaction(tx: Tx, context: CallContext) -> None:
        _complete(tx, context, kind, claimed, write_results)
        claimed.observe("finish is written")

    claimed.observe("finish begins")
    claimed.write(transaction)
    claimed.observe("finish is committed")


def _complete(tx: Tx, context: CallContext, kind: TaskKind, claimed: ClaimedTask, write_results: WriteResults) -> None:
    task = claimed.task
    if not kind.lock(tx, task) or not tasks.is_held(tx, claimed.claim):
        raise LeaseLostError
    result: Any = msgspec.json.encode(write_results(tx, context)).decode()
    tasks.complete(tx, claimed.claim, result, worked=claimed.working_time(context), now=context.now)
    steps.delete(tx, task.task_id)
    unblock_next(tx, task.order_key, context)
