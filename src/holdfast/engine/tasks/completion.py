"""The last transaction of a task. All its results become visible at once, or none do."""

from typing import Any

import msgspec

from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.tasks.claimed_task import ClaimedTask, LeaseLostError
from holdfast.engine.tasks.order import unblock_next
from holdfast.engine.tasks.task_kind import TaskKind, WriteResults
from holdfast.errors import UnavailableError
from holdfast.store.database import Tx
from holdfast.store.tables import steps, tasks

MAX_ATTEMPTS = 5
"""How often a task is performed again because what it had read was changed meanwhile."""


class OutdatedResultsError(Exception):
    """Raised by the last transaction of a task if what the task has read was changed since.

    The task is performed again. Its checkpointed steps are not repeated.
    """


def perform(kind: TaskKind, claimed: ClaimedTask) -> None:
    """Run a task to its end."""
    for _ in range(MAX_ATTEMPTS):
        try:
            _complete_in_transaction(kind, claimed, kind.perform(claimed))
        except OutdatedResultsError:
            continue
        return
    raise UnavailableError(
        f"what the task uses was changed {MAX_ATTEMPTS} times before it could be finished",
        service="tasks",
        reason="outdated results",
    )


def _complete_in_transaction(kind: TaskKind, claimed: ClaimedTask, write_results: WriteResults) -> None:
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
    tasks.complete(tx, claimed.claim, result, worked=claimed.working_time(), now=context.now)
    steps.delete(tx, task.task_id)
    unblock_next(tx, task.order_key, context)
