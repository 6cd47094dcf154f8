"""The clock and the ids. Everything that is stored takes both from here, so a test can fix them."""

import os
import random
import threading
import time
from collections.abc import Callable

from holdfast import forking

Clock = Callable[[], int]
"""Microseconds since 1970, UTC."""

_RANDOM_BITS = 80
_LOG_BITS = 21

# Ids have to differ, not to be secret: no system call for each.
_random = random.Random(os.urandom(32))  # noqa: S311


def system_clock() -> int:
    return time.time_ns() // 1_000


class Ids:
    """Ids that sort by the time they were made, also within one millisecond of one process."""

    def __init__(
        self,
        clock: Clock,
        chance: Callable[[int], int] = _random.getrandbits,
        secret: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._clock = clock
        self._bits = chance
        self.secret = secret
        """Bytes that nobody can guess, as many as asked for."""
        self._last = 0
        self._last_log = 0
        self.renew_lock()
        _every.add(self)

    def new(self, prefix: str) -> str:
        """`new("msg")` -> `msg_` and 32 hexadecimal digits: 48 bits of milliseconds, 80 of chance."""
        fresh = (self._clock() // 1_000 << _RANDOM_BITS) | self._bits(_RANDOM_BITS)
        with self._lock:
            if fresh <= self._last:
                # The chance of a step this wide meeting another process's ids is nil, and the order holds.
                fresh = self._last + 1 + self._bits(32)
            self._last = fresh
        return f"{prefix}_{fresh:032x}"

    def chance(self) -> int:
        """48 bits that tell apart what else is equal."""
        return self._bits(48)

    def log_id(self) -> int:
        """A 63-bit number for a log: milliseconds, then chance that tells processes apart."""
        fresh = (self._clock() // 1_000 << _LOG_BITS) | self._bits(_LOG_BITS)
        with self._lock:
            self._last_log = fresh = max(fresh, self._last_log + 1)
        return fresh

    def renew_lock(self) -> None:
        self._lock = threading.Lock()


_every = forking.reset_in_child(Ids.renew_lock)
forking.in_child(lambda: _random.seed(os.urandom(32)))  # or it would make the same ids as its parent
