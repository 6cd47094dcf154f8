"""The mounts of the `viking://` tree, and the search for a node among them."""

from collections.abc import Callable

import msgspec

from holdfast.engine.tree.nodes import Folder, Node, small_folder
from holdfast.engine.tree.session_nodes import sessions_folder
from holdfast.model.identity import Principal
from holdfast.model.uris import SCHEME, SESSION_ALIAS, child_uri
from holdfast.store.database import Tx

Names = tuple[str, ...]


class Mount(msgspec.Struct, frozen=True):
    """A path in the tree, and the function that builds the folder there."""

    path: str
    """The names from the root on, separated by slashes. `{user_id}` means the caller."""
    folder: Callable[[Tx, Principal, str], Folder]
    """Builds the folder for the caller. The last argument is its URI."""


MOUNTS: tuple[Mount, ...] = (Mount("user/{user_id}/sessions", sessions_folder),)
"""All mounts. The folders between the root and the mounts follow from their paths. No mount lies in another one."""

RESERVED_SCOPES = frozenset({"agent", "resources", "system"})
"""Top-level names of the OpenViking API. Without a mount nothing exists there, but the URI is valid."""


def scopes() -> list[str]:
    """Return the names with which the path of a URI may begin. With any other name, the URI is invalid."""
    return sorted({mount.path.partition("/")[0] for mount in MOUNTS} | RESERVED_SCOPES | {SESSION_ALIAS})


def find(tx: Tx, principal: Principal, names: Names) -> Node | None:
    """Return the node at the path `names`. An empty name means the caller's user id."""
    path = tuple(name or principal.user_id for name in names)
    mounts = {_mount_path(mount, principal): mount for mount in MOUNTS}
    mount_path = next((mount_path for mount_path in mounts if _is_in(path, mount_path)), None)
    if mount_path is None:
        is_above_a_mount = any(_is_in(mount_path, path) for mount_path in mounts)
        return _folder_at(tx, principal, mounts, path) if is_above_a_mount else None
    node: Node | None = _folder_at(tx, principal, mounts, mount_path)
    for name in path[len(mount_path) :]:
        node = node.child(name) if isinstance(node, Folder) else None
    return node


def _mount_path(mount: Mount, principal: Principal) -> Names:
    return tuple(principal.user_id if name == "{user_id}" else name for name in mount.path.split("/"))


def _is_in(path: Names, folder: Names) -> bool:
    """Whether the path is the folder itself or lies in it."""
    return path[: len(folder)] == folder


def _folder_at(tx: Tx, principal: Principal, mounts: dict[Names, Mount], path: Names) -> Folder:
    """Return the folder of a mount, or one above mounts, whose modification time is the latest of theirs."""
    if path in mounts:
        return mounts[path].folder(tx, principal, _uri(path))
    child_names = sorted({mount_path[len(path)] for mount_path in mounts if _is_in(mount_path, path)})
    child_folders = [_folder_at(tx, principal, mounts, (*path, name)) for name in child_names]
    changed_at = max(folder.changed_at for folder in child_folders)
    return small_folder(path[-1] if path else "", _uri(path), changed_at, lambda: iter(child_folders))


def _uri(path: Names) -> str:
    uri = SCHEME
    for name in path:
        uri = child_uri(uri, name)
    return uri
