"""The kind of the tasks that embed new documents, and how the indexer asks for one."""

from holdfast import lazy
from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.tasks.claimed_task import ClaimedTask
from holdfast.engine.tasks.order import add_task
from holdfast.engine.tasks.task_kind import TaskKind, WriteResults
from holdfast.model.tasks import EMBEDDING
from holdfast.store.database import Tx
from holdfast.store.tables import tasks, vectors

NO_USER = ""
"""The task is for all users of the account."""
RETENTION_HOURS = 1
"""An active account has a new task every few seconds."""


def request_embedding(tx: Tx, context: CallContext, owner_id: str) -> None:
    """Let the new documents of an owner be embedded after the transaction. Call it after `documents.insert`.

    An account has at most one open task. Its row stays locked until this transaction ends: a task that is about to
    complete waits, and then sees the documents.
    """
    vectors.add_unembedded(tx, owner_id)
    task = tasks.lock_open(tx, NO_USER, EMBEDDING)
    if task is None:
        add_task(tx, context, EMBEDDING, user_id=NO_USER, resource_id="vectors", subject=None, payload={})
    elif task.status == "failed":  # perhaps the settings were corrected since
        tasks.reset_for_retry(tx, task, context.now)
        context.wake_workers()


def _perform(claimed: ClaimedTask) -> WriteResults:
    write_results: WriteResults = lazy.load("holdfast.engine.recall.embedding_task").embed_new_documents(claimed)
    return write_results


EMBEDDING_KIND = TaskKind(perform=_perform, visible_to="operator", retention_hours=lambda _settings: RETENTION_HOURS)
