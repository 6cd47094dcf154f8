"""Starting tasks that embed all documents of an account with another embedder, and the kind of these tasks."""

from typing import NamedTuple

from holdfast import lazy
from holdfast.engine.gate.operation_handler import CallContext, EngineResources, OperationHandler, always
from holdfast.engine.tasks.claimed_task import ClaimedTask
from holdfast.engine.tasks.order import add_task
from holdfast.engine.tasks.task_kind import TaskKind, WriteResults
from holdfast.model.identity import Principal
from holdfast.model.tasks import REEMBEDDING, ReembeddingPayload, ReembeddingStarted
from holdfast.ops.vectors import ReembedDocuments
from holdfast.store.database import Tx
from holdfast.store.tables import tasks
from holdfast.store.tables.embeddings import vectors


class _Prepared(NamedTuple):
    space: str


def _prepare(resources: EngineResources, _principal: Principal, _op: ReembedDocuments, _checked: None) -> _Prepared:
    return _Prepared(resources.models.embedder.space)


def _start(
    tx: Tx, principal: Principal, _op: ReembedDocuments, prepared: _Prepared, context: CallContext
) -> ReembeddingStarted:
    documents = vectors.count_documents(tx)
    task = tasks.lock_open(tx, principal.internal_id, REEMBEDDING)
    if task is not None and task.decode_payload(ReembeddingPayload).space == prepared.space:
        if task.status == "failed":
            tasks.reset_for_retry(tx, task, context.now)
            context.wake_workers()
        return ReembeddingStarted(task_id=task.task_id, space=prepared.space, documents=documents)
    if task is not None:  # for an embedder that is not configured any more
        tasks.cancel(tx, task.task_id, context.now)
    task_id = add_task(
        tx,
        context,
        REEMBEDDING,
        user_id=principal.internal_id,
        resource_id="vectors",
        subject=None,
        payload=ReembeddingPayload(prepared.space),
        steps_total=max(1, documents),
    )
    return ReembeddingStarted(task_id=task_id, space=prepared.space, documents=documents)


def _perform(claimed: ClaimedTask) -> WriteResults:
    write_results: WriteResults = lazy.load("holdfast.engine.recall.embeddings.reembedding_task").perform(claimed)
    return write_results


REEMBEDDING_KIND = TaskKind(perform=_perform)

HANDLERS: dict[type, OperationHandler] = {
    ReembedDocuments: OperationHandler(_start, writes=always, prepare=_prepare),
}
