"""Watches: resources whose source is read again at intervals. Only what changed is updated."""

from typing import Any

import msgspec

from holdfast.engine.gate.operation_handler import CallContext, OperationHandler, always
from holdfast.engine.resources.placing import order_of, require_resource_place
from holdfast.engine.tasks.account_queues import AccountQueue
from holdfast.engine.tasks.order import add_task
from holdfast.errors import NotFoundError, ResourceExhaustedError
from holdfast.model.access import user_name
from holdfast.model.identity import Principal
from holdfast.model.tasks import ADD_RESOURCE
from holdfast.model.tree.resources import AddPayload, Watch, WatchDeleted, WatchList, WatchRequest, WatchTriggered
from holdfast.ops.tree.resources import (
    DeleteWatch,
    DeleteWatchOf,
    GetWatch,
    ListWatches,
    TriggerWatch,
    TriggerWatchOf,
    UpdateWatch,
    UpdateWatchOf,
)
from holdfast.store.database import Tx
from holdfast.store.tables import tasks
from holdfast.store.tables.tree import nodes, roots, watches
from holdfast.store.tables.tree.watches import StoredWatch
from holdfast.store.timestamps import from_micros

MAX_WATCHES = 1_000
"""How many watches a user may have."""
MIN_SECONDS = 1
SECONDS_PER_MINUTE = 60
WATCHES_AT_ONCE = 100
_decode_request = msgspec.json.Decoder(WatchRequest).decode


def start_watch(
    tx: Tx, principal: Principal, payload: AddPayload, minutes: float, task_id: str, context: CallContext
) -> None:
    """Watch a resource from now on. `task_id` reads it for the first time."""
    earlier = watches.find_by_uri(tx, payload.uri)
    if earlier is None and watches.count_of(tx, principal.internal_id) >= MAX_WATCHES:
        raise ResourceExhaustedError(f"{principal.user_id} has {MAX_WATCHES} watches already; end one of them first")
    watches.insert_or_replace(
        tx,
        StoredWatch(
            watch_id=context.ids.new("watch") if earlier is None else earlier.watch_id,
            owner_id=principal.internal_id,
            user_id=principal.user_id,
            uri=payload.uri,
            source=payload.source.location,
            request=_encode(WatchRequest(payload=payload, watch_interval=minutes)),
            interval_seconds=_seconds(minutes),
            is_active=1,
            created_at=context.now,
            next_at=0,
            last_run_at=None,
            last_task_id=task_id,
        ),
    )
    context.wake_workers()


def _encode(request: WatchRequest) -> str:
    return msgspec.json.encode(request).decode()


def _seconds(minutes: float) -> int:
    return max(MIN_SECONDS, round(minutes * SECONDS_PER_MINUTE))


def start_due_watches(tx: Tx, context: CallContext) -> None:
    """Add the tasks of the watches that are due. The watch of a resource that was removed ends."""
    due = watches.list_due(tx, WATCHES_AT_ONCE)
    locked = {_decode_request(watch.request).payload.root for watch in due}
    roots.lock(tx, locked)
    for watch in watches.list_due(tx, WATCHES_AT_ONCE):  # again: another process may have started some
        request = _decode_request(watch.request)
        if request.payload.root not in locked:
            continue
        last = None if watch.last_task_id is None else tasks.find(tx, watch.last_task_id)
        if last is not None and last.status in {"pending", "running"}:
            watches.record_run(tx, watch, None)
            continue
        was_added = last is None or last.status == "completed"
        if was_added and nodes.find(tx, request.payload.root, request.payload.path) is None:
            watches.delete(tx, watch.watch_id)
            continue
        _run(tx, context, watch, request)


def _run(tx: Tx, context: CallContext, watch: StoredWatch, request: WatchRequest) -> str:
    """Add the task of a watch. The root of its resource is locked."""
    payload = request.payload
    task_id = add_task(
        tx,
        context,
        ADD_RESOURCE,
        user_id=watch.owner_id,
        resource_id=payload.uri,
        subject=payload.uri,
        payload=payload,
        order=order_of(payload.uri),
    )
    watches.record_run(tx, watch, task_id)
    return task_id


