"""The kind of the tasks that process written files and changed folders. An account has at most one of them."""

from holdfast import lazy
from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.tasks.account_queues import AccountQueue
from holdfast.engine.tasks.claimed_task import ClaimedTask
from holdfast.engine.tasks.order import new_task
from holdfast.engine.tasks.task_kind import TaskKind, WriteResults
from holdfast.model.identity import OPERATOR
from holdfast.model.tasks import PROCESSING
from holdfast.store.database import Tx
from holdfast.store.tables import tasks
from holdfast.store.tables.tree import unprocessed

RETRY_MICROS = 600_000_000
"""After a failure, the nodes of the account are processed again in ten minutes."""


def _start(tx: Tx, context: CallContext) -> None:
    task_id = f"{unprocessed.TASK_PREFIX}{tx.account}"
    tasks.insert_or_restart(tx, new_task(tx, context, PROCESSING, OPERATOR.user_id, task_id, tx.account))
    context.wake_workers()


def _perform(claimed: ClaimedTask) -> WriteResults:
    """Process. The parsers and the analysis are imported with the first task: many clients need none."""
    write_results: WriteResults = lazy.load("holdfast.engine.processing.process_task").process_due_nodes(claimed)
    return write_results


def _try_later(tx: Tx, *_: object) -> None:
    unprocessed.postpone_all(tx, RETRY_MICROS)


PROCESSING_KIND = TaskKind(
    perform=_perform,
    failed=_try_later,
    cancelled=_try_later,
    visible_to="operator",
    retention_hours=lambda _settings: 0,
)
PROCESSING_QUEUE = AccountQueue(unprocessed.list_due_accounts, unprocessed.micros_until_due, _start)
