"""Copies the vectors of an owner to the table with the index of their space, and builds the index if there is none."""

import time
from collections.abc import Sequence
from functools import partial

import numpy as np

from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.recall.embeddings.indexed_vectors import to_text
from holdfast.engine.tasks.claimed_task import ClaimedTask, LeaseLostError
from holdfast.engine.tasks.task_kind import WriteResults
from holdfast.model.tasks import VectorIndexPayload
from holdfast.store.database import Row, Tx
from holdfast.store.tables import documents, tasks
from holdfast.store.tables.embeddings import vector_index, vectors

SLICE_ROWS = 500


def perform(claimed: ClaimedTask) -> WriteResults:
    """What is newer than the version at the beginning, a search compares itself. The next task adds it."""
    payload = claimed.task.decode_payload(VectorIndexPayload)
    owner_id, space = payload.owner_id, payload.space
    version, indexed = claimed.read(
        lambda tx: (documents.statistics(tx, owner_id).version, vector_index.indexed_version(tx, owner_id, space))
    )
    copied = _copy(claimed, payload, indexed or 0)
    if copied:
        # Not in the last transaction: that one locks the task, and heartbeats would have to wait.
        claimed.write(lambda tx, _context: vector_index.create_index(tx, space))

    def finish(tx: Tx, _context: CallContext) -> dict[str, int]:
        if copied and vectors.is_used(tx, space):
            vector_index.delete_missing(tx, owner_id, space)
            vector_index.store_indexed_version(tx, owner_id, space, version)
        return {"vectors": copied}

    return finish


def _copy(claimed: ClaimedTask, payload: VectorIndexPayload, indexed: int) -> int:
    """Copy the vectors that were added after a version, in slices. Return how many."""
    copied = after = 0
    while True:
        rows = claimed.read(partial(_read_page, payload=payload, version=indexed, after=after))
        if not rows:
            return copied
        begun = time.monotonic()
        claimed.write(partial(_insert, claimed=claimed, payload=payload, rows=rows))
        copied, after = copied + len(rows), rows[-1][0]
        time.sleep(time.monotonic() - begun)


def _read_page(tx: Tx, payload: VectorIndexPayload, version: int, after: int) -> list[Row]:
    return vectors.read_newer_page(tx, payload.owner_id, payload.space, version, after, SLICE_ROWS)


def _insert(
    tx: Tx, _context: CallContext, *, claimed: ClaimedTask, payload: VectorIndexPayload, rows: Sequence[Row]
) -> None:
    if not tasks.is_held(tx, claimed.claim):
        raise LeaseLostError
    width = max(len(row[-1]) for row in rows) // 2
    vector_index.create_table(tx, payload.space, width)
    texts = [(row[0], to_text(np.frombuffer(row[-1], "<f2"))) for row in rows if len(row[-1]) == 2 * width]
    for first in range(0, len(texts), 100):
        vector_index.insert(tx, payload.owner_id, payload.space, texts[first : first + 100])
