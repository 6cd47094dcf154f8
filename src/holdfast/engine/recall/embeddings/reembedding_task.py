"""Embeds all documents of an account in another space. The old space serves until the new one is complete."""

import time
from functools import partial

from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.recall.embeddings.embedding_task import embed_in_space
from holdfast.engine.recall.embeddings.vector_index_kind import start_if_needed
from holdfast.engine.tasks.claimed_task import ClaimedTask, LeaseLostError
from holdfast.engine.tasks.task_kind import WriteResults
from holdfast.errors import UnavailableError
from holdfast.model.tasks import ReembeddingPayload
from holdfast.store.database import Tx
from holdfast.store.tables import tasks
from holdfast.store.tables.embeddings import vector_index, vectors
from holdfast.store.tables.embeddings.vectors import Spaces

OWNERS_AT_ONCE = 100
SLICE_ROWS = 500
"""How many old vectors one transaction deletes."""


def perform(claimed: ClaimedTask) -> WriteResults:
    """Fill the space of the configured embedder, then use it, then delete the vectors of all others.

    What is done is recorded with the vectors themselves: after a crash, the next attempt continues there.
    """
    space = claimed.task.decode_payload(ReembeddingPayload).space
    embedder = claimed.models.embedder
    if embedder.space != space:
        raise UnavailableError(
            f"the task embeds documents in the space {space}, and this process has an embedder of {embedder.space};"
            " use the same settings in all processes, or start `holdfast reembed` again",
            service="embedding",
            reason="another embedder",
        )
    claimed.write(lambda tx, _context: _begin(tx, claimed, space))
    done = 0

    def advance(tx: Tx, context: CallContext, count: int) -> None:
        nonlocal done
        done += count
        _advance(tx, context, claimed, done)

    embedded = 0
    after: str | None = None
    while True:
        owners = claimed.read(partial(vectors.list_owners, after=after, limit=OWNERS_AT_ONCE))
        for owner_id in owners:
            embedded += embed_in_space(claimed, owner_id, embedder, advance)
            claimed.write(partial(_index_if_needed, owner_id=owner_id, space=space))
        if len(owners) < OWNERS_AT_ONCE:
            break
        after = owners[-1]
    claimed.write(lambda tx, _context: _switch(tx, claimed, space))
    claimed.observe("new space serves")
    _delete_other_spaces(claimed, space)
    return lambda _tx, _context: {"space": space, "documents": embedded}


def _begin(tx: Tx, claimed: ClaimedTask, space: str) -> None:
    """From now on, new documents are embedded in both spaces."""
    spaces = vectors.lock_spaces(tx, space)
    if space not in spaces:
        vectors.store_spaces(tx, Spaces(spaces.space, space))
    _require_lease(tx, claimed)


def _advance(tx: Tx, context: CallContext, claimed: ClaimedTask, done: int) -> None:
    """Record the progress. Documents that an earlier attempt has embedded are not counted again."""
    done += claimed.task.steps_done
    total = max(claimed.task.steps_total, done)
    tasks.advance(tx, claimed.claim, stage="embedding", done=done, total=total, worked=0, now=context.now)


def _index_if_needed(tx: Tx, context: CallContext, *, owner_id: str, space: str) -> None:
    start_if_needed(tx, context, owner_id, space)


def _switch(tx: Tx, claimed: ClaimedTask, space: str) -> None:
    old = vectors.lock_spaces(tx, space)
    vectors.store_spaces(tx, Spaces(space, None))
    if old.space != space:
        vector_index.delete_account(tx, old.space)
    _require_lease(tx, claimed)


def _delete_other_spaces(claimed: ClaimedTask, space: str) -> None:
    def delete(tx: Tx, _context: CallContext) -> int:
        tx.allow_long_statements()
        deleted = vectors.delete_other_spaces(tx, space, SLICE_ROWS)
        _require_lease(tx, claimed)
        return deleted

    while True:
        begun = time.monotonic()
        if not claimed.write(delete):
            return
        time.sleep(time.monotonic() - begun)


def _require_lease(tx: Tx, claimed: ClaimedTask) -> None:
    if not tasks.is_held(tx, claimed.claim):
        raise LeaseLostError
