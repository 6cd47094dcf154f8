"""Many callers, one writer, one sync: whoever gets the writer runs everything that waits, then hands out results.

A lone caller runs its own work in its own thread. While it waits for the disk, others queue; the first of them
leads the next batch. No thread of our own is needed, and none can die and leave callers waiting.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

T = TypeVar("T")
W = TypeVar("W")


class Job(Generic[W]):
    """A piece of work and, once its batch is committed, its outcome."""

    __slots__ = ("alone", "done", "error", "lead", "outcome", "wake", "work")

    def __init__(self, work: W, *, alone: bool = False) -> None:
        self.work = work
        self.alone = alone
        self.done = False
        self.lead = False
        self.outcome: Any = None
        self.error: BaseException | None = None
        self.wake: threading.Lock | None = None


class GroupCommit(Generic[W]):
    """`commit(batch)` runs all jobs of a batch durably and sets each one's `outcome` or `error`."""

    def __init__(self, commit: Callable[[list[Job[W]]], None], *, most: int = 256) -> None:
        self._commit = commit
        self._most = most
        self._mutex = threading.Lock()
        self._waiting: deque[Job[W]] = deque()
        self._led = False

    def run(self, work: W) -> Any:
        job = Job(work)
        if self._leads(job):
            batch = self._gather(job)
            try:
                self._commit(batch)
            finally:
                self._pass_on(batch)
        if job.error is not None:
            raise job.error
        return job.outcome

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the writer with nothing running in it."""
        job = Job[Any](None, alone=True)
        self._leads(job)
        try:
            yield
        finally:
            self._pass_on([job])

    def forget_waiting(self) -> None:
        """In a forked child the threads that waited do not exist, nor one that was about to and held the lock."""
        self._mutex = threading.Lock()
        self._waiting.clear()

    def _leads(self, job: Job[W]) -> bool:
        """Wait for this job's turn: True to lead a batch, False when another leader has done it meanwhile."""
        with self._mutex:
            if not self._led:
                self._led = True
                return True
            wake = job.wake = threading.Lock()
            wake.acquire()
            self._waiting.append(job)
        try:
            wake.acquire()
        except BaseException:
            self._abandon(job)
            raise
        return not job.done

    def _gather(self, leader: Job[W]) -> list[Job[W]]:
        batch = [leader]
        if not self._waiting:
            return batch
        with self._mutex:
            while self._waiting and not self._waiting[0].alone and len(batch) < self._most:
                batch.append(self._waiting.popleft())
        return batch

    def _pass_on(self, batch: list[Job[W]]) -> None:
        with self._mutex:
            successor = self._waiting.popleft() if self._waiting else None
            if successor is None:
                self._led = False
            else:
                successor.lead = True
        if successor is not None and successor.wake is not None:
            successor.wake.release()
        for job in batch[1:]:
            job.done = True
            if job.wake is not None:
                job.wake.release()

    def _abandon(self, job: Job[W]) -> None:
        """An interrupted caller leaves the queue, and passes the lead on if it was just given to it."""
        with self._mutex:
            if job in self._waiting:
                self._waiting.remove(job)
                return
        if job.lead:
            self._pass_on([job])
