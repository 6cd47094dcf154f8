"""The vector of a query, and how close the documents of an owner are to it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from holdfast.engine.gate.operation_handler import EngineResources
from holdfast.engine.recall.matrices import matrices_of
from holdfast.engine.recall.owner_tables import OwnerTable
from holdfast.errors import HoldfastError
from holdfast.store.database import Tx
from holdfast.store.tables import vectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


class QueryVector(NamedTuple):
    space: str
    vector: "Array"


def embed_query(resources: EngineResources, account: str, text: str) -> tuple[QueryVector | None, list[str]]:
    """Return the vector of a query in the space that serves, or None with a note that says why there is none."""
    spaces = resources.db.read(account, vectors.find_spaces)
    if spaces is None:
        return None, []
    try:
        embedder = resources.models.embedder_of(spaces.space)
        if embedder is None:
            return None, [f"ranked without vectors, which are of the embedder {spaces.space}; run holdfast reembed"]
        return QueryVector(spaces.space, embedder.embed([text]).vectors[0]), []
    except HoldfastError as error:
        return None, [f"ranked without vectors: {error.message}"]


def cosines_of_table(
    tx: Tx, resources: EngineResources, owner_id: str, table: OwnerTable, query: QueryVector | None
) -> "Array":
    """Return the cosine of each document of an owner, or not a number for one without a vector."""
    cosines = np.full(len(table.numbers), np.nan, dtype=np.float32)
    if query is None or not len(table.numbers):
        return cosines
    columns = matrices_of(resources.db, resources.settings).columns(tx, owner_id, query.space)
    if columns is None or not len(columns.numbers) or columns.vectors.shape[1] != len(query.vector):
        return cosines
    values = np.vecdot(columns.vectors, query.vector)  # unlike a product of matrices, it starts no threads
    at = np.searchsorted(table.numbers, columns.numbers)
    at[at == len(table.numbers)] = 0
    is_known = table.numbers[at] == columns.numbers
    cosines[at[is_known]] = values[is_known]
    return cosines


def cosines_of_documents(
    tx: Tx, resources: EngineResources, owner_id: str, numbers: Sequence[int], query: QueryVector | None
) -> "Array":
    """Return the cosine of some documents of an owner, or not a number for those without a vector."""
    if query is None:
        return np.full(len(numbers), np.nan, dtype=np.float32)
    return matrices_of(resources.db, resources.settings).cosines(tx, owner_id, query.space, query.vector, numbers)
