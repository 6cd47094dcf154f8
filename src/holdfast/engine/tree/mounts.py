"""The mounts of the `viking://` tree, and the search for a node among them."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal

import msgspec

from holdfast.engine.gate.session_access import grantee_of
from holdfast.engine.tree.nodes import Folder, Node, small_folder
from holdfast.engine.tree.session_nodes import sessions_folder, shared_sessions_folder
from holdfast.engine.tree.stored_nodes import stored_folder
from holdfast.errors import FailedPreconditionError, InvalidUriError, NotFoundError
from holdfast.model.identity import Principal
from holdfast.model.tree.attributes import Relation, RelationsFile
from holdfast.model.uris import AGENT_FOLDERS, CALLER, PUBLISHED_SCOPES, build_uri, parse_uri
from holdfast.session_files import encode_pretty
from holdfast.store.access import shared_sessions
from holdfast.store.database import Tx
from holdfast.store.tables.sessions import StoredSession
from holdfast.store.tables.tree import relations, roots
from holdfast.store.timestamps import from_micros

Names = tuple[str, ...]
FolderBuilder = Callable[[Tx, Principal, str], Folder]
"""Builds a folder for the caller. The last argument is its URI."""
USERS = "user"
"""The top-level folder with the folders of users."""
OWN_SKILLS = (USERS, CALLER, "skills")
PUBLISHED_SKILLS = ("system", "skills")
"""A skill that the caller does not have is looked for here, if its address names no user."""
OWNERS_PAGE = 100
MAX_SHOWN_RELATIONS = 1_000
"""How many relations at and below a folder `.relations.json` is made from."""
SESSION_DEPTH = 4
"""The number of names in the path of a session: `user/{owner}/sessions/{id}`."""


class Mount(msgspec.Struct, frozen=True):
    """A path in the tree, and the function that builds the folder there."""

    path: str
    """The names from the root on, separated by slashes. `{user_id}` means the caller."""
    folder: FolderBuilder
    shared_folder: Callable[[str, Tx, Principal, str], Folder] | None = None
    """Builds the folder of another user, whose internal id is the first argument, with what that user shares."""
    root: Callable[[str], str] | None = None
    """The root with its stored nodes, from the internal id of the caller. None if the mount is a view."""
    write_role: Literal["user", "admin"] = "user"
    """The role that a caller needs to change what is stored there."""
    instead: str = ""
    """Of a view: which operations change what it shows."""

    def root_of(self, principal: Principal) -> str:
        assert self.root is not None  # noqa: S101 - the caller knows that the mount is stored
        return self.root(principal.internal_id)


def _agent_folder(_tx: Tx, _principal: Principal, uri: str) -> Folder:
    """Return the folder that the OpenViking API has for agents. What would be in it is in the folder of the caller."""
    folders = " and ".join(f"viking://~/{name}" for name in sorted(AGENT_FOLDERS))
    return small_folder(
        "agent", uri, 0, lambda: iter(()), lambda: f"The folders of an agent are those of its user: {folders}."
    )


def _stored(path: str, root: Callable[[str], str], write_role: Literal["user", "admin"] = "user") -> Mount:
    def folder(tx: Tx, principal: Principal, uri: str) -> Folder:
        return stored_folder(tx, root(principal.internal_id), uri, partial(_relations_text, tx, principal))

    return Mount(path, folder, root=root, write_role=write_role)


MOUNTS: tuple[Mount, ...] = (
    Mount("agent", _agent_folder, instead="use the address of its folder in viking://~"),
    _stored("resources", lambda _internal_id: roots.RESOURCES),
    _stored("system/skills", lambda _internal_id: roots.PUBLISHED_SKILLS, "admin"),
    _stored("user/{user_id}/resources", lambda internal_id: roots.of_user(internal_id, "resources")),
    Mount(
        "user/{user_id}/sessions",
        sessions_folder,
        shared_sessions_folder,
        instead="use the operations of sessions, such as add_message, commit or delete_session",
    ),
    _stored("user/{user_id}/skills", lambda internal_id: roots.of_user(internal_id, "skills")),
)
"""All mounts. The folders between the root and the mounts follow from their paths. No mount lies in another one."""


def scopes() -> list[str]:
    """Return the names with which the path of a URI may begin. With any other name, the URI is invalid."""
    return sorted({mount.path.partition("/")[0] for mount in MOUNTS} | PUBLISHED_SCOPES)


def require_scope(uri: str, names: Names) -> None:
    """Raise an error if a URI begins with a name that no part of the tree has."""
    allowed = scopes()
    if names and names[0] not in allowed:
        raise InvalidUriError(uri, f"begins with {names[0]!r}, which is not a scope; use one of {', '.join(allowed)}")


def find_mount(principal: Principal, names: Names) -> tuple[Mount, Names, Names] | None:
    """Return the caller's mount that a path lies in, the path of the mount, and the names below it."""
    path = _own_path(principal, names)
    for mount in () if principal.role == "guest" else MOUNTS:
        mount_path = _path_of(mount, principal.user_id)
        if _is_in(path, mount_path):
            return mount, mount_path, path[len(mount_path) :]
    return None


