"""The clock and the ids. All stored times and ids come from here, so that a test can fix them."""

import os
import random
import threading
import time
from collections.abc import Callable

from holdfast import forking

Clock = Callable[[], int]
"""Returns microseconds since 1970, UTC."""

_RANDOM_BITS = 80
_LOG_RANDOM_BITS = 21

# Ids must be unique, not secret: a system call for each would be wasted.
_random = random.Random(os.urandom(32))  # noqa: S311


def system_clock() -> int:
    return time.time_ns() // 1_000


class Ids:
    """A source of ids that sort by creation time, also within one millisecond of one process."""

    def __init__(
        self,
        clock: Clock,
        random_bits: Callable[[int], int] = _random.getrandbits,
        secret_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._clock = clock
        self._random_bits = random_bits
        self.secret_bytes = secret_bytes
        """Returns the given number of bytes that cannot be guessed."""
        self._last = 0
        self._last_log = 0
        self.reset_lock()
        _all_ids.add(self)

    def new(self, prefix: str) -> str:
        """`new("msg")` -> `msg_` and 32 hexadecimal digits: 48 bits of milliseconds, 80 random bits."""
        fresh = (self._clock() // 1_000 << _RANDOM_BITS) | self._random_bits(_RANDOM_BITS)
        with self._lock:
            if fresh <= self._last:
                # The id must follow the last one. A random step makes a collision with another process improbable.
                fresh = self._last + 1 + self._random_bits(32)
            self._last = fresh
        return f"{prefix}_{fresh:032x}"

    def random_48_bits(self) -> int:
        return self._random_bits(48)

    def log_id(self) -> int:
        """A 63-bit id of a log: milliseconds, then random bits that differ between processes."""
        fresh = (self._clock() // 1_000 << _LOG_RANDOM_BITS) | self._random_bits(_LOG_RANDOM_BITS)
        with self._lock:
            self._last_log = fresh = max(fresh, self._last_log + 1)
        return fresh

    def reset_lock(self) -> None:
        self._lock = threading.Lock()


_all_ids = forking.reset_in_child(Ids.reset_lock)
forking.in_child(lambda: _random.seed(os.urandom(32)))  # else the child would produce the same ids as its parent
