"""Indexing stored files again: the operation, and its task."""

import time
from collections.abc import Generator
from functools import partial
from typing import Literal

import msgspec

from holdfast import lazy
from holdfast.engine.gate.operation_handler import CallContext, EngineResources, OperationHandler, always
from holdfast.engine.gate.polling import not_done, poll_task
from holdfast.engine.processing.kinds import kind_of
from holdfast.engine.tasks.claimed_task import ClaimedTask
from holdfast.engine.tasks.order import add_task
from holdfast.engine.tasks.task_kind import TaskKind, WriteResults
from holdfast.engine.tree.mounts import MOUNTS, Names, require_scope
from holdfast.engine.tree.places import find_place
from holdfast.errors import DeadlineExceededError, InvalidArgumentError, NotFoundError, from_wire
from holdfast.model.identity import Principal
from holdfast.model.tasks import REINDEXING
from holdfast.model.tree.reindexing import Reindexed, ReindexPayload, StoredPlace
from holdfast.model.uris import parse_uri
from holdfast.ops.tree.reindexing import ReindexFiles
from holdfast.store.database import Tx
from holdfast.store.tables.tree import contents, nodes, roots, unprocessed

MAX_SECONDS = 3_600.0
"""How long a task waits for files whose processing another one has begun."""
PAUSE_SECONDS = 0.05
_decode_payload = msgspec.json.Decoder(ReindexPayload).decode
_decode_result = msgspec.json.Decoder(Reindexed).decode


def _reindex(tx: Tx, principal: Principal, op: ReindexFiles, names: Names, context: CallContext) -> Reindexed:
    places = _places(tx, principal, op, names)
    payload = ReindexPayload(op.uri, places, op.mode != "vectors_only", op.recursive)
    task_id = add_task(
        tx,
        context,
        REINDEXING,
        user_id=principal.internal_id,
        resource_id=op.uri,
        subject=op.uri,
        payload=payload,
    )
    return Reindexed(status="accepted", uri=op.uri, task_id=task_id, object_type=_object_type(places), mode=op.mode)


def _places(tx: Tx, principal: Principal, op: ReindexFiles, names: Names) -> list[StoredPlace]:
    if not names:
        return [StoredPlace(mount.root_of(principal), "") for mount in MOUNTS if mount.root is not None]
    require_scope(op.uri, names)
    place = find_place(principal, names)
    if place is None:
        raise InvalidArgumentError(
            "uri", f"{op.uri} has no stored files; what is said in sessions is indexed by itself"
        )
    if place.path and nodes.find(tx, place.root, place.path) is None:
        raise NotFoundError("file", op.uri)
    return [StoredPlace(place.root, place.path)]


def _follow(
    resources: EngineResources, principal: Principal, op: ReindexFiles, started: Reindexed
) -> Generator[float, None, Reindexed]:
    """Wait for the task, if the caller asked for it. If it takes too long, it is accepted, and goes on."""
    if not op.wait:
        return started
    late = not_done(f"the task {started.task_id}")
    try:
        task = yield from poll_task(resources, principal.account_id, started.task_id, op.timeout, late)
    except DeadlineExceededError:
        return started
    if task is None or task.result is None:
        reason = "it was cancelled" if task is None or not task.error else task.error
        raise from_wire("FAILED_PRECONDITION", f"{op.uri} was not indexed: {reason}", {"task_id": started.task_id})
    return _decode_result(task.result)


def _perform(claimed: ClaimedTask) -> WriteResults:
    payload = _decode_payload(claimed.task.payload)
    scanned = claimed.write(lambda tx, _context: sum(_begin(tx, each, payload) for each in payload.places))
    processing = lazy.load("holdfast.engine.processing.process_task").Processing(claimed)
    deadline = time.monotonic() + MAX_SECONDS
    while claimed.read(partial(_count_waiting, places=payload.places)) and time.monotonic() < deadline:
        processing.run()
        time.sleep(PAUSE_SECONDS)
    result = Reindexed(
        status="completed",
        uri=payload.uri,
        task_id=claimed.task.task_id,
        object_type=_object_type(payload.places),
        mode="semantic_and_vectors" if payload.parses else "vectors_only",
        scanned_records=scanned,
        rebuilt_records=scanned,
    )
    return lambda _tx, _context: result


def _object_type(places: list[StoredPlace]) -> Literal["resource", "skill", "tree"]:
    if len(places) > 1:
        return "tree"
    return "skill" if kind_of(places[0].root) == "skill" else "resource"


def _begin(tx: Tx, place: StoredPlace, payload: ReindexPayload) -> int:
    """Register the nodes of a place. Return how many."""
    tx.allow_long_statements()
    roots.hold(tx, [place.root])
    if payload.parses:
        contents.parse_again(tx, place.root, place.path)
    else:
        contents.forget_documents(tx, place.root, place.path)
    unprocessed.add_subtree(tx, place.root, place.path)
    return nodes.count_subtree(tx, place.root, place.path) + bool(place.path)


def _count_waiting(tx: Tx, places: list[StoredPlace]) -> int:
    return sum(unprocessed.count_subtree(tx, place.root, place.path) for place in places)


def _check(_context: CallContext, op: ReindexFiles) -> Names:
    if op.tags is not None:
        raise InvalidArgumentError("tags", "are not changed by indexing; use set_tags")
    return parse_uri(op.uri)


HANDLERS: dict[type, OperationHandler] = {
    ReindexFiles: OperationHandler(_reindex, writes=always, check=_check, follow=_follow)
}
REINDEXING_KIND = TaskKind(perform=_perform)
