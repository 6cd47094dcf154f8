"""Group commit: many callers share one writer and one sync of the disk.

A caller that finds the writer free becomes the leader and runs its own work in its own thread. While it waits for the
disk, other callers queue. The first of them leads the next batch: it commits the work of all queued callers and hands
out the results. There is no background thread that could die and leave callers waiting.

KeyboardInterrupt may reach the main thread after any call that it makes here. Therefore changes that belong together
are made without a call in between, and `_finish`, which may be interrupted, can be repeated from its beginning.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

from holdfast.errors import UnavailableError

W = TypeVar("W")


class PendingWrite(Generic[W]):
    """A unit of work and, once its batch is committed, its outcome."""

    __slots__ = ("done", "error", "is_exclusive", "outcome", "wake_lock", "work")

    def __init__(self, work: W, *, is_exclusive: bool = False) -> None:
        self.work = work
        self.is_exclusive = is_exclusive
        self.done = False
        """Whether another caller has committed it."""
        self.outcome: Any = None
        self.error: BaseException | None = None
        self.wake_lock: threading.Lock | None = None
        """Held while the caller waits; releasing it wakes the caller."""


class GroupCommit(Generic[W]):
    """`commit(batch)` runs all writes of a batch durably and sets the `outcome` or the `error` of each."""

    def __init__(self, commit: Callable[[list[PendingWrite[W]]], None], *, max_batch: int = 256) -> None:
        self._commit = commit
        self._max_batch = max_batch
        self._mutex = threading.Lock()
        self._waiting: list[PendingWrite[W]] = []
        self._leader: PendingWrite[W] | None = None

    def run(self, work: W) -> Any:
        write = PendingWrite(work)
        batch = [write]
        committed = False
        try:
            self._wait_for_turn(write)
            if not write.done:
                if self._waiting:
                    self._add_waiting_writes(batch)
                self._commit(batch)
                committed = True
        finally:
            if not write.done:
                try:
                    self._finish(batch, committed=committed)
                except BaseException:
                    self._finish(batch, committed=committed)
                    raise
        if write.error is not None:
            raise write.error
        return write.outcome

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Wait until no write runs, and let none begin during the block. The caller may use the write connection."""
        write = PendingWrite[Any](None, is_exclusive=True)
        try:
            self._wait_for_turn(write)
            yield
        finally:
            try:
                self._finish([write], committed=True)
            except BaseException:
                self._finish([write], committed=True)
                raise

    def count_waiting(self) -> int:
        return len(self._waiting)

    def reset_after_fork(self) -> None:
        """Forget waiting writes and replace the lock: their threads do not exist in a forked child."""
        self._mutex = threading.Lock()
        self._waiting.clear()

    def _wait_for_turn(self, write: PendingWrite[W]) -> None:
        """Return when this write leads, or when another leader has committed it."""
        with self._mutex:
            if self._leader is None:
                self._leader = write
                return
            wake_lock = write.wake_lock = threading.Lock()
            wake_lock.acquire()
            self._waiting.append(write)
        while not write.done and self._leader is not write:
            wake_lock.acquire()

    def _add_waiting_writes(self, batch: list[PendingWrite[W]]) -> None:
        """Move waiting writes into the batch, up to its limit or the first exclusive write."""
        with self._mutex:
            waiting, count = self._waiting, 0
            while count < min(len(waiting), self._max_batch - 1) and not waiting[count].is_exclusive:
                count += 1
            batch += waiting[:count]
            del waiting[:count]

    def _finish(self, batch: list[PendingWrite[W]], *, committed: bool) -> None:
        """Choose the next leader and wake the callers of the batch. An interrupted write leaves the queue.

        The first write of the batch is the caller's own.
        """
        write, *others = batch
        with self._mutex:
            waiting = self._waiting
            if self._leader is not write:
                if write in waiting:
                    waiting.remove(write)
            elif waiting:
                self._leader = waiting[0]
                del waiting[0]
            else:
                self._leader = None
        for other in others:
            if not committed and other.error is None:
                other.error = _interrupted()
            other.done = True
            _wake(other)
        if self._leader is not None:
            _wake(self._leader)


def _wake(write: PendingWrite[Any]) -> None:
    if write.wake_lock is not None:
        with suppress(RuntimeError):  # it is awake already
            write.wake_lock.release()


def _interrupted() -> UnavailableError:
    return UnavailableError(
        "the thread that wrote for several callers was interrupted: the outcome of this call is unknown",
        service="sqlite",
        reason="interrupted",
    )
