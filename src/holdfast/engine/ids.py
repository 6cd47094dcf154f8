"""The clock and the ids. Everything that is stored takes both from here, so a test can fix them."""

import os
import threading
import time
import weakref
from collections.abc import Callable

Clock = Callable[[], int]
"""Microseconds since 1970, UTC."""

_RANDOM_BITS = 80
_LOG_BITS = 21


def system_clock() -> int:
    return time.time_ns() // 1_000


class Ids:
    """Ids that sort by the time they were made, also within one millisecond of one process."""

    def __init__(self, clock: Clock, entropy: Callable[[int], bytes] = os.urandom) -> None:
        self._clock = clock
        self._entropy = entropy
        self._lock = threading.Lock()
        self._last = 0
        self._last_log = 0
        _every.add(self)

    def new(self, prefix: str) -> str:
        """`new("msg")` -> `msg_` and 32 hexadecimal digits: 48 bits of milliseconds, 80 of chance."""
        fresh = (self._clock() // 1_000 << _RANDOM_BITS) | int.from_bytes(self._entropy(10), "big")
        with self._lock:
            if fresh <= self._last:
                # The chance of a step this wide meeting another process's ids is nil, and the order holds.
                fresh = self._last + 1 + int.from_bytes(self._entropy(4), "big")
            self._last = fresh
        return f"{prefix}_{fresh:032x}"

    def chance(self) -> int:
        """48 bits that tell apart what else is equal."""
        return int.from_bytes(self._entropy(6), "big")

    def log_id(self) -> int:
        """A 63-bit number for a log: milliseconds, then chance that tells processes apart."""
        fresh = (self._clock() // 1_000 << _LOG_BITS) | (int.from_bytes(self._entropy(3), "big") >> 3)
        with self._lock:
            self._last_log = fresh = max(fresh, self._last_log + 1)
        return fresh


_every: "weakref.WeakSet[Ids]" = weakref.WeakSet()


def _after_fork_in_child() -> None:
    """A thread that held the lock does not exist here and will not release it."""
    for ids in list(_every):
        ids._lock = threading.Lock()  # noqa: SLF001


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
