"""Writes that could not run with others: they wait for a lock, take long, or have failed.

Writes with the same key wait in one lane, in order, and use one thread. An account uses at most a share of the
threads, and accounts take turns, so no session and no account can delay all others.
"""

import itertools
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from holdfast.store.drivers.write_queue import SubmittedWrite

W = TypeVar("W")
Key = tuple[str, str]
"""An account, and what its write is about, such as a session."""
MAX_TAKEN = 64
"""How many writes of a lane run before another lane gets the thread."""


class WriteLanes(Generic[W]):
    """`run(writes)` runs writes with the same key and replies to each of them. It raises nothing."""

    def __init__(self, run: Callable[[list[SubmittedWrite[W]]], None], *, threads: int, per_account: int) -> None:
        self._run = run
        self._max_threads = threads
        self._max_per_account = per_account
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="holdfast-lane")
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._finished = threading.Condition(self._lock)
        self._lanes: dict[Key, deque[SubmittedWrite[W]]] = {}
        """The waiting writes of each lane. A lane that is running is here too, also without waiting writes."""
        self._ready: dict[str, deque[Key]] = {}
        """The lanes that wait for a thread, by account. The accounts are in the order of their turns."""
        self._running: dict[str, int] = {}
        """How many lanes of each account are running."""

    def __contains__(self, key: Key) -> bool:
        return key in self._lanes

    def __len__(self) -> int:
        return len(self._lanes)

    def add(self, write: SubmittedWrite[W]) -> None:
        account, name = write.key
        with self._lock:
            # A write without a `Submission.key` has a lane of its own: it need not wait for others without one.
            key = (account, name or f"#{next(self._numbers)}")
            lane = self._lanes.get(key)
            if lane is not None:
                lane.append(write)
                return
            self._lanes[key] = deque([write])
            self._ready.setdefault(account, deque()).append(key)
            self._start()

    def count_waiting(self) -> int:
        with self._lock:
            return sum(len(lane) for lane in self._lanes.values())

    def close(self) -> None:
        """Finish all writes, then stop the threads."""
        with self._lock:
            while self._lanes:
                self._finished.wait()
        self._threads.shutdown(wait=True)

    def _start(self) -> None:
        """Start lanes while there are threads for them. The caller holds the lock."""
        while (account := self._next_account()) is not None:
            keys = self._ready.pop(account)
            key = keys.popleft()
            if keys:
                self._ready[account] = keys  # at the end: the other accounts are next
            self._running[account] = self._running.get(account, 0) + 1
            self._threads.submit(self._work, key)

    def _next_account(self) -> str | None:
        if sum(self._running.values()) == self._max_threads:
            return None
        waiting = (account for account in self._ready if self._running.get(account, 0) < self._max_per_account)
        return next(waiting, None)

    def _work(self, key: Key) -> None:
        with self._lock:
            lane = self._lanes[key]
            writes = [lane.popleft() for _ in range(min(MAX_TAKEN, len(lane)))]
        try:
            self._run(writes)
        finally:
            with self._lock:
                self._finish(key)

    def _finish(self, key: Key) -> None:
        account = key[0]
        self._running[account] -= 1
        if not self._running[account]:
            del self._running[account]
        if self._lanes[key]:
            self._ready.setdefault(account, deque()).append(key)
        else:
            del self._lanes[key]
        self._finished.notify_all()
        self._start()
