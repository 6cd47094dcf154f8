"""The nearest vectors of an owner with so many that the database has an index of them."""

from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.engine.recall.embeddings.owner_matrix import NOTHING, Columns, Nearest, OwnerMatrix, best
from holdfast.store.database import Tx
from holdfast.store.tables import documents
from holdfast.store.tables.embeddings import vector_index, vectors
from holdfast.store.tables.embeddings.vectors import VectorFilter

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

MAX_EXACT_DOCUMENTS = 10_000
"""If a filter allows no more documents, their vectors are read and compared one by one: an index would find too few."""
SAMPLE_PLACES, SAMPLE_ROWS = 40, 50
"""Of how many vectors the mean is estimated."""
MIN_SAMPLE_ROWS = 50


def nearest(
    tx: Tx,
    owner_id: str,
    space: str,
    query: "Array",
    k: int,
    wanted: VectorFilter,
    version: int,
    sample: Columns,
) -> Nearest:
    """Ask the index, which has vectors up to a version, and compare the newer ones. The mean is that of the sample."""
    if wanted.ranges is not None:
        log_ids = list(dict.fromkeys(each.log_id for each in wanted.ranges))
        if vectors.count_in_logs(tx, log_ids, MAX_EXACT_DOCUMENTS + 1) <= MAX_EXACT_DOCUMENTS:
            rows = vectors.read_logs(tx, owner_id, space, log_ids, MAX_EXACT_DOCUMENTS)
            return _columns(rows, len(query)).nearest(query, k, wanted)
    if sample.vectors.shape[1] != len(query):
        return NOTHING
    newer = _columns(vectors.read_added(tx, owner_id, space, version, 2**60), len(query)).nearest(query, k, wanted)
    found = dict(vector_index.nearest(tx, owner_id, space, to_text(query), k, wanted))
    found.update(zip(newer.numbers.tolist(), newer.cosines.tolist(), strict=True))
    if not found or k < 1:
        return NOTHING
    top = best(np.array(list(found), np.int64), np.array(list(found.values()), np.float32), k)
    mean = _estimate_mean(sample, query, wanted)
    allowed = _count(sample, wanted, documents.statistics(tx, owner_id).documents)
    return Nearest(top.numbers, top.cosines, mean, max(len(found), allowed))


def read_sample(tx: Tx, owner_id: str, space: str) -> Columns:
    matrix = OwnerMatrix()
    matrix.add(vectors.read_sample(tx, owner_id, space, SAMPLE_PLACES, SAMPLE_ROWS))
    return matrix.columns


def to_text(vector: "Array") -> str:
    """A vector in the text form of the extension, with the precision of float16."""
    return f"[{','.join([f'{value:.6g}' for value in vector.tolist()])}]"


def _columns(rows: Any, width: int) -> Columns:
    matrix = OwnerMatrix()
    matrix.add([row for row in rows if len(row[-1]) == 2 * width])
    return matrix.columns


def _estimate_mean(sample: Columns, query: "Array", wanted: VectorFilter) -> float:
    cosines = np.vecdot(sample.vectors, query)
    mask = sample.allowed(wanted)
    if mask is not None and mask.sum() >= MIN_SAMPLE_ROWS:
        cosines = cosines[mask]
    return float(cosines.mean())


def _count(sample: Columns, wanted: VectorFilter, total: int) -> int:
    mask = sample.allowed(wanted)
    return total if mask is None else round(total * float(mask.mean()))
