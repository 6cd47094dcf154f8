"""Many callers, one writer, one sync: whoever gets the writer runs everything that waits, then hands out results.

A lone caller runs its own work in its own thread. While it waits for the disk, others queue; the first of them
leads the next batch. No thread of our own is needed, and none can die and leave callers waiting.

Ctrl-C may reach the main thread behind any call that it makes here. So what must happen together is done without a
call in between, and leaving, which may be cut short, can be done again from its beginning.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

from holdfast.errors import UnavailableError

T = TypeVar("T")
W = TypeVar("W")


class Job(Generic[W]):
    """A piece of work and, once its batch is committed, its outcome."""

    __slots__ = ("alone", "done", "error", "outcome", "wake", "work")

    def __init__(self, work: W, *, alone: bool = False) -> None:
        self.work = work
        self.alone = alone
        self.done = False
        """Whether another caller has led it."""
        self.outcome: Any = None
        self.error: BaseException | None = None
        self.wake: threading.Lock | None = None


class GroupCommit(Generic[W]):
    """`commit(batch)` runs all jobs of a batch durably and sets each one's `outcome` or `error`."""

    def __init__(self, commit: Callable[[list[Job[W]]], None], *, most: int = 256) -> None:
        self._commit = commit
        self._most = most
        self._mutex = threading.Lock()
        self._waiting: list[Job[W]] = []
        self._leader: Job[W] | None = None

    def run(self, work: W) -> Any:
        job = Job(work)
        batch = [job]
        committed = False
        try:
            self._take_turn(job)
            if not job.done:
                if self._waiting:
                    self._gather(batch)
                self._commit(batch)
                committed = True
        finally:
            if not job.done:
                try:
                    self._leave(batch, committed=committed)
                except BaseException:
                    self._leave(batch, committed=committed)
                    raise
        if job.error is not None:
            raise job.error
        return job.outcome

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the writer with nothing running in it."""
        job = Job[Any](None, alone=True)
        try:
            self._take_turn(job)
            yield
        finally:
            try:
                self._leave([job], committed=True)
            except BaseException:
                self._leave([job], committed=True)
                raise

    def waiting(self) -> int:
        return len(self._waiting)

    def forget_waiting(self) -> None:
        """In a forked child the threads that waited do not exist, nor one that was about to and held the lock."""
        self._mutex = threading.Lock()
        self._waiting.clear()

    def _take_turn(self, job: Job[W]) -> None:
        """Return when this job leads, or when another leader has done it."""
        with self._mutex:
            if self._leader is None:
                self._leader = job
                return
            wake = job.wake = threading.Lock()
            wake.acquire()
            self._waiting.append(job)
        while not job.done and self._leader is not job:
            wake.acquire()

    def _gather(self, batch: list[Job[W]]) -> None:
        with self._mutex:
            waiting, joining = self._waiting, 0
            while joining < min(len(waiting), self._most - 1) and not waiting[joining].alone:
                joining += 1
            batch += waiting[:joining]
            del waiting[:joining]

    def _leave(self, batch: list[Job[W]], *, committed: bool) -> None:
        """Pass the lead on and hand out the results; a caller that was interrupted while it waited just goes."""
        job, *others = batch
        with self._mutex:
            waiting = self._waiting
            if self._leader is not job:
                if job in waiting:
                    waiting.remove(job)
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


def _wake(job: Job[Any]) -> None:
    if job.wake is not None:
        with suppress(RuntimeError):  # it is awake already
            job.wake.release()


def _interrupted() -> UnavailableError:
    return UnavailableError(
        "the thread that was writing for others was interrupted: the outcome of this call is unknown",
        service="sqlite",
        reason="interrupted",
    )
