"""Limits how many callers wait for locked rows, each with a connection. The others wait for a turn, without one."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class LockWaits:
    """At most `max_count` callers wait for locks at the same time, and at most `per_account` of each account."""

    def __init__(self, *, max_count: int, per_account: int) -> None:
        self._max_count = max_count
        self._per_account = per_account
        self._counts: dict[str, int] = {}
        self._changed = threading.Condition()

    @contextmanager
    def turn(self, account: str, deadline: float) -> Iterator[None]:
        """Hold a turn for the time of the block. Raise TimeoutError if there is none before the deadline."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._is_free(account), deadline - time.monotonic()):
                raise TimeoutError
            self._counts[account] = self._counts.get(account, 0) + 1
        try:
            yield
        finally:
            with self._changed:
                self._counts[account] -= 1
                if not self._counts[account]:
                    del self._counts[account]
                self._changed.notify_all()

    def _is_free(self, account: str) -> bool:
        return sum(self._counts.values()) < self._max_count and self._counts.get(account, 0) < self._per_account
