"""What a search filters by, of all documents of stored files of an owner, as columns in memory."""

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from holdfast.engine.recall.contents.remembered import Remembered
from holdfast.store.access.search import content_hits
from holdfast.store.database import Database, Tx
from holdfast.store.tables.documents import OwnerStatistics

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


class ContentTable(NamedTuple):
    """The documents of stored files of an owner, by number. Never changed."""

    version: int
    revision: int
    """Two tables of a process with the same revision have the same rows."""
    numbers: "Array"
    contents: "Array"
    parts: "Array"
    kinds: "Array"
    """By their positions in `kind_names`."""
    levels: "Array"
    lengths: "Array"
    """How many words each has."""
    kind_names: tuple[str, ...]


EMPTY = ContentTable(
    version=0,
    revision=0,
    numbers=np.zeros(0, np.int64),
    contents=np.zeros(0, np.int64),
    parts=np.zeros(0, np.int64),
    kinds=np.zeros(0, np.int16),
    levels=np.zeros(0, np.int16),
    lengths=np.zeros(0, np.int32),
    kind_names=(),
)
_COLUMNS = ContentTable._fields[2:8]
_tables: Remembered[ContentTable] = Remembered()
_revisions = itertools.count(1)


def read_table(db: Database, tx: Tx, owner_id: str, statistics: OwnerStatistics) -> ContentTable:
    """Return the documents of an owner: all that the transaction sees, and perhaps newer ones."""
    if not statistics.documents:
        return EMPTY
    key = (tx.account, statistics.account_created_at, owner_id)
    known = _tables.find(db, key)
    table = EMPTY if known is None else known[1]
    if statistics.version <= table.version:
        return table
    if statistics.removed_version > table.version and len(table.numbers):
        table = _without_removed(table, content_hits.list_numbers(tx, owner_id))
    table = _extend(table, content_hits.read_columns(tx, owner_id, table.version))
    table = table._replace(version=statistics.version)
    _tables.store(db, key, table.version, table, len(table.numbers))
    return table


def _without_removed(table: ContentTable, numbers: "Array") -> ContentTable:
    kept = np.isin(table.numbers, numbers)
    if kept.all():
        return table
    columns: dict[str, Any] = {name: getattr(table, name)[kept] for name in _COLUMNS}
    return table._replace(revision=next(_revisions), **columns)


def _extend(table: ContentTable, rows: list[Any]) -> ContentTable:
    if not rows:
        return table
    numbers, contents, parts, kinds, levels, lengths = zip(*rows, strict=True)
    kind_names = tuple(dict.fromkeys((*table.kind_names, *kinds)))
    codes = {name: code for code, name in enumerate(kind_names)}
    values = (numbers, contents, parts, [codes[kind] for kind in kinds], levels, lengths)
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(table, name), np.array(new, dtype=getattr(table, name).dtype)])
        for name, new in zip(_COLUMNS, values, strict=True)
    }
    _, first = np.unique(columns["numbers"], return_index=True)
    columns = {name: column[first] for name, column in columns.items()}
    return table._replace(revision=next(_revisions), kind_names=kind_names, **columns)
