"""Work from callers that do not wait: one thread takes all that has come in, commits it at once and replies to each."""

import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from holdfast.errors import FailedPreconditionError
from holdfast.store.database import Reply
from holdfast.store.groupcommit import Job

W = TypeVar("W")


class Submitted(Job[W]):
    __slots__ = ("reply",)

    def __init__(self, work: W, reply: Reply) -> None:
        super().__init__(work)
        self.reply = reply


class WriteQueue(Generic[W]):
    """`commit(batch)` runs all jobs of a batch durably and sets each one's `outcome` or `error`."""

    MOST = 256

    def __init__(self, commit: Callable[[list[Job[W]]], None]) -> None:
        self._commit = commit
        self._jobs: queue.SimpleQueue[list[Submitted[W]]] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="holdfast-writer", daemon=True)
        self._thread.start()

    def put(self, jobs: list[Submitted[W]]) -> None:
        with self._closing:
            if self._closed:
                raise FailedPreconditionError("this database was closed; open it again to write to it")
            self._jobs.put(jobs)

    def waiting(self) -> int:
        return self._jobs.qsize()

    def close(self) -> None:
        """Finish everything that was put in, then end."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._jobs.put([])
        self._thread.join()

    def _work(self) -> None:
        """Until an empty list says that nothing more comes."""
        while jobs := self._jobs.get():
            batch = jobs
            while len(batch) < self.MOST and not self._jobs.empty():
                jobs = self._jobs.get()
                batch = batch + jobs
                if not jobs:
                    break
            self._run(batch)
            if not jobs:
                return

    def _run(self, batch: list[Submitted[W]]) -> None:
        try:
            self._commit(list(batch))
        except BaseException as error:  # noqa: BLE001 - a thread that died would leave every caller waiting
            for job in batch:
                job.outcome, job.error = None, error
        for job in batch:
            job.reply(job.outcome, job.error)
