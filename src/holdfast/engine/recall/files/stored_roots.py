"""The places of stored files: which roots a caller may search, and which of them an address means."""

from collections.abc import Callable

from holdfast.engine.recall.retrieval import FilePlace
from holdfast.engine.tree.mounts import MOUNTS, USERS, Names
from holdfast.model.identity import Principal
from holdfast.model.uris import CALLER, MAX_PART_DIGITS, build_uri, encode_path

STORED_ROOTS: tuple[tuple[Names, Callable[[str], str]], ...] = tuple(
    (tuple(CALLER if name == "{user_id}" else name for name in mount.path.split("/")), mount.root)
    for mount in MOUNTS
    if mount.root is not None
)
"""The path of each mount with stored files, where an empty name is the caller, and its root for an internal id."""


def readable_roots(principal: Principal) -> dict[str, str]:
    """Return the roots that a caller may read, with the address of the top of each. A guest may read none."""
    if principal.role == "guest":
        return {}
    return {
        root(principal.internal_id): build_uri(name or principal.user_id for name in path)
        for path, root in STORED_ROOTS
    }


def canonical_roots(principal: Principal) -> dict[str, str]:
    """Return the roots like `readable_roots`, with the addresses by which uses are counted."""
    return {
        root(principal.internal_id): build_uri(name or principal.internal_id for name in path)
        for path, root in STORED_ROOTS
    }


def places_of(principal: Principal, names: Names, fragment: str) -> list[FilePlace]:
    """Return the places of stored files that an address means. None if the caller may read nothing there."""
    if principal.role == "guest":
        return []
    own = {CALLER, principal.user_id, principal.internal_id}
    path = (USERS, CALLER, *names[2:]) if names[:1] == (USERS,) and len(names) > 1 and names[1] in own else names
    found: list[FilePlace] = []
    for mount, root in STORED_ROOTS:
        if path[: len(mount)] == mount:
            below = encode_path(path[len(mount) :])
            is_part = fragment.isascii() and fragment.isdigit() and len(fragment) <= MAX_PART_DIGITS
            if is_part or not fragment:
                found.append(FilePlace(root(principal.internal_id), below, int(fragment) if is_part else None))
        elif mount[: len(path)] == path and not fragment:
            found.append(FilePlace(root(principal.internal_id), ""))
    return found
