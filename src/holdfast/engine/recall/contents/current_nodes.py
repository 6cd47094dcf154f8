"""The files and folders of a root that have a content, in memory. They are read again when the root has changed."""

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from holdfast.engine.recall.contents.remembered import Remembered
from holdfast.store.access.search import readable_nodes
from holdfast.store.database import Database, Tx

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

_decode_tags = msgspec.json.Decoder(list[str]).decode


class CurrentNodes(NamedTuple):
    """The nodes of a root in the order of their paths. Never changed."""

    paths: list[str]
    contents: "Array"
    folders: "Array"
    """Whether each is a folder."""
    created: "Array"
    changed: "Array"
    tags: dict[int, frozenset[str]]
    """The tags of those that have some."""

    def at_or_below(self, path: str) -> list[tuple[int, int]]:
        """Return ranges of the nodes at and below a path: the first, and the one after the last."""
        if not path:
            return [(0, len(self.paths))]
        at = bisect_left(self.paths, path)
        own = [(at, at + 1)] if at < len(self.paths) and self.paths[at] == path else []
        return [*own, (bisect_left(self.paths, f"{path}/"), bisect_left(self.paths, f"{path}0"))]


_roots: Remembered[CurrentNodes] = Remembered()


def read_nodes(db: Database, tx: Tx, root: str, version: int, account_created_at: int | None) -> CurrentNodes:
    """Return the nodes of a root at a version, or newer ones."""
    key = (tx.account, account_created_at, root)
    known = _roots.find(db, key)
    if known is not None and known[0] >= version:
        return known[1]
    rows = sorted(readable_nodes.read_root(tx, root), key=lambda row: row[1])
    nodes = CurrentNodes(
        paths=[row[1] for row in rows],
        contents=np.array([row[0] for row in rows], np.int64),
        folders=np.array([bool(row[2]) for row in rows], bool),
        created=np.array([row[3] for row in rows], np.int64),
        changed=np.array([row[4] for row in rows], np.int64),
        tags={index: frozenset(_decode_tags(row[5])) for index, row in enumerate(rows) if row[5] != "[]"},
    )
    _roots.store(db, key, version, nodes, len(rows))
    return nodes
