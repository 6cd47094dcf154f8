"""Background computations yield the CPU to the other threads of their process."""

import time
from collections.abc import Callable

COMPUTE_SECONDS = 0.001
"""How long to compute before yielding the CPU."""
IDLE_YIELD_SECONDS = 0.00005
"""How long to yield while no operation is called."""
BUSY_YIELD_SECONDS = 3 * COMPUTE_SECONDS
"""How long to yield while operations are called: they get three quarters of the time."""


def make_yield_cpu(operation_count: Callable[[], int]) -> Callable[[], None]:
    """Return a function that a long computation calls often, so that other threads of the process get the CPU.

    A computing thread delays other threads by milliseconds at each of their many short waits. It yields for longer
    while `operation_count` grows, that is, while operations are called in this process.
    """
    last_count = operation_count()
    computing_since = time.monotonic()

    def yield_cpu() -> None:
        nonlocal last_count, computing_since
        if time.monotonic() - computing_since < COMPUTE_SECONDS:
            return
        previous_count, last_count = last_count, operation_count()
        time.sleep(IDLE_YIELD_SECONDS if last_count == previous_count else BUSY_YIELD_SECONDS)
        computing_since = time.monotonic()

    return yield_cpu
