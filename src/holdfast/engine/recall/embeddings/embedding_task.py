"""Embeds documents in batches: reads their texts, calls the embedder outside any transaction, writes the vectors."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.recall.embeddings.document_texts import read_texts
from holdfast.engine.recall.embeddings.vector_index_kind import start_if_needed
from holdfast.engine.tasks.claimed_task import MIN_PAUSE_SECONDS, ClaimedTask, LeaseLostError
from holdfast.engine.tasks.completion import OutdatedResultsError
from holdfast.engine.tasks.task_kind import WriteResults
from holdfast.model.summaries import Cost
from holdfast.store.database import Tx
from holdfast.store.tables import tasks
from holdfast.store.tables.embeddings import unembedded, vectors
from holdfast.store.tables.embeddings.vectors import DocumentToEmbed, Position, Spaces

if TYPE_CHECKING:
    from holdfast.providers.base import Embedder

BATCH_DOCUMENTS = 256
OWNERS_AT_ONCE = 100
LOCAL_TEXTS = 16
"""Texts per call of an embedder on this machine. Small, so that the CPU can be yielded between two calls."""
YIELD_SECONDS = 0.000_2

Advance = Callable[[Tx, CallContext, int], None]
"""Called in the transaction of each batch with the number of its documents."""


class Batch:
    """Documents of an owner that have no vector in a space yet, with the beginnings of their texts."""

    def __init__(self, documents: Sequence[DocumentToEmbed], texts: Sequence[str]) -> None:
        self.documents = documents[: len(texts)]
        self.texts = texts

    @property
    def through(self) -> Position:
        return self.documents[-1].position


def embed_new_documents(claimed: ClaimedTask) -> WriteResults:
    """Embed the documents of all owners that have new ones."""
    embedders = maintained_embedders(claimed, choose_spaces(claimed))
    embedded = 0
    after: str | None = None
    while True:
        owners = claimed.read(partial(unembedded.page, after=after, limit=OWNERS_AT_ONCE))
        for owner_id in owners:
            embedded += embed_owner(claimed, owner_id, embedders)
        if len(owners) < OWNERS_AT_ONCE:
            break
        after = owners[-1]
    return lambda _tx, _context: {"documents": embedded}


def choose_spaces(claimed: ClaimedTask) -> Spaces:
    """The spaces of the account. The first embedder that is used decides which space serves."""
    spaces = claimed.read(vectors.find_spaces)
    if spaces is None:
        space = claimed.models.embedder.space
        spaces = claimed.write(lambda tx, _context: vectors.lock_spaces(tx, space))
    return spaces


def maintained_embedders(claimed: ClaimedTask, spaces: Spaces) -> "list[Embedder]":
    """The embedders of the spaces that new documents are added to.

    A space whose embedder is not configured any more gets none: its new documents are found by their text alone, until
    `reembed` has replaced it.
    """
    wanted = [space for space in (spaces.space, spaces.next_space) if space is not None]
    found = [claimed.models.embedder_of(space) for space in wanted]
    return [embedder for embedder in found if embedder is not None]


def embed_owner(claimed: ClaimedTask, owner_id: str, embedders: "Sequence[Embedder]") -> int:
    """Embed all documents of an owner in all spaces, and record it. Return how many vectors were made."""
    embedded = 0
    spaces = [embedder.space for embedder in embedders]
    while True:
        embedded += sum(embed_in_space(claimed, owner_id, embedder) for embedder in embedders)
        if claimed.write(lambda tx, context: _finish_owner(tx, context, claimed, owner_id, spaces)):
            return embedded


def embed_in_space(
    claimed: ClaimedTask, owner_id: str, embedder: "Embedder", advance: Advance = lambda _tx, _context, _count: None
) -> int:
    """Embed the documents of an owner that have no vector in a space yet. Return how many vectors were made."""
    embedded = 0
    while batch := claimed.read(partial(_read_batch, owner_id=owner_id, space=embedder.space)):
        claimed.observe("batch is read")
        embedded += _embed_batch(claimed, owner_id, embedder, batch, advance)
    return embedded


def _read_batch(tx: Tx, owner_id: str, space: str) -> Batch | None:
    position = vectors.position(tx, owner_id, space)
    documents = vectors.documents_to_embed(tx, owner_id, position, BATCH_DOCUMENTS)
    return Batch(documents, read_texts(tx, documents)) if documents else None


def _embed_batch(claimed: ClaimedTask, owner_id: str, embedder: "Embedder", batch: Batch, advance: Advance) -> int:
    encoded: list[bytes] = []
    tokens = 0
    size = LOCAL_TEXTS if claimed.models.is_local(embedder) else BATCH_DOCUMENTS
    for start in range(0, len(batch.texts), size):
        embedding = embedder.embed(batch.texts[start : start + size])
        tokens += embedding.tokens
        encoded += [row.tobytes() if row.any() else b"" for row in _to_float16(embedding.vectors)]
        time.sleep(YIELD_SECONDS)

    def write(tx: Tx, context: CallContext) -> int:
        # The owner is locked first, then the task: the indexer locks them in this order, too.
        pairs = list(zip(batch.documents, encoded, strict=True))
        added = vectors.insert(tx, owner_id, embedder.space, pairs, batch.through)
        if not vectors.is_used(tx, embedder.space):
            raise OutdatedResultsError  # the space was replaced meanwhile, and its vectors are being deleted
        if not tasks.is_held(tx, claimed.claim):
            raise LeaseLostError
        if tokens:
            tasks.add_cost(tx, claimed.task.task_id, Cost(embedding_tokens=tokens))
        advance(tx, context, len(batch.documents))
        return added

    begun = time.monotonic()
    added = claimed.write(write)
    claimed.observe("batch is written")
    time.sleep(max(MIN_PAUSE_SECONDS, time.monotonic() - begun))
    return added


def _to_float16(matrix: Any) -> Any:
    return np.ascontiguousarray(matrix, dtype="<f2")


def _finish_owner(tx: Tx, context: CallContext, claimed: ClaimedTask, owner_id: str, spaces: Sequence[str]) -> bool:
    """Record that an owner has no new documents. Return False if there are some after all."""
    vectors.lock_owner(tx, owner_id)
    for space in spaces:
        if vectors.documents_to_embed(tx, owner_id, vectors.position(tx, owner_id, space), 1):
            return False
    unembedded.delete(tx, owner_id)
    for space in spaces:
        start_if_needed(tx, context, owner_id, space)
    if not tasks.is_held(tx, claimed.claim):
        raise LeaseLostError
    return True
