"""Threads that the users of a server share fairly: no user can occupy all of them, or delay others by queueing."""

import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from holdfast.errors import FailedPreconditionError, ResourceExhaustedError
from holdfast.store.database import Cancellation, ReplyCallback, current_cancellation

User = tuple[str, str]
"""The ids of the account and the user."""
SERVER: User = ("", "")
"""The user of work that the server does for itself, or before it knows the caller."""

MAX_THREADS_PER_FREE = 3
"""A user may take another thread as long as it has fewer than this many times the number of free threads.

So one busy user gets three quarters of all threads, a second one most of the rest, and others still find a free one.
"""
MAX_WAITING_PER_USER = 1_000
POLL_SECONDS = 0.001


class Work:
    """A function to run for a user. `reply` is called in the thread with its result or its error."""

    __slots__ = ("cancellation", "function", "reply", "user")

    def __init__(
        self, user: User, function: Callable[[], Any], reply: ReplyCallback, cancellation: Cancellation
    ) -> None:
        self.user = user
        self.function = function
        self.reply = reply
        self.cancellation = cancellation

    def run(self) -> None:
        current_cancellation.value = self.cancellation
        try:
            self.cancellation.raise_if_requested()
            result, error = self.function(), None
        except BaseException as raised:  # noqa: BLE001 - it is passed to the caller
            result, error = None, raised
        current_cancellation.value = None
        with suppress(RuntimeError):  # the event loop was closed before the work was done
            self.reply(result, error)
        # The error refers to this frame by its traceback. Such a cycle would keep what the work has read in memory.
        del self, result, error


class FairThreads:
    """Runs work in up to `count` threads. Users whose work waits take turns."""

    def __init__(self, count: int, name: str) -> None:
        self._name = name
        self._count = self._free = count
        self._lock = threading.Lock()
        self._running: dict[User, int] = {}
        """The number of threads of each user that has one."""
        self._waiting: dict[User, dict[Work, None]] = {}
        """The waiting work of each user, in order. The next user to get a thread is the first that may have one."""
        self._started: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        """Work that has a thread. It is taken from the queue at once."""
        self._threads: list[threading.Thread] = []
        self._is_closed = False

    def submit(self, work: Work) -> None:
        """Run the work when its user may have a thread. Raises an error if too much work of this user waits."""
        user = work.user
        with self._lock:
            if self._is_closed:
                raise FailedPreconditionError("the server is stopping; send the request to another one")
            waiting = self._waiting.get(user)
            if waiting is None and self._may_start(user):
                self._start(work)
                return
            if waiting is None:
                waiting = self._waiting[user] = {}
            elif len(waiting) >= MAX_WAITING_PER_USER:
                raise ResourceExhaustedError(
                    f"{MAX_WAITING_PER_USER} requests of this user wait already; wait for a response first",
                    retry_after=1.0,
                    limit=MAX_WAITING_PER_USER,
                )
            waiting[work] = None

    def discard(self, work: Work) -> None:
        """Remove work that waits. Work that runs is not changed."""
        with self._lock:
            waiting = self._waiting.get(work.user)
            if waiting is not None and work in waiting:
                self._remove(work, waiting)

    def close(self) -> None:
        """Finish all work, then end the threads."""
        with self._lock:
            self._is_closed = True
        while self._waiting or self._running:
            time.sleep(POLL_SECONDS)
        for _ in self._threads:
            self._started.put(None)
        for thread in self._threads:
            thread.join()

    def _may_start(self, user: User) -> bool:
        return self._running.get(user, 0) < MAX_THREADS_PER_FREE * self._free

    def _start(self, work: Work) -> None:
        """Give the work a thread. The caller holds the lock."""
        self._running[work.user] = self._running.get(work.user, 0) + 1
        self._free -= 1
        if self._count - self._free > len(self._threads):
            thread = threading.Thread(target=self._run, name=f"{self._name}-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._started.put(work)

    def _run(self) -> None:
        while (work := self._started.get()) is not None:
            work.run()
            user = work.user
            del work  # while the thread waits, it keeps no result
            self._finish(user)

    def _finish(self, user: User) -> None:
        """Give the thread of a user to the users that wait."""
        with self._lock:
            self._free += 1
            self._running[user] -= 1
            if not self._running[user]:
                del self._running[user]
            while (next_user := self._next_user()) is not None:
                waiting = self._waiting[next_user]
                work = next(iter(waiting))
                self._remove(work, waiting)
                if waiting:
                    self._waiting[next_user] = self._waiting.pop(next_user)  # to the end
                self._start(work)

    def _next_user(self) -> User | None:
        return next((user for user in self._waiting if self._may_start(user)), None)

    def _remove(self, work: Work, waiting: dict[Work, None]) -> None:
        del waiting[work]
        if not waiting:
            del self._waiting[work.user]
