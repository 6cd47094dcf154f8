"""The mounts of the `viking://` tree, and the search for a node among them."""

from collections.abc import Callable, Iterator

import msgspec

from holdfast.engine.tree.nodes import Folder, Node, small_folder
from holdfast.engine.tree.session_nodes import sessions_folder
from holdfast.model.identity import Principal
from holdfast.model.uris import SCHEME, child_uri
from holdfast.store.database import Tx

Names = tuple[str, ...]


class Mount(msgspec.Struct, frozen=True):
    """A place in the tree, and the function that builds the folder at this place."""

    path: str
    """The names from the root on, separated by slashes. `{user_id}` means the caller."""
    folder: Callable[[Tx, Principal, str], Folder]
    """Builds the folder for the caller. The last argument is its URI."""


MOUNTS: tuple[Mount, ...] = (Mount("user/{user_id}/sessions", sessions_folder),)
"""All mounts. The folders between the root and the mounts follow from their paths. A mount may lie in another one."""


def find(tx: Tx, principal: Principal, names: Names) -> Node | None:
    """Return the node at the path `names`. An empty name means the caller's user id."""
    path = tuple(name or principal.user_id for name in names)
    mounts = {_mount_path(mount, principal): mount for mount in MOUNTS}
    length = max(length for length in range(len(path) + 1) if _is_place(mounts, path[:length]))
    node: Node | None = _folder_at(tx, principal, mounts, path[:length])
    for name in path[length:]:
        node = node.child(name) if isinstance(node, Folder) else None
    return node


def _mount_path(mount: Mount, principal: Principal) -> Names:
    return tuple(principal.user_id if name == "{user_id}" else name for name in mount.path.split("/"))


def _is_place(mounts: dict[Names, Mount], path: Names) -> bool:
    """Whether the path is the root, a mount, or a folder between them."""
    return not path or any(mount_path[: len(path)] == path for mount_path in mounts)


def _folder_at(tx: Tx, principal: Principal, mounts: dict[Names, Mount], path: Names) -> Folder:
    """Return the folder at a place. It holds the places below it, and what its own mount holds."""
    uri = SCHEME
    for name in path:
        uri = child_uri(uri, name)
    own = mounts[path].folder(tx, principal, uri) if path in mounts else None
    below = sorted({mount_path[len(path)] for mount_path in mounts if _is_below(mount_path, path)})
    if own is not None and not below:
        return own

    def places() -> Iterator[Folder]:
        return (_folder_at(tx, principal, mounts, (*path, name)) for name in below)

    if own is None:
        changed_at = max((place.changed_at for place in places()), default=0)
        return small_folder(path[-1] if path else "", uri, changed_at, places)
    return _merge(own, below, places)


def _is_below(path: Names, ancestor: Names) -> bool:
    return len(path) > len(ancestor) and path[: len(ancestor)] == ancestor


def _merge(own: Folder, below: list[str], places: Callable[[], Iterator[Folder]]) -> Folder:
    """Return the folder of a mount with the mounts that lie in it. These take precedence over its own children."""

    def children() -> Iterator[Node]:
        yield from places()
        yield from (node for node in own.children() if node.name not in below)

    def child(name: str) -> Node | None:
        return next((place for place in places() if place.name == name), None) or own.child(name)

    return msgspec.structs.replace(own, children=children, child=child)
