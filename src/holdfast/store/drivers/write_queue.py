"""Work from callers that do not wait: one thread takes all that has come in, commits it at once and replies to each."""

import copy
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

from holdfast.errors import FailedPreconditionError
from holdfast.store.database import Reply
from holdfast.store.drivers.group_commit import Job

W = TypeVar("W")
ENOUGH = 256
"""With so many jobs a batch is large enough not to wait for more."""


class Submitted(Job[W]):
    __slots__ = ("reply",)

    def __init__(self, work: W, reply: Reply) -> None:
        super().__init__(work)
        self.reply = reply


class WriteQueue(Generic[W]):
    """`commit(batch)` runs all jobs of a batch durably and sets each one's `outcome` or `error`."""

    def __init__(self, commit: Callable[[list[Job[W]]], None]) -> None:
        self._commit = commit
        self._jobs: queue.SimpleQueue[list[Submitted[W]] | None] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        self._put = self._taken = 0
        self._thread = threading.Thread(target=self._work, name="holdfast-writer", daemon=True)
        self._thread.start()

    def put(self, jobs: list[Submitted[W]]) -> None:
        with self._closing:
            if self._closed:
                raise FailedPreconditionError("this database was closed; open it again to write to it")
            self._put += len(jobs)
            self._jobs.put(jobs)

    def waiting(self) -> int:
        return self._put - self._taken

    def close(self) -> None:
        """Finish everything that was put in, then end."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (jobs := self._jobs.get()) is not None:
            batch = [*jobs]
            while jobs is not None and len(batch) < ENOUGH and not self._jobs.empty():
                jobs = self._jobs.get()
                batch += jobs or []
            if batch:
                self._run(batch)
            if jobs is None:
                return

    def _run(self, batch: list[Submitted[W]]) -> None:
        """Whatever happens, each gets a reply and the thread goes on: without it every caller would wait for ever."""
        self._taken += len(batch)
        try:
            self._commit(list(batch))
        except BaseException as error:  # noqa: BLE001 - it is handed to the callers
            for job in batch:
                job.outcome, job.error = None, copy.copy(error)
        for job in batch:
            with suppress(Exception):  # whoever cannot be told any more is gone
                job.reply(job.outcome, job.error)