def writable_folders(principal: Principal) -> str:
    """Name the folders that the caller may write in, for an error."""
    allowed = [mount for mount in MOUNTS if mount.root is not None and mount.write_role == "user"]
    return ", ".join(build_uri(_path_of(mount, principal.user_id)) for mount in allowed)


def _own_path(principal: Principal, names: Names) -> Names:
    """Return a path with the name of the caller in place of an alias of it."""
    path = tuple(name or principal.user_id for name in names)
    if _is_in(path, (USERS,)) and path[1:2] == (principal.internal_id,):
        return (USERS, principal.user_id, *path[2:])
    return path


def find(tx: Tx, principal: Principal, names: Names) -> Node | None:
    """Return the node at the path `names`. An empty name means the caller's user id."""
    node = _find(tx, principal, names)
    if node is None and _is_in(names, OWN_SKILLS) and _find(tx, principal, names[: len(OWN_SKILLS) + 1]) is None:
        return _find(tx, principal, (*PUBLISHED_SKILLS, *names[len(OWN_SKILLS) :]))  # viking://agent/skills/{name}
    own_sessions = (USERS, CALLER, "sessions")
    if node is None and _is_in(names, (*own_sessions, principal.user_id)):  # viking://session/{user}/{id}
        return _find(tx, principal, (*own_sessions, *names[len(own_sessions) + 1 :]))
    return node


def require(tx: Tx, principal: Principal, uri: str, names: Names) -> Node:
    """Return the node at an address. Raise an error if there is none, or none that the caller may read."""
    node = find(tx, principal, names)
    if node is not None:
        return node
    require_scope(uri, names)
    error = NotFoundError("file", uri)
    is_of_another = names[0] == USERS and names[1:2] not in {(), ("",), (principal.user_id,)}
    error.denies_access = is_of_another and find(tx, principal, names[:SESSION_DEPTH]) is None
    raise error


def require_folder(tx: Tx, principal: Principal, uri: str, names: Names) -> Folder:
    node = require(tx, principal, uri, names)
    if not isinstance(node, Folder):
        raise FailedPreconditionError(f"{uri} is a file; read it, or list its folder", resource=uri)
    return node


def _find(tx: Tx, principal: Principal, names: Names) -> Node | None:
    if _is_in(names, (USERS, CALLER)) and principal.role == "guest":
        shared = shared_sessions.newest_readable(tx, grantee_of(principal), after="", limit=1)
        names = (USERS, *(session.owner_id for session in shared), *names[2:])
    path = _own_path(principal, names)
    if path == (USERS,):
        return _users_folder(tx, principal)
    if not _is_in(path, (USERS,)) or path[1] == principal.user_id:
        return _find_in(tx, principal, _own_mounts(principal), path)
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
    """The mounts of the caller by their paths. A guest has none: what others share is found below the users."""
    if principal.role == "guest":
        return {}
    return {_path_of(mount, principal.user_id): mount.folder for mount in MOUNTS}


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


def readable_relations(tx: Tx, principal: Principal, found: list[relations.Relation]) -> list[Relation]:
    """Return the relations to addresses that exist and that the caller may read."""
    return [
        Relation(uri=each.to_uri, reason=each.reason, created_at=from_micros(each.created_at))
        for each in found
        if find(tx, principal, parse_uri(each.to_uri)) is not None
    ]


def _relations_text(tx: Tx, principal: Principal, uri: str) -> str:
    """Return the JSON of the relations of a folder and of what is in it, or an empty text if there are none."""
    by_address: dict[str, list[relations.Relation]] = {}
    for each in relations.list_below(tx, uri, MAX_SHOWN_RELATIONS):
        if "/" not in each.from_uri[len(uri) + 1 :]:
            by_address.setdefault(each.from_uri, []).append(each)
    shown = {each: readable_relations(tx, principal, found) for each, found in by_address.items()}
    listed = {each: found for each, found in shown.items() if found}
    return encode_pretty(RelationsFile(listed)).decode() if listed else ""


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
