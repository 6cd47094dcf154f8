"""The keys of the writes that the batches of a process are committing.

If two batches had writes of the same session, the second batch would wait for the lock that the first one holds, with
all its other writes. Therefore such a write is taken out of the second batch and waits here. The thread that commits
the first batch runs it next.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from holdfast.store.drivers.write_queue import SubmittedWrite

W = TypeVar("W")


class KeysInUse(Generic[W]):
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[tuple[str, str], list[SubmittedWrite[W]]] = {}
        """The keys in use, with the writes that wait for each."""

    @contextmanager
    def claim(self, batch: list[SubmittedWrite[W]]) -> Iterator[list[SubmittedWrite[W]]]:
        """Use the keys of a batch for the time of the block. Writes whose keys others use are removed from it.

        Yield a list that has, after the block, the writes that waited for the keys.
        """
        later: list[SubmittedWrite[W]] = []
        claimed = self._claim(batch)
        try:
            yield later
        finally:
            with self._lock:
                for key in claimed:
                    later += self._waiting.pop(key)

    def _claim(self, batch: list[SubmittedWrite[W]]) -> set[tuple[str, str]]:
        claimed: set[tuple[str, str]] = set()
        with self._lock:
            for write in list(batch):
                key = write.key
                if not key[1] or key in claimed:  # a write without a `Submission.key` waits for no others
                    continue
                if key in self._waiting:
                    self._waiting[key].append(write)
                    batch.remove(write)
                else:
                    self._waiting[key] = []
                    claimed.add(key)
        return claimed
