"""The vectors of owners in memory, up to a number of bytes. A search compares them with the vector of its query."""

import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from holdfast import forking
from holdfast.config import Settings
from holdfast.engine.recall.embeddings import indexed_vectors
from holdfast.engine.recall.embeddings.owner_matrix import NOTHING, Columns, Nearest, OwnerMatrix, merge
from holdfast.store.database import Database, Tx
from holdfast.store.tables import documents
from holdfast.store.tables.documents import OwnerStatistics
from holdfast.store.tables.embeddings import vector_index, vectors
from holdfast.store.tables.embeddings.vectors import EVERYTHING, VectorFilter

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

PAGE_ROWS = 10_000
"""How many vectors are read at once."""
MAX_SAMPLES = 16
"""How many owners with an index are remembered by some of their vectors, of 2 MB or more each."""


class MatrixKey(NamedTuple):
    account: str
    created_at: int | None
    """When the account was created: another account may get the name of a deleted one."""
    owner_id: str
    space: str


class _Entry:
    """A matrix, and the lock of the thread that loads or refreshes it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.matrix = OwnerMatrix()


class Matrices:
    """The matrices of one database in this process. It can be used from any thread.

    A matrix is read when it is first needed, and after that only what was added since. The least recently used ones are
    dropped when all together are larger than the budget. An owner with more vectors than that is read in pages at each
    search.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.reset()
        _all_matrices.add(self)

    def reset(self) -> None:
        """Drop all matrices. In a forked child, a thread of the parent may have been changing one."""
        self._lock = threading.Lock()
        self._entries: OrderedDict[MatrixKey, _Entry] = OrderedDict()
        self._samples: OrderedDict[MatrixKey, tuple[int, Columns]] = OrderedDict()

    @property
    def bytes(self) -> int:
        with self._lock:
            return sum(entry.matrix.bytes for entry in self._entries.values())

    def nearest(
        self, tx: Tx, owner_id: str, space: str, query: "Array", k: int, wanted: VectorFilter = EVERYTHING
    ) -> Nearest:
        """Find the `k` documents of an owner whose vectors are most similar to that of a query."""
        version = vector_index.indexed_version(tx, owner_id, space)
        if version is not None:
            sample = self._sample(tx, owner_id, space, version)
            return indexed_vectors.nearest(tx, owner_id, space, query, k, wanted, version, sample)
        columns = self.columns(tx, owner_id, space)
        if columns is None:
            return _nearest_by_page(tx, owner_id, space, query, k, wanted)
        if len(columns.numbers) and columns.vectors.shape[1] != len(query):
            return NOTHING
        return columns.nearest(query, k, wanted)

    def cosines(self, tx: Tx, owner_id: str, space: str, query: "Array", numbers: Sequence[int]) -> "Array":
        """The cosine of each of some documents of an owner, or not a number for one without a vector."""
        is_indexed = vector_index.indexed_version(tx, owner_id, space) is not None
        columns = None if is_indexed else self.columns(tx, owner_id, space)
        if columns is not None and columns.vectors.shape[1] == len(query):
            return columns.cosines(query, numbers)
        return self.read_cosines(tx, owner_id, space, query, numbers)

    def read_cosines(self, tx: Tx, owner_id: str, space: str, query: "Array", numbers: Sequence[int]) -> "Array":
        """Like `cosines`, of vectors that are read from the database."""
        return cosines_of_rows(query, numbers, vectors.read_some(tx, owner_id, space, numbers))

    def columns(self, tx: Tx, owner_id: str, space: str, statistics: OwnerStatistics | None = None) -> Columns | None:
        """The vectors of an owner, or None if they are larger than the budget.

        They have all that the transaction sees, and may have more: hits are looked up in `documents` anyway.
        """
        statistics = statistics or documents.statistics(tx, owner_id)
        key = MatrixKey(tx.account, statistics.account_created_at, owner_id, space)
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
        with entry.lock:
            is_loaded = _refresh(tx, entry.matrix, owner_id, space, statistics, self._max_bytes)
            columns = entry.matrix.columns if is_loaded else None
        self._drop_least_used()
        return columns

    def _sample(self, tx: Tx, owner_id: str, space: str, version: int) -> Columns:
        """Some vectors of an owner whose vectors are in the index. They are read again when the index has changed."""
        key = MatrixKey(tx.account, documents.statistics(tx, owner_id).account_created_at, owner_id, space)
        with self._lock:
            known = self._samples.get(key)
        if known is None or known[0] != version:
            known = version, indexed_vectors.read_sample(tx, owner_id, space)
            with self._lock:
                self._samples[key] = known
                while len(self._samples) > MAX_SAMPLES:
                    self._samples.popitem(last=False)
        return known[1]

    def _drop_least_used(self) -> None:
        with self._lock:
            total = sum(entry.matrix.bytes for entry in self._entries.values())
            while total > self._max_bytes and self._entries:
                _, dropped = self._entries.popitem(last=False)
                total -= dropped.matrix.bytes


