"""The mounts of the `viking://` tree, and the search for a node among them."""

from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from holdfast.engine.gate.session_access import grantee_of
from holdfast.engine.tree.nodes import Folder, Node, small_folder
from holdfast.engine.tree.session_nodes import sessions_folder, shared_sessions_folder
from holdfast.model.identity import Principal
from holdfast.model.uris import CALLER, PUBLISHED_SCOPES, build_uri
from holdfast.store.access import shared_sessions
from holdfast.store.database import Tx
from holdfast.store.tables.sessions import StoredSession

Names = tuple[str, ...]
FolderBuilder = Callable[[Tx, Principal, str], Folder]
"""Builds a folder for the caller. The last argument is its URI."""
USERS = "user"
"""The top-level folder with the folders of users."""
OWNERS_PAGE = 100


class Mount(msgspec.Struct, frozen=True):
    """A path in the tree, and the function that builds the folder there."""

    path: str
    """The names from the root on, separated by slashes. `{user_id}` means the caller."""
    folder: FolderBuilder
    shared_folder: Callable[[str, Tx, Principal, str], Folder] | None = None
    """Builds the folder of another user, whose internal id is the first argument, with what that user shares."""


MOUNTS: tuple[Mount, ...] = (Mount("user/{user_id}/sessions", sessions_folder, shared_sessions_folder),)
"""All mounts. The folders between the root and the mounts follow from their paths. No mount lies in another one."""


def scopes() -> list[str]:
    """Return the names with which the path of a URI may begin. With any other name, the URI is invalid."""
    return sorted({mount.path.partition("/")[0] for mount in MOUNTS} | PUBLISHED_SCOPES)


def find(tx: Tx, principal: Principal, names: Names) -> Node | None:
    """Return the node at the path `names`. An empty name means the caller's user id."""
    if _is_in(names, (USERS, CALLER)) and principal.role == "guest":
        shared = shared_sessions.newest_readable(tx, grantee_of(principal), after="", limit=1)
        names = (USERS, *(session.owner_id for session in shared), *names[2:])
    path = tuple(name or principal.user_id for name in names)
    if path == (USERS,):
        return _users_folder(tx, principal)
    if not _is_in(path, (USERS,)) or path[1] == principal.user_id:
        return _find_in(tx, principal, _own_mounts(principal), path)
    if path[1] == principal.internal_id:
        return _find_in(tx, principal, _own_mounts(principal), (USERS, principal.user_id, *path[2:]))
    node = _find_in(tx, principal, _shared_mounts(path[1]), path)
    return node if node is not None and node.changed_at else None  # the folders of a user who shares nothing


def _find_in(tx: Tx, principal: Principal, mounts: dict[Names, FolderBuilder], path: Names) -> Node | None:
    mount_path = next((mount_path for mount_path in mounts if _is_in(path, mount_path)), None)
    if mount_path is None:
        is_above_a_mount = not path or any(_is_in(mount_path, path) for mount_path in mounts)
        return _folder_at(tx, principal, mounts, path) if is_above_a_mount else None
    node: Node | None = _folder_at(tx, principal, mounts, mount_path)
    for name in path[len(mount_path) :]:
        node = node.child(name) if isinstance(node, Folder) else None
    return node


def _own_mounts(principal: Principal) -> dict[Names, FolderBuilder]:
    """The mounts of the caller by their paths. A guest has none below the users."""
    paths = {mount: _path_of(mount, principal.user_id) for mount in MOUNTS}
    is_guest = principal.role == "guest"
    return {path: mount.folder for mount, path in paths.items() if not (is_guest and _is_in(path, (USERS,)))}


def _shared_mounts(owner_id: str) -> dict[Names, FolderBuilder]:
    """The mounts of another user, with what that user shares with the caller."""
    return {
        _path_of(mount, owner_id): partial(mount.shared_folder, owner_id)
        for mount in MOUNTS
        if mount.shared_folder is not None
    }


def _path_of(mount: Mount, user_id: str) -> Names:
    return tuple(user_id if name == "{user_id}" else name for name in mount.path.split("/"))


def _users_folder(tx: Tx, principal: Principal) -> Folder:
    """Return the folder of all users that the caller can see: the caller, and owners of shared sessions."""
    own = _find_in(tx, principal, _own_mounts(principal), (USERS, principal.user_id))

    def children() -> Iterator[Folder]:
        if isinstance(own, Folder):
            yield own
        after = ""
        while newest := shared_sessions.newest_readable(tx, grantee_of(principal), after=after, limit=OWNERS_PAGE):
            yield from (_user_folder(tx, principal, session) for session in newest)
            after = newest[-1].owner_id

    def child(name: str) -> Node | None:
        return find(tx, principal, (USERS, name))

    changed_at = own.changed_at if own is not None else 0
    return Folder(name=USERS, uri=build_uri((USERS,)), changed_at=changed_at, children=children, child=child)


def _user_folder(tx: Tx, principal: Principal, newest: StoredSession) -> Folder:
    """Return the folder of another user, built only when it is opened. `newest` is the newest shared session."""
    path = (USERS, newest.owner_id)

    def children() -> Iterator[Node]:
        return _folder_at(tx, principal, _shared_mounts(newest.owner_id), path).children()

    return small_folder(newest.owner_id, build_uri(path), newest.changed_at, children)


def _is_in(path: Names, folder: Names) -> bool:
    """Whether the path is the folder itself or lies in it."""
    return path[: len(folder)] == folder


def _folder_at(tx: Tx, principal: Principal, mounts: dict[Names, FolderBuilder], path: Names) -> Folder:
    """Return the folder of a mount, or one above mounts, whose modification time is the latest of theirs."""
    if path in mounts:
        return mounts[path](tx, principal, build_uri(path))
    child_names = {mount_path[len(path)] for mount_path in mounts if _is_in(mount_path, path)}
    if not path:
        child_names.add(USERS)  # it has what others share, also for a guest without mounts
    child_folders = [
        _users_folder(tx, principal) if (*path, name) == (USERS,) else _folder_at(tx, principal, mounts, (*path, name))
        for name in sorted(child_names)
    ]
    changed_at = max(folder.changed_at for folder in child_folders)
    return small_folder(path[-1] if path else "", build_uri(path), changed_at, lambda: iter(child_folders))
