"""Where a resource is added: the address that the request names, or a new one named after the source."""

from datetime import UTC, datetime

from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.resources import naming
from holdfast.engine.tasks.order import Order
from holdfast.engine.tree.places import Place, find_place, require_place
from holdfast.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError, ResourceExhaustedError
from holdfast.model.identity import Principal
from holdfast.model.tree.resources import ResourceSource
from holdfast.model.uris import build_uri, child_uri, parse_uri
from holdfast.ops.tree.resources import AddResource
from holdfast.store.database import Tx
from holdfast.store.tables import tasks
from holdfast.store.tables.tree import nodes, roots

SHARED_FOLDER = "viking://resources"
MAX_SAME_NAMES = 1_000
_SHARED = ("resources",)
_USER_DEPTH = 2


def order_of(uri: str) -> Order:
    """The order of the tasks that add one resource."""
    return Order(f"resource:{uri}")


def require_resource_place(principal: Principal, field: str, uri: str) -> Place:
    """Return the place of an address among the resources that the caller may change. It may be their folder itself."""
    names = parse_uri(uri)
    in_user = names[:1] == ("user",) and names[_USER_DEPTH : _USER_DEPTH + 1] == _SHARED
    if names[:1] != _SHARED and not in_user:
        own = build_uri(("user", principal.user_id, "resources"))
        raise InvalidArgumentError(
            field, f"{uri} is outside the scope of resources; use an address in {SHARED_FOLDER} or {own}"
        )
    place = find_place(principal, names)
    if place is None or place.path:
        return require_place(principal, uri, names)
    return place


def choose_place(tx: Tx, principal: Principal, op: AddResource, source: ResourceSource, context: CallContext) -> Place:
    """Return the place of a resource. Its root is locked from then on."""
    if op.to:
        place = require_resource_place(principal, "to", op.to)
        if not place.path:
            raise InvalidArgumentError("to", f"{op.to} has the resources in it; name a resource, or use `parent`")
        roots.lock(tx, [place.root])
        _require_folders_above(tx, place)
        return place
    parent = require_resource_place(principal, "parent", op.parent or SHARED_FOLDER)
    roots.lock(tx, [parent.root])
    if op.parent:
        _require_parent(tx, op, parent)
    folder = parent.uri
    media = None if source.is_archive or source.kind in {"git", "folder"} else naming.media_folder(source.name)
    if media is not None:
        day = datetime.fromtimestamp(context.now / 1e6, UTC)
        folder = "/".join((folder, media, f"{day:%Y}", f"{day:%m}", f"{day:%d}"))
    is_folder = source.is_archive or source.kind in {"git", "folder"}
    return _free_place(tx, principal, folder, naming.root_name(source.name, is_archive=is_folder))


def _require_parent(tx: Tx, op: AddResource, parent: Place) -> None:
    node = nodes.find(tx, parent.root, parent.path) if parent.path else None
    if node is not None and not node.is_folder:
        raise InvalidArgumentError("parent", f"{parent.uri} is a file; name a folder")
    if node is None and parent.path and not op.create_parent:
        raise NotFoundError("folder", parent.uri)
    _require_folders_above(tx, parent)


def _require_folders_above(tx: Tx, place: Place) -> None:
    path = nodes.parent_of(place.path)
    while path:
        node = nodes.find(tx, place.root, path)
        if node is not None:
            if not node.is_folder:
                uri = place.uri_of(path)
                raise FailedPreconditionError(f"{uri} is a file, so nothing can be in it; use another address")
            return
        path = nodes.parent_of(path)


def _free_place(tx: Tx, principal: Principal, folder: str, name: str) -> Place:
    """Return a place in a folder that nothing has, and that no task is going to fill."""
    for number in range(MAX_SAME_NAMES):
        uri = child_uri(folder, f"{name}_{number}" if number else name)
        place = require_resource_place(principal, "parent", uri)
        is_taken = nodes.find(tx, place.root, place.path) is not None
        if not is_taken and tasks.first_unfinished(tx, order_of(place.uri).key) is None:
            return place
    raise ResourceExhaustedError(
        f"{folder} has {MAX_SAME_NAMES} resources with the name {name} already; name the new one with `to`",
        limit=MAX_SAME_NAMES,
    )
