"""How close documents of stored files are to the vector of a query."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from holdfast.engine.gate.operation_handler import EngineResources
from holdfast.engine.recall.contents.visible_documents import VisibleDocuments
from holdfast.engine.recall.embeddings.matrices import Matrices, matrices_of
from holdfast.engine.recall.vector_search import MAX_NEAREST, QueryVector
from holdfast.store.database import Tx
from holdfast.store.tables.embeddings import vector_index
from holdfast.store.tables.embeddings.vectors import VectorFilter

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

MAX_READ = 2_000
"""Up to so many vectors are read one by one, if not all are in memory."""
MAX_FOLDERS, BEST_FOLDERS = 2_000, 8
"""How many folders are compared, and below how many of them the vectors of documents are read."""
MAX_BELOW = 5_000
_SPARSE = 4
"""If fewer than one of this many vectors is needed, only these are compared."""


class ContentCosines(NamedTuple):
    values: "Array"
    """For each visible document; not a number for one that was not compared."""
    is_hierarchical: bool
    """Whether only the documents below the best folders were compared."""


def compare(
    tx: Tx, resources: EngineResources, visible: VisibleDocuments, query: QueryVector | None, rows: "Array", kind: str
) -> ContentCosines:
    """Compare the rows of a kind that are wanted, and the folders of that kind, with the vector of a query."""
    cosines = np.full(len(visible.numbers), np.nan, np.float32)
    is_hierarchical = False
    if query is None or not len(rows):
        return ContentCosines(cosines, is_hierarchical=False)
    matrices = matrices_of(resources.db, resources.settings)
    folders = np.flatnonzero(visible.folders & (visible.kinds == visible.kind_names.index(kind)))
    for owner, owner_id in enumerate(visible.owner_ids):
        own = rows[visible.owners[rows] == owner]
        if not len(own):
            continue
        is_indexed = (
            tx.dialect.can_index_vectors and vector_index.indexed_version(tx, owner_id, query.space) is not None
        )
        columns = None if is_indexed else matrices.columns(tx, owner_id, query.space, visible.statistics[owner_id])
        if columns is not None:
            if len(columns.numbers) and columns.vectors.shape[1] == len(query.vector):
                _fill(cosines, visible, columns.numbers, columns.vectors, query.vector)
        elif len(own) <= MAX_READ:
            _read(tx, matrices, owner_id, query, visible, own, cosines)
        elif is_indexed:
            nearest = matrices.nearest(tx, owner_id, query.space, query.vector, MAX_NEAREST, VectorFilter(kinds=[kind]))
            at = visible.rows_of(nearest.numbers)
            known = np.isin(nearest.numbers, visible.numbers)
            cosines[own] = nearest.mean
            cosines[at] = nearest.cosines[known]
        else:
            is_hierarchical = True
            own_folders = folders[visible.owners[folders] == owner][:MAX_FOLDERS]
            _read(tx, matrices, owner_id, query, visible, own_folders, cosines)
            below = _below_best(visible, own_folders, cosines, own)[:MAX_BELOW]
            _read(tx, matrices, owner_id, query, visible, below, cosines)
    return ContentCosines(cosines, is_hierarchical)


def compare_rest(
    tx: Tx,
    resources: EngineResources,
    visible: VisibleDocuments,
    query: QueryVector | None,
    rows: "Array",
    found: "Array",
) -> "Array":
    """Return the cosines of rows. Those that were not compared are read."""
    cosines = found[rows].astype(np.float32)
    missing = np.isnan(cosines)
    if query is None or not missing.any():
        return cosines
    matrices = matrices_of(resources.db, resources.settings)
    for owner, owner_id in enumerate(visible.owner_ids):
        at = np.flatnonzero(missing & (visible.owners[rows] == owner))
        if len(at):
            numbers = visible.numbers[rows[at]].tolist()
            cosines[at] = matrices.cosines(tx, owner_id, query.space, query.vector, numbers)
    return cosines


def _fill(cosines: "Array", visible: VisibleDocuments, numbers: "Array", vectors: "Array", query: "Array") -> None:
    at = np.searchsorted(visible.numbers, numbers)
    at[at == len(visible.numbers)] = 0
    known = visible.numbers[at] == numbers
    if known.sum() * _SPARSE < len(known):
        cosines[at[known]] = np.vecdot(vectors[known], query)
    else:
        cosines[at[known]] = np.vecdot(vectors, query)[known]


def _read(
    tx: Tx,
    matrices: Matrices,
    owner_id: str,
    query: QueryVector,
    visible: VisibleDocuments,
    rows: "Array",
    cosines: "Array",
) -> None:
    numbers = visible.numbers[rows].tolist()
    cosines[rows] = matrices.read_cosines(tx, owner_id, query.space, query.vector, numbers)


def _below_best(visible: VisibleDocuments, folders: "Array", cosines: "Array", rows: "Array") -> "Array":
    """Return the rows below the folders that are closest to the query."""
    known = folders[~np.isnan(cosines[folders])]
    best = known[np.argsort(-cosines[known], kind="stable")[:BEST_FOLDERS]]
    found = np.zeros(len(rows), bool)
    for folder in best.tolist():
        root, path = visible.path_of(folder)
        for first, end in visible.current[root].at_or_below(path):
            nodes = visible.nodes[rows]
            found |= (visible.roots[rows] == root) & (nodes >= first) & (nodes < end)
    return rows[found]