def _to_watch(tx: Tx, watch: StoredWatch) -> Watch:
    request = _decode_request(watch.request)
    last = None if watch.last_task_id is None else tasks.find(tx, watch.last_task_id)
    return Watch(
        task_id=watch.watch_id,
        path=watch.source,
        to_uri=watch.uri,
        watch_interval=request.watch_interval,
        is_active=bool(watch.is_active),
        reason=request.payload.options.reason,
        instruction=request.payload.options.instruction,
        next_execution_time=from_micros(watch.next_at) if watch.is_active else None,
        last_execution_time=None if watch.last_run_at is None else from_micros(watch.last_run_at),
        last_task_id=watch.last_task_id,
        last_status=None if last is None else last.status,
        last_error=None if last is None else last.error,
        created_at=from_micros(watch.created_at),
        user_id=user_name(watch.owner_id),
    )


def _is_visible(principal: Principal, watch: StoredWatch) -> bool:
    return principal.role in {"admin", "root"} or watch.owner_id == principal.internal_id


def _require(tx: Tx, principal: Principal, op: Any) -> StoredWatch:
    """Return the watch that an operation names, by its id or by the address of its resource."""
    watch_id = getattr(op, "watch_id", None)
    if watch_id is not None:
        found = watches.find(tx, watch_id)
    else:
        found = watches.find_by_uri(tx, require_resource_place(principal, "to_uri", op.to_uri).uri)
    if found is None or not _is_visible(principal, found):
        raise NotFoundError("watch", watch_id or op.to_uri)
    return found


def _list(tx: Tx, principal: Principal, op: ListWatches, _checked: None, _context: CallContext) -> WatchList:
    if op.to_uri:
        found = watches.find_by_uri(tx, require_resource_place(principal, "to_uri", op.to_uri).uri)
        visible = [] if found is None or not _is_visible(principal, found) else [found]
    else:
        owner_id = None if principal.role in {"admin", "root"} else principal.internal_id
        visible = watches.list_of(tx, owner_id, MAX_WATCHES)
    chosen = [_to_watch(tx, watch) for watch in visible if watch.is_active or not op.active_only]
    return WatchList(tasks=chosen, total=len(chosen))


def _get(tx: Tx, principal: Principal, op: GetWatch, _checked: None, _context: CallContext) -> Watch:
    return _to_watch(tx, _require(tx, principal, op))


def _update(
    tx: Tx, principal: Principal, op: UpdateWatch | UpdateWatchOf, _checked: None, context: CallContext
) -> Watch:
    watch = _require(tx, principal, op)
    request = _decode_request(watch.request)
    changed = {name: value for name in ("reason", "instruction") if (value := getattr(op, name)) is not None}
    options = msgspec.structs.replace(request.payload.options, **changed)
    minutes = request.watch_interval if op.watch_interval is None else op.watch_interval
    request = WatchRequest(payload=msgspec.structs.replace(request.payload, options=options), watch_interval=minutes)
    is_active = bool(watch.is_active) if op.is_active is None else op.is_active
    watches.update(
        tx, watch.watch_id, request=_encode(request), interval_seconds=_seconds(minutes), is_active=is_active
    )
    context.wake_workers()
    return _to_watch(tx, _require(tx, principal, op))


def _delete(
    tx: Tx, principal: Principal, op: DeleteWatch | DeleteWatchOf, _checked: None, _context: CallContext
) -> WatchDeleted:
    watch = _require(tx, principal, op)
    watches.delete(tx, watch.watch_id)
    return WatchDeleted(task_id=watch.watch_id, to_uri=watch.uri)


def _trigger(
    tx: Tx, principal: Principal, op: TriggerWatch | TriggerWatchOf, _checked: None, context: CallContext
) -> WatchTriggered:
    watch = _require(tx, principal, op)
    request = _decode_request(watch.request)
    roots.lock(tx, [request.payload.root])
    task_id = _run(tx, context, watch, request)
    return WatchTriggered(task_id=task_id, watch_id=watch.watch_id, to_uri=watch.uri)


WATCH_QUEUE = AccountQueue(watches.list_due_accounts, watches.micros_until_due, start_due_watches)

HANDLERS: dict[type, OperationHandler] = {
    ListWatches: OperationHandler(_list),
    GetWatch: OperationHandler(_get),
    UpdateWatch: OperationHandler(_update, writes=always),
    UpdateWatchOf: OperationHandler(_update, writes=always),
    DeleteWatch: OperationHandler(_delete, writes=always),
    DeleteWatchOf: OperationHandler(_delete, writes=always),
    TriggerWatch: OperationHandler(_trigger, writes=always),
    TriggerWatchOf: OperationHandler(_trigger, writes=always),
}
