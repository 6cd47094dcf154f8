"""The vector of a query, and how close the documents of an owner are to it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from holdfast.engine.gate.operation_handler import EngineResources
from holdfast.engine.recall.embeddings.matrices import matrices_of
from holdfast.engine.recall.owner_tables import OwnerTable
from holdfast.errors import HoldfastError
from holdfast.search.documents import Place
from holdfast.store.access.search import readable_documents
from holdfast.store.access.search.search_state import SearchState
from holdfast.store.database import Tx
from holdfast.store.tables import documents
from holdfast.store.tables.embeddings.vectors import EVERYTHING, Spaces, VectorFilter
from holdfast.store.tables.lineage import LogRange

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


MAX_NEAREST = 400
"""How many documents are selected by their vectors, if not all are compared."""


MAX_OTHER_OWNERS, MAX_NEAR = 8, 100
"""Of how many other owners documents are compared by their vectors, and how many of each are ranked."""


class NearDocument(NamedTuple):
    """A document that is close to the query in meaning."""

    kind: str
    place: Place
    cosine: float


class QueryVector(NamedTuple):
    space: str
    vector: "Array"


class TableCosines(NamedTuple):
    """The cosine of each document of an owner."""

    values: "Array"
    """Not a number for a document without a vector."""
    is_exact: bool
    """If not, only the nearest documents have their own cosine, and all others the mean."""


def embed_query(resources: EngineResources, spaces: Spaces | None, text: str) -> tuple[QueryVector | None, list[str]]:
    """Return the vector of a query in the space that serves, or None with a note that says why there is none."""
    if spaces is None or not text.strip():
        return None, []
    try:
        embedder = resources.models.query_embedder_of(spaces.space)
        if embedder is None:
            return None, [f"ranked without vectors, which are of the embedder {spaces.space}; run holdfast reembed"]
        vector = embedder.embed([text]).vectors[0]
    except HoldfastError as error:
        return None, [f"ranked without vectors: {error.message}"]
    return (QueryVector(spaces.space, vector), []) if vector.any() else (None, [])


def cosines_of_table(
    tx: Tx,
    resources: EngineResources,
    owner_id: str,
    table: OwnerTable,
    query: QueryVector | None,
    state: SearchState,
    wanted: VectorFilter = EVERYTHING,
) -> TableCosines:
    """Return the cosine of each document of an owner.

    For an owner whose vectors are in an index, or are too many for the memory, only those nearest to the query among
    the documents that a filter allows.
    """
    cosines = np.full(len(table.numbers), np.nan, dtype=np.float32)
    if query is None or not len(table.numbers):
        return TableCosines(cosines, is_exact=True)
    matrices = matrices_of(resources.db, resources.settings)
    columns = None
    if not state.has_vector_index:
        columns = matrices.columns(tx, owner_id, query.space, state.statistics)
    if columns is None:
        nearest = matrices.nearest(tx, owner_id, query.space, query.vector, MAX_NEAREST, wanted)
        cosines[:] = nearest.mean
        _fill(cosines, table, nearest.numbers, nearest.cosines)
        return TableCosines(cosines, is_exact=False)
    if len(columns.numbers) and columns.vectors.shape[1] == len(query.vector):
        _fill(cosines, table, columns.numbers, np.vecdot(columns.vectors, query.vector))
    return TableCosines(cosines, is_exact=True)


def _fill(cosines: "Array", table: OwnerTable, numbers: "Array", values: "Array") -> None:
    """Enter the cosines of documents with some numbers."""
    at = np.searchsorted(table.numbers, numbers)
    at[at == len(table.numbers)] = 0
    is_known = table.numbers[at] == numbers
    cosines[at[is_known]] = values[is_known]


def cosines_of_documents(
    tx: Tx, resources: EngineResources, owner_id: str, numbers: Sequence[int], query: QueryVector | None
) -> "Array":
    """Return the cosine of some documents of an owner, or not a number for those without a vector."""
    if query is None:
        return np.full(len(numbers), np.nan, dtype=np.float32)
    return matrices_of(resources.db, resources.settings).cosines(tx, owner_id, query.space, query.vector, numbers)


def find_near(
    tx: Tx, resources: EngineResources, ranges: Sequence[LogRange], query: QueryVector | None, wanted: VectorFilter
) -> list[NearDocument]:
    """Find the documents of other owners, in log ranges that the caller may read, that are closest to the query."""
    if query is None or not ranges:
        return []
    found: list[NearDocument] = []
    matrices = matrices_of(resources.db, resources.settings)
    for owner_id in readable_documents.owners_of_ranges(tx, ranges, MAX_OTHER_OWNERS):
        nearest = matrices.nearest(
            tx, owner_id, query.space, query.vector, MAX_NEAR, wanted._replace(ranges=list(ranges))
        )
        cosines = dict(zip(nearest.numbers.tolist(), nearest.cosines.tolist(), strict=True))
        for row in documents.read(tx, list(cosines)):
            place = Place(row.log_id or 0, row.number if row.log_id else row.n)
            found.append(NearDocument(row.kind, place, cosines[row.n]))
    return found
