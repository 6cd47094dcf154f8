"""The places of stored files: which roots a caller may search, and which of them an address means.

It agrees with the mounts of the tree, which a test compares with it.
"""

from collections.abc import Callable
from functools import partial

from holdfast.engine.recall.retrieval import FilePlace
from holdfast.model.identity import Principal
from holdfast.model.uris import CALLER, MAX_PART_DIGITS, build_uri, encode_path
from holdfast.store.tables.tree import roots

Names = tuple[str, ...]
USERS = "user"
STORED_ROOTS: tuple[tuple[Names, Callable[[str], str]], ...] = (
    (("resources",), lambda _internal_id: roots.RESOURCES),
    (("system", "skills"), lambda _internal_id: roots.PUBLISHED_SKILLS),
    ((USERS, CALLER, "resources"), partial(roots.of_user, folder="resources")),
    ((USERS, CALLER, "skills"), partial(roots.of_user, folder="skills")),
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
