"""What a process remembers of a database, by key and version, up to a number of rows."""

import threading
import weakref
from collections import OrderedDict
from typing import Any, Generic, NamedTuple, TypeVar

from holdfast import forking
from holdfast.store.database import Database

T = TypeVar("T")
MAX_ROWS = 2_000_000
"""Rows of each kind that are remembered. What was used least recently is forgotten."""


class _Entry(NamedTuple):
    version: Any
    value: Any
    rows: int


class Remembered(Generic[T]):
    """Values of one kind, by database and key. Thread-safe; a forked child begins with none."""

    def __init__(self) -> None:
        self.reset()
        _all.add(self)

    def reset(self) -> None:
        self._lock = threading.Lock()
        self._by_database: weakref.WeakKeyDictionary[Database, OrderedDict[Any, _Entry]] = weakref.WeakKeyDictionary()

    def find(self, db: Database, key: Any) -> tuple[Any, T] | None:
        """Return the version and the value of a key."""
        with self._lock:
            entries = self._by_database.get(db)
            entry = None if entries is None else entries.get(key)
            if entries is None or entry is None:
                return None
            entries.move_to_end(key)
            return entry.version, entry.value

    def store(self, db: Database, key: Any, version: Any, value: T, rows: int) -> None:
        with self._lock:
            entries = self._by_database.setdefault(db, OrderedDict())
            entries[key] = _Entry(version, value, rows)
            entries.move_to_end(key)
            total = sum(entry.rows for entry in entries.values())
            while total > MAX_ROWS and len(entries) > 1:
                _, dropped = entries.popitem(last=False)
                total -= dropped.rows


_all: "weakref.WeakSet[Remembered[Any]]" = forking.reset_in_child(Remembered.reset)
