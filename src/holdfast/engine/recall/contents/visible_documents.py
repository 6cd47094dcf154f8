"""The documents of stored files that a caller may read: those of contents that are current in a readable root."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from holdfast.engine.recall.contents import content_tables, current_nodes
from holdfast.engine.recall.contents.content_tables import ContentTable
from holdfast.engine.recall.contents.current_nodes import CurrentNodes
from holdfast.engine.recall.contents.remembered import Remembered
from holdfast.engine.recall.files.stored_roots import readable_roots
from holdfast.engine.recall.retrieval import FilePlace, RetrievalRequest
from holdfast.model.identity import Principal
from holdfast.store.access.search import readable_nodes
from holdfast.store.database import Database, Tx
from holdfast.store.tables import documents
from holdfast.store.tables.documents import OwnerStatistics
from holdfast.store.tables.tree.roots import EVERYONE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

ABSTRACT_LEVEL, OVERVIEW_LEVEL = 0, 1


class VisibleDocuments(NamedTuple):
    """All documents of stored files that a caller may read, by number. Never changed."""

    numbers: "Array"
    contents: "Array"
    parts: "Array"
    """The number of the part; 0 for the overview of a file or folder."""
    kinds: "Array"
    """By their positions in `kind_names`."""
    levels: "Array"
    lengths: "Array"
    owners: "Array"
    """By their positions in `owner_ids`."""
    roots: "Array"
    """By their positions in `root_names`."""
    nodes: "Array"
    """By their positions in the nodes of the root."""
    folders: "Array"
    """Whether it is the overview of a folder."""
    kind_names: tuple[str, ...]
    owner_ids: tuple[str, ...]
    root_names: tuple[str, ...]
    current: list[CurrentNodes]
    """The nodes of each root."""
    statistics: dict[str, OwnerStatistics]
    """Of each owner."""

    def path_of(self, row: int) -> tuple[int, str]:
        """Return the root of a document, and the path of its file or folder."""
        root = int(self.roots[row])
        return root, self.current[root].paths[int(self.nodes[row])]

    def rows_of(self, numbers: "Array") -> "Array":
        """Return the rows of the documents with these numbers. Others, which the caller may not read, are left out."""
        if not len(self.numbers):
            return np.zeros(0, np.int64)
        at = np.searchsorted(self.numbers, numbers)
        at[at == len(self.numbers)] = 0
        found: Array = at[self.numbers[at] == numbers]
        return found


_COLUMNS = VisibleDocuments._fields[:10]
_visible: Remembered[VisibleDocuments] = Remembered()


def read_visible(db: Database, tx: Tx, principal: Principal) -> VisibleDocuments | None:
    """Return what a caller may read, or None if there is nothing."""
    versions = readable_nodes.read_versions(tx, list(readable_roots(principal)))
    if not versions:
        return None
    owner_ids = (principal.internal_id, EVERYONE)
    found = tx.all_of([documents.select_statistics(tx, owner_id) for owner_id in owner_ids])
    statistics = dict(zip(owner_ids, map(documents.to_statistics, found), strict=True))
    created_at = next((each.account_created_at for each in statistics.values() if each.version), None)
    tables = [content_tables.read_table(db, tx, owner_id, statistics[owner_id]) for owner_id in owner_ids]
    if not any(len(table.numbers) for table in tables):
        return None
    root_names = tuple(versions)
    nodes = [current_nodes.read_nodes(db, tx, root, versions[root], created_at) for root in root_names]
    key = (tx.account, created_at, principal.internal_id)
    version = (tuple(table.revision for table in tables), root_names, tuple(map(id, nodes)))
    known = _visible.find(db, key)
    if known is not None and known[0] == version:
        return known[1]._replace(statistics=statistics)
    visible = _join(tables, nodes, owner_ids, root_names, statistics)
    _visible.store(db, key, version, visible, len(visible.numbers))
    return visible


def _join(
    tables: Sequence[ContentTable],
    nodes: Sequence[CurrentNodes],
    owner_ids: tuple[str, ...],
    root_names: tuple[str, ...],
    statistics: dict[str, OwnerStatistics],
) -> VisibleDocuments:
    """Find the documents whose content is that of a node."""
    kind_names = tuple(dict.fromkeys(name for table in tables for name in table.kind_names))
    contents = np.concatenate([each.contents for each in nodes])
    places = [np.full(len(each.contents), root, np.int16) for root, each in enumerate(nodes)]
    in_root, at = np.concatenate(places), np.concatenate([np.arange(len(each.contents)) for each in nodes])
    is_folder = np.concatenate([each.folders for each in nodes])
    order = np.argsort(contents, kind="stable")
    contents, in_root, at, is_folder = contents[order], in_root[order], at[order], is_folder[order]
    found: list[list[Array]] = []
    for owner, table in enumerate(tables):
        place = np.minimum(np.searchsorted(contents, table.contents), max(len(contents) - 1, 0))
        kept = contents[place] == table.contents if len(contents) else np.zeros(len(table.contents), bool)
        place = place[kept]
        codes = np.array([kind_names.index(name) for name in table.kind_names], np.int16)
        kinds = codes[table.kinds[kept]] if len(codes) else table.kinds[kept]
        own = [table.numbers[kept], table.contents[kept], table.parts[kept], kinds, table.levels[kept]]
        owners = np.full(len(place), owner, np.int16)
        found.append([*own, table.lengths[kept], owners, in_root[place], at[place], is_folder[place]])
    joined = [np.concatenate(column) for column in zip(*found, strict=True)]
    order = np.argsort(joined[0], kind="stable")
    columns: dict[str, Any] = {name: column[order] for name, column in zip(_COLUMNS, joined, strict=True)}
    return VisibleDocuments(
        **columns,
        kind_names=kind_names,
        owner_ids=owner_ids,
        root_names=root_names,
        current=list(nodes),
        statistics=statistics,
    )


def rows_of_kind(visible: VisibleDocuments, kind: str, request: RetrievalRequest) -> "Array":
    """Return the rows of a kind that a request asks for: in its places, of its times and levels, with its tags."""
    if kind not in visible.kind_names:
        return np.zeros(0, np.int64)
    wanted = visible.kinds == visible.kind_names.index(kind)
    if request.targets:
        wanted &= _in_places(visible, [place for target in request.targets for place in target.files])
    if request.levels:
        # An abstract has no document of its own: it is found by the overview.
        levels = {OVERVIEW_LEVEL if level == ABSTRACT_LEVEL else level for level in request.levels}
        wanted &= np.isin(visible.levels, list(levels))
    rows = np.flatnonzero(wanted)
    if request.since is not None or request.until is not None:
        rows = rows[_in_time(visible, rows, request)]
    if request.tags:
        rows = rows[_have_tags(visible, rows, frozenset(request.tags))]
    return rows


def _in_places(visible: VisibleDocuments, places: Sequence[FilePlace]) -> "Array":
    found = np.zeros(len(visible.numbers), bool)
    for place in places:
        if place.root not in visible.root_names:
            continue
        root = visible.root_names.index(place.root)
        for first, end in visible.current[root].at_or_below(place.path):
            inside = (visible.roots == root) & (visible.nodes >= first) & (visible.nodes < end)
            found |= inside if place.part is None else inside & (visible.parts == place.part)
    return found


def _in_time(visible: VisibleDocuments, rows: "Array", request: RetrievalRequest) -> "Array":
    times = np.zeros(len(rows), np.int64)
    for root, nodes in enumerate(visible.current):
        at = visible.roots[rows] == root
        times[at] = (nodes.created if request.time_field == "created_at" else nodes.changed)[visible.nodes[rows[at]]]
    is_wanted = np.ones(len(rows), bool)
    if request.since is not None:
        is_wanted &= times >= request.since
    if request.until is not None:
        is_wanted &= times < request.until
    return is_wanted


def _have_tags(visible: VisibleDocuments, rows: "Array", tags: frozenset[str]) -> "Array":
    is_wanted = np.zeros(len(rows), bool)
    for root, nodes in enumerate(visible.current):
        tagged = [index for index, found in nodes.tags.items() if tags <= found]
        is_wanted |= (visible.roots[rows] == root) & np.isin(visible.nodes[rows], tagged)
    return is_wanted
