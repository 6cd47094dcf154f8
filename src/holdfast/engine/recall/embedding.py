"""The kind of the tasks that embed new documents, which the indexer starts. An account has at most one of them."""

from holdfast import lazy
from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.tasks.claimed_task import ClaimedTask
from holdfast.engine.tasks.order import new_task
from holdfast.engine.tasks.task_kind import TaskKind, WriteResults
from holdfast.model.identity import OPERATOR
from holdfast.model.tasks import EMBEDDING
from holdfast.store.database import Tx
from holdfast.store.tables import tasks

TASK_PREFIX = "embed_"


def start_embedding(tx: Tx, context: CallContext) -> None:
    """Add the task that embeds the new documents of the account, unless there is one.

    Its row stays locked until this transaction ends: a task that is about to complete waits, and then sees the owners
    that were added to `unembedded`.
    """
    task_id = f"{TASK_PREFIX}{tx.account}"
    tasks.insert_or_restart(tx, new_task(tx, context, EMBEDDING, OPERATOR.user_id, task_id, tx.account))
    context.wake_workers()


def _perform(claimed: ClaimedTask) -> WriteResults:
    write_results: WriteResults = lazy.load("holdfast.engine.recall.embedding_task").embed_new_documents(claimed)
    return write_results


EMBEDDING_KIND = TaskKind(perform=_perform, visible_to="operator", retention_hours=lambda _settings: 0)
