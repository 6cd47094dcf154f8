"""What a search filters and chooses by, of all documents of an owner, as columns in memory."""

import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from holdfast import forking
from holdfast.search.documents import Place
from holdfast.search.features import PERSON_ROLES
from holdfast.search.matches import Layout, arrange
from holdfast.store.access.search import text_hits
from holdfast.store.database import Database, Tx
from holdfast.store.tables.documents import OwnerStatistics

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

MAX_ROWS = 2_000_000
"""Documents of all owners that a process remembers. The owners that were searched least recently are forgotten."""


class OwnerTable(NamedTuple):
    """The documents of an owner, by number. The columns are never changed; `arranged` is filled on first use."""

    version: int
    numbers: "Array"
    logs: "Array"
    """0 for a document that is not part of a log."""
    seqs: "Array"
    kinds: "Array"
    """By their positions in `kind_names`."""
    levels: "Array"
    times: "Array"
    persons: "Array"
    """Whether a person wrote it."""
    speakers: "Array"
    """By their positions in `speaker_names`."""
    kind_names: tuple[str, ...]
    speaker_names: tuple[str, ...]
    arranged: "dict[str, tuple[Array, Layout]]"
    """The rows of each kind, and their layout, once it was needed."""

    def arrange_kind(self, kind: str) -> "tuple[Array, Layout]":
        """Return the rows of a kind of documents, and their layout."""
        found = self.arranged.get(kind)
        if found is None:
            rows = np.flatnonzero(self.kinds == self.kind_names.index(kind)) if kind in self.kind_names else _NO_ROWS
            found = self.arranged[kind] = rows, self.arrange(rows)
        return found

    def arrange(self, rows: "Array", others: Sequence[Place] = ()) -> Layout:
        """Arrange some rows, and then other documents."""
        logs = self.logs[rows]
        numbers = np.where(logs > 0, self.seqs[rows], self.numbers[rows])
        if others:
            added = np.array(others, dtype=np.int64)
            logs, numbers = np.concatenate([logs, added[:, 0]]), np.concatenate([numbers, added[:, 1]])
        return arrange(logs, numbers)

    def rows_of(self, numbers: "Array") -> "Array":
        """Return the rows of the documents with these numbers. Unknown numbers are left out."""
        wanted = np.asarray(numbers, dtype=np.int64)
        at = np.searchsorted(self.numbers, wanted)
        at[at == len(self.numbers)] = 0
        return at[self.numbers[at] == wanted] if len(self.numbers) else at[:0]


_NO_ROWS = np.zeros(0, np.int64)
EMPTY = OwnerTable(
    version=0,
    numbers=np.zeros(0, np.int64),
    logs=np.zeros(0, np.int64),
    seqs=np.zeros(0, np.int64),
    kinds=np.zeros(0, np.int16),
    levels=np.zeros(0, np.int16),
    times=np.zeros(0, np.int64),
    persons=np.zeros(0, bool),
    speakers=np.zeros(0, np.int32),
    kind_names=(),
    speaker_names=(),
    arranged={},
)
_COLUMNS = OwnerTable._fields[1:9]


class OwnerTables:
    """The tables of the owners that were searched last. Thread-safe."""

    def __init__(self) -> None:
        self.reset()
        _all_tables.add(self)

    def reset(self) -> None:
        """Forget all tables. In a forked child, a thread of the parent may have been changing one."""
        self._lock = threading.Lock()
        self._tables: OrderedDict[tuple[str, int | None, str], OwnerTable] = OrderedDict()

    def read(self, tx: Tx, owner_id: str, statistics: OwnerStatistics) -> OwnerTable:
        """Return the documents of an owner: all that the transaction sees, and perhaps newer ones."""
        key = (tx.account, statistics.account_created_at, owner_id)
        with self._lock:
            table = self._tables.get(key, EMPTY)
            if table is not EMPTY:
                self._tables.move_to_end(key)
        if statistics.version <= table.version:
            return table
        if statistics.removed_version > table.version:
            table = EMPTY
        table = _extend(table, text_hits.read_columns(tx, owner_id, table.version), statistics.version)
        with self._lock:
            if self._tables.get(key, EMPTY).version <= table.version:
                self._tables[key] = table
                self._tables.move_to_end(key)
            total = sum(len(each.numbers) for each in self._tables.values())
            while total > MAX_ROWS and len(self._tables) > 1:
                _, dropped = self._tables.popitem(last=False)
                total -= len(dropped.numbers)
        return table


def _extend(table: OwnerTable, rows: Sequence[Any], version: int) -> OwnerTable:
    """Return a table with further rows. A vector alone changes the version, too."""
    if not rows:
        return table._replace(version=version)
    numbers, logs, seqs, kinds, levels, times, roles, speakers = zip(*rows, strict=True)
    kind_names = tuple(dict.fromkeys((*table.kind_names, *kinds)))
    speaker_names = tuple(dict.fromkeys((*table.speaker_names, *speakers)))
    kind_codes = {name: code for code, name in enumerate(kind_names)}
    speaker_codes = {name: code for code, name in enumerate(speaker_names)}
    values = (
        numbers,
        [log_id or 0 for log_id in logs],
        seqs,
        [kind_codes[kind] for kind in kinds],
        levels,
        times,
        [role in PERSON_ROLES for role in roles],
        [speaker_codes[speaker] for speaker in speakers],
    )
    columns = {
        name: np.concatenate([getattr(table, name), np.array(new, dtype=getattr(table, name).dtype)])
        for name, new in zip(_COLUMNS, values, strict=True)
    }
    if len(table.numbers) and numbers[0] <= table.numbers[-1]:
        order = np.argsort(columns["numbers"], kind="stable")
        columns = {name: column[order] for name, column in columns.items()}
    return table._replace(version=version, kind_names=kind_names, speaker_names=speaker_names, arranged={}, **columns)


_all_tables = forking.reset_in_child(OwnerTables.reset)
_by_database: "weakref.WeakKeyDictionary[Database, OwnerTables]" = weakref.WeakKeyDictionary()
_lock = forking.Lock()


def tables_of(db: Database) -> OwnerTables:
    """Return the tables of a database. All engines of the process that use it share them."""
    with _lock:
        found = _by_database.get(db)
        if found is None:
            found = _by_database[db] = OwnerTables()
        return found
