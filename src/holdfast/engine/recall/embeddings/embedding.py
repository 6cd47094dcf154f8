"""The kind of the tasks that embed new documents. An account has at most one of them."""

from holdfast import lazy
from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.tasks.account_queues import AccountQueue
from holdfast.engine.tasks.claimed_task import ClaimedTask
from holdfast.engine.tasks.order import new_task
from holdfast.engine.tasks.task_kind import TaskKind, WriteResults
from holdfast.model.identity import OPERATOR
from holdfast.model.tasks import EMBEDDING
from holdfast.store.database import Tx
from holdfast.store.tables import tasks
from holdfast.store.tables.embeddings import unembedded

RETRY_MICROS = 600_000_000
"""After a failure, the documents of the account are embedded again in ten minutes."""


def _start(tx: Tx, context: CallContext) -> None:
    task_id = f"{unembedded.TASK_PREFIX}{tx.account}"
    tasks.insert_or_restart(tx, new_task(tx, context, EMBEDDING, OPERATOR.user_id, task_id, tx.account))
    context.wake_workers()


def _perform(claimed: ClaimedTask) -> WriteResults:
    """Embed. numpy is imported with the first task: many clients need none."""
    write_results: WriteResults = lazy.load("holdfast.engine.recall.embeddings.embedding_task").embed_new_documents(
        claimed
    )
    return write_results


def _try_later(tx: Tx, *_: object) -> None:
    unembedded.postpone_all(tx, RETRY_MICROS)


EMBEDDING_KIND = TaskKind(
    perform=_perform,
    failed=_try_later,
    cancelled=_try_later,
    visible_to="operator",
    retention_hours=lambda _settings: 0,
)
EMBEDDING_QUEUE = AccountQueue(unembedded.list_due_accounts, unembedded.micros_until_due, _start)
