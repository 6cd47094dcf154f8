"""The vectors of one owner as one matrix, with what a search filters by beside it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from holdfast.engine.recall.document_kinds import MESSAGE
from holdfast.store.database import Row
from holdfast.store.tables.embeddings.vectors import EVERYTHING, VectorFilter
from holdfast.store.tables.lineage import WHOLE_LOG, LogRange

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

MIN_SPARE_ROWS = 64
SPARE_DIVISOR = 4
"""A matrix that grows gets room for a fourth more: new vectors are then added without copying the others."""
_SPARSE = 4
"""If fewer than one of this many rows is allowed, only these are compared."""


class Nearest(NamedTuple):
    """The documents whose vectors are most similar to that of a query, best first."""

    numbers: "Array"
    cosines: "Array"
    mean: float
    """Of the cosines of all documents that the filter allows."""
    compared: int
    """How many documents the filter allows. With an index, an estimate."""


NOTHING = Nearest(np.zeros(0, np.int64), np.zeros(0, np.float32), 0.0, 0)


class Columns(NamedTuple):
    """The rows of a matrix: what is known of each document, and its vector. They are never changed."""

    numbers: "Array"
    logs: "Array"
    seqs: "Array"
    kinds: "Array"
    """By their positions in `kind_names`."""
    levels: "Array"
    times: "Array"
    vectors: "Array"
    kind_names: tuple[str, ...]

    def allowed(self, wanted: VectorFilter) -> "Array | None":
        """Which rows a filter allows, or None for all."""
        conditions = []
        if wanted.kinds:
            conditions.append(
                np.isin(self.kinds, [i for i, kind in enumerate(self.kind_names) if kind in wanted.kinds])
            )
        if wanted.levels:
            conditions.append(np.isin(self.levels, list(wanted.levels)))
        if wanted.since is not None:
            conditions.append(self.times >= wanted.since)
        if wanted.until is not None:
            conditions.append(self.times < wanted.until)
        if wanted.without_logs:
            conditions.append(~np.isin(self.logs, list(wanted.without_logs)))
        if wanted.ranges is not None:
            conditions.append(self._in_ranges(wanted.ranges))
        return np.logical_and.reduce(conditions) if conditions else None

    def _in_ranges(self, ranges: Sequence[LogRange]) -> "Array":
        whole = [each.log_id for each in ranges if each.last >= WHOLE_LOG]
        found = np.isin(self.logs, whole)
        parts = [each for each in ranges if each.last < WHOLE_LOG]
        if not parts:
            return found
        is_message = np.isin(self.kinds, [i for i, kind in enumerate(self.kind_names) if kind == MESSAGE])
        present = set(np.unique(self.logs).tolist()) if len(parts) > MIN_SPARE_ROWS else None
        for part in parts:
            if present is None or part.log_id in present:
                in_log = is_message & (self.logs == part.log_id)
                found |= in_log & (self.seqs >= part.first) & (self.seqs <= part.last)
        return found

    def nearest(self, query: "Array", k: int, wanted: VectorFilter = EVERYTHING) -> Nearest:
        """Compare the vector of a query with all rows that a filter allows."""
        mask = self.allowed(wanted)
        numbers = self.numbers if mask is None else self.numbers[mask]
        if not len(numbers) or k < 1:
            return NOTHING
        if mask is None:
            cosines = np.vecdot(self.vectors, query)
        elif len(numbers) * _SPARSE < len(mask):
            cosines = np.vecdot(self.vectors[mask], query)
        else:
            cosines = np.vecdot(self.vectors, query)[mask]
        return best(numbers, cosines, k)

    def cosines(self, query: "Array", numbers: Sequence[int]) -> "Array":
        """The cosine of each of some documents, or not a number for one without a vector."""
        wanted = np.asarray(numbers, dtype=np.int64)
        found = np.full(len(wanted), np.nan, dtype=np.float32)
        if len(self.numbers) and len(wanted):
            order = np.argsort(self.numbers, kind="stable")
            at = np.minimum(np.searchsorted(self.numbers, wanted, sorter=order), len(order) - 1)
            rows = order[at]
            is_there = self.numbers[rows] == wanted
            found[is_there] = np.vecdot(self.vectors[rows[is_there]], query)
        return found


def best(numbers: "Array", cosines: "Array", k: int) -> Nearest:
    """The `k` best of documents. Equal ones are in the order of their numbers."""
    k = min(k, len(numbers))
    rows = np.argpartition(-cosines, k - 1)[:k] if k < len(numbers) else np.arange(len(numbers))
    rows = rows[np.lexsort((numbers[rows], -cosines[rows]))]
    return Nearest(numbers[rows], cosines[rows], float(cosines.mean(dtype=np.float64)), len(numbers))


def merge(parts: Sequence[Nearest], k: int) -> Nearest:
    """The best of disjoint sets of documents, with the mean of all."""
    parts = [part for part in parts if part.compared]
    if not parts:
        return NOTHING
    counts = np.array([part.compared for part in parts], np.float64)
    mean = float(np.average([part.mean for part in parts], weights=counts))
    top = best(np.concatenate([part.numbers for part in parts]), np.concatenate([part.cosines for part in parts]), k)
    return Nearest(top.numbers, top.cosines, mean, int(counts.sum()))


class OwnerMatrix:
    """A matrix that grows. The columns that a caller has got stay as they are. Not thread-safe."""

    def __init__(self) -> None:
        self.version = -1
        """The version of the owner's index that it has."""
        self._count = 0
        self._kind_names: tuple[str, ...] = ()
        self._buffers: list[Array] = []
        self._width = 0

    @property
    def columns(self) -> Columns:
        if not self._buffers:
            empty = np.zeros(0, np.int64)
            return Columns(empty, empty, empty, empty, empty, empty, np.zeros((0, self._width), np.float32), ())
        numbers, logs, seqs, kinds, levels, times, vectors = (each[: self._count] for each in self._buffers)
        return Columns(numbers, logs, seqs, kinds, levels, times, vectors, self._kind_names)

    @property
    def bytes(self) -> int:
        return sum(each.nbytes for each in self._buffers)

    def __len__(self) -> int:
        return self._count

    def clear(self) -> None:
        self._buffers, self._count, self.version = [], 0, -1

    def add(self, rows: Sequence[Row]) -> None:
        """Add rows of `vectors.read_page`. A document that is there already gets its new vector."""
        if not rows:
            return
        self._width = self._width or len(rows[0][-1]) // 2
        # A vector of another length is damaged.
        rows = [row for row in rows if len(row[-1]) == self._width * 2]
        if not rows:
            return
        numbers, logs, seqs, kinds, levels, times, _, vectors = zip(*rows, strict=True)
        self._kind_names = tuple(dict.fromkeys((*self._kind_names, *kinds)))
        codes = {kind: code for code, kind in enumerate(self._kind_names)}
        new: list[Array] = [
            np.array(numbers, np.int64),
            np.array([log_id or 0 for log_id in logs], np.int64),
            np.array(seqs, np.int64),
            np.array([codes[kind] for kind in kinds], np.int16),
            np.array(levels, np.int16),
            np.array(times, np.int64),
            np.frombuffer(b"".join(vectors), "<f2").reshape(len(rows), self._width).astype(np.float32),
        ]
        if self._count:
            replaced = np.isin(self._buffers[0][: self._count], new[0])
            if replaced.any():
                self._keep(~replaced)
        self._append(new)

    def keep_numbers(self, numbers: Sequence[int]) -> None:
        """Remove all documents but these."""
        kept = np.isin(self._buffers[0][: self._count], np.asarray(numbers, np.int64)) if self._buffers else None
        if kept is not None and not kept.all():
            self._keep(kept)

    def _keep(self, kept: "Array") -> None:
        self._buffers = [each[: self._count][kept] for each in self._buffers]
        self._count = len(self._buffers[0])

    def _append(self, new: "list[Array]") -> None:
        added = len(new[0])
        if not self._buffers:
            self._buffers, self._count = new, added
            return
        needed = self._count + added
        if needed > len(self._buffers[0]):
            capacity = needed + max(MIN_SPARE_ROWS, needed // SPARE_DIVISOR)
            self._buffers = [self._grown(each, capacity) for each in self._buffers]
        for buffer, values in zip(self._buffers, new, strict=True):
            buffer[self._count : needed] = values
        self._count = needed

    def _grown(self, buffer: "Array", capacity: int) -> "Array":
        grown = np.empty((capacity, *buffer.shape[1:]), buffer.dtype)
        grown[: self._count] = buffer[: self._count]
        return grown
