"""The kind of the tasks that add the vectors of an owner who has many to the index of a database that can have one."""

import hashlib

import msgspec

from holdfast import lazy
from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.tasks.claimed_task import ClaimedTask
from holdfast.engine.tasks.order import new_task
from holdfast.engine.tasks.task_kind import TaskKind, WriteResults
from holdfast.model.identity import OPERATOR
from holdfast.model.tasks import VECTOR_INDEX, VectorIndexPayload
from holdfast.store.database import Tx
from holdfast.store.tables import documents, tasks
from holdfast.store.tables.embeddings import vector_index, vectors

MAX_NEWER = 2_000
"""How many vectors of an owner may be newer than the index. A search compares these one by one."""


def start_if_needed(tx: Tx, context: CallContext, owner_id: str, space: str) -> None:
    """Add the task of an owner with many vectors that are not in the index, if the database can have one."""
    if not tx.dialect.can_index_vectors:
        return
    statistics = documents.statistics(tx, owner_id)
    if statistics.documents <= context.settings.exact_vectors or not vector_index.is_available(tx):
        return
    version = vector_index.indexed_version(tx, owner_id, space)
    newer = vectors.count_added(tx, owner_id, space, version or 0, MAX_NEWER + 1)
    is_needed = newer > min(MAX_NEWER, context.settings.exact_vectors)
    if is_needed and vectors.dimensions(tx, owner_id, space) <= vector_index.MAX_DIMENSIONS:
        key = f"{tx.account}\0{owner_id}\0{space}".encode()
        task_id = f"task_vectors_{hashlib.blake2b(key, digest_size=12).hexdigest()}"
        task = new_task(tx, context, VECTOR_INDEX, OPERATOR.user_id, task_id, tx.account)
        payload = msgspec.json.encode(VectorIndexPayload(owner_id, space)).decode()
        tasks.insert_or_restart(tx, msgspec.structs.replace(task, payload=payload))
        context.wake_workers()


def _perform(claimed: ClaimedTask) -> WriteResults:
    write_results: WriteResults = lazy.load("holdfast.engine.recall.embeddings.vector_index_task").perform(claimed)
    return write_results


VECTOR_INDEX_KIND = TaskKind(perform=_perform, visible_to="operator")
