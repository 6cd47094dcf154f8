"""Writes of callers that do not block a thread. Threads commit queued writes in batches and call each callback."""

import copy
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from holdfast.errors import FailedPreconditionError
from holdfast.store.database import ReplyCallback
from holdfast.store.drivers.group_commit import PendingWrite

W = TypeVar("W")
MIN_FULL_BATCH = 256
"""A batch of this many writes is committed without taking more from the queue."""


class SubmittedWrite(PendingWrite[W]):
    __slots__ = ("key", "reply", "submitted_at")

    def __init__(
        self, work: W, reply: ReplyCallback, *, key: tuple[str, str] = ("", ""), submitted_at: float = 0.0
    ) -> None:
        super().__init__(work)
        self.reply = reply
        self.key = key
        """Its account and its `Submission.key`."""
        self.submitted_at = submitted_at
        """When it was submitted, by the monotonic clock."""

    def answer(self, outcome: Any, error: BaseException | None) -> None:
        """Call its callback. A callback that fails must not stop the thread."""
        with suppress(Exception):
            self.reply(outcome, error)


class WriteQueue(Generic[W]):
    """`commit(batch)` runs all writes of a batch durably and sets the `outcome` or the `error` of each.

    It may remove a write from the batch. The callback of that write must then be called elsewhere.
    """

    def __init__(self, commit: Callable[[list[SubmittedWrite[W]]], None], *, threads: int = 1) -> None:
        self._commit = commit
        self._writes: queue.SimpleQueue[list[SubmittedWrite[W]] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._added_count = self._started_count = 0
        self._threads = [
            threading.Thread(target=self._work, name="holdfast-writer", daemon=True) for _ in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def put(self, writes: list[SubmittedWrite[W]]) -> None:
        with self._lock:
            if self._closed:
                raise FailedPreconditionError("this database was closed; open it again to write to it")
            self._added_count += len(writes)
            self._writes.put(writes)

    def count_waiting(self) -> int:
        return self._added_count - self._started_count

    def close(self) -> None:
        """Finish all queued writes, then stop the threads."""
        with self._lock:
            if not self._closed:
                self._closed = True
                for _ in self._threads:
                    self._writes.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (writes := self._writes.get()) is not None:
            batch = [*writes]
            while writes is not None and len(batch) < MIN_FULL_BATCH:
                try:
                    writes = self._writes.get_nowait()  # it must not wait: another thread may have emptied the queue
                except queue.Empty:
                    break
                batch += writes or []
            if batch:
                self._run(batch)
            if writes is None:
                return

    def _run(self, batch: list[SubmittedWrite[W]]) -> None:
        """Commit a batch and reply to every write, whatever fails. Without a reply a caller would wait for ever."""
        with self._lock:
            self._started_count += len(batch)
        try:
            self._commit(batch)
        except BaseException as error:  # noqa: BLE001 - it is passed to the callers
            for write in batch:
                write.outcome, write.error = None, copy.copy(error)
        for write in batch:
            write.answer(write.outcome, write.error)