def _refresh(
    tx: Tx, matrix: OwnerMatrix, owner_id: str, space: str, statistics: OwnerStatistics, max_bytes: int
) -> bool:
    """Bring a matrix up to date. Return False if it would be larger than `max_bytes`."""
    if statistics.version <= matrix.version:  # lower if the transaction began before that of another thread
        return True
    is_new = matrix.version < 0
    if not is_new and statistics.removed_version > matrix.version:
        matrix.keep_numbers(vectors.list_numbers(tx, owner_id, space))
    after = 0
    while True:
        if is_new:
            rows = vectors.read_page(tx, owner_id, space, after=after, limit=PAGE_ROWS)
        else:
            rows = vectors.read_added(tx, owner_id, space, matrix.version, 2**60)
        matrix.add(rows)
        if matrix.bytes > max_bytes:
            matrix.clear()
            return False
        if not is_new or len(rows) < PAGE_ROWS:
            break
        after = rows[-1][0]
    matrix.version = statistics.version
    return True


def _nearest_by_page(tx: Tx, owner_id: str, space: str, query: "Array", k: int, wanted: VectorFilter) -> Nearest:
    """Like `Columns.nearest`, without holding more than a page of vectors."""
    found: list[Nearest] = []
    after = 0
    while rows := vectors.read_page(tx, owner_id, space, after=after, limit=PAGE_ROWS):
        page = OwnerMatrix()
        page.add(rows)
        if page.columns.vectors.shape[1] == len(query):
            found.append(page.columns.nearest(query, k, wanted))
        after = rows[-1][0]
    return merge(found, k)


def cosines_of_rows(query: "Array", numbers: Sequence[int], rows: Sequence[tuple[int, bytes]]) -> "Array":
    """The cosine of each number, from rows of numbers and stored vectors."""
    stored = {n: vector for n, vector in rows if len(vector) == 2 * len(query)}
    found = np.full(len(numbers), np.nan, dtype=np.float32)
    at = [i for i, n in enumerate(numbers) if n in stored]
    if at:
        matrix = np.frombuffer(b"".join(stored[numbers[i]] for i in at), "<f2").reshape(len(at), -1)
        found[at] = np.vecdot(matrix.astype(np.float32), query)
    return found


_all_matrices = forking.reset_in_child(Matrices.reset)
_by_database: "weakref.WeakKeyDictionary[Database, Matrices]" = weakref.WeakKeyDictionary()
_lock = forking.Lock()


def matrices_of(db: Database, settings: Settings) -> Matrices:
    """The matrices of a database. All clients of the process that use the same database object share them."""
    with _lock:
        found = _by_database.get(db)
        if found is None:
            found = _by_database[db] = Matrices(settings.vector_memory_bytes)
        return found
