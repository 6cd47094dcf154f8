"""What a search by patterns goes through: the stored part of the tree by its rows, views by their nodes."""

from collections.abc import Iterator

import msgspec

from holdfast.engine.tree.mounts import Names
from holdfast.engine.tree.nodes import File, Folder, Node
from holdfast.engine.tree.places import find_place
from holdfast.model.identity import Principal
from holdfast.store.database import Tx

ANY_DEPTH = 1_000


class StoredPart(msgspec.Struct, frozen=True):
    """A folder of the stored part of the tree, whose rows can be read at once."""

    root: str
    path: str
    mount_uri: str
    folder: Folder
    depth: int
    """How many levels below the folder to search."""


def walk(tx: Tx, principal: Principal, names: Names, node: Node, depth: int) -> Iterator[StoredPart | Node]:
    """Yield the parts of the tree at a node and below it. Hidden files of views are left out.

    A view with many entries, such as the folder of all sessions, is walked for as long as the caller goes on.
    """
    place = find_place(principal, names)
    if place is not None and isinstance(node, Folder):
        yield StoredPart(place.root, place.path, place.mount_uri, node, depth)
        return
    yield node
    if isinstance(node, File) or depth <= 0:
        return
    for child in node.children():
        if not child.name.startswith("."):
            yield from walk(tx, principal, (*names, child.name), child, depth - 1)
