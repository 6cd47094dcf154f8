"""Measures how the CPU time of a function grows with the size of its input."""

import gc
import math
import time
from collections.abc import Callable

MAX_EXCESS = 2.0
"""How much more than n log n the CPU time may grow from n to 4n. A quadratic function grows 4 times more than n."""
ATTEMPTS = 5


def growth_problem(
    prepare: Callable[[int], Callable[[], object]],
    size: int,
    *,
    floor_seconds: float,
    clock: Callable[[], float] = time.thread_time,
) -> str | None:
    """Say what is wrong if the CPU time at `size`, 2 and 4 times that grows faster than n log n.

    `prepare` returns the function to measure for a size. Each time is the best of five. Times below `floor_seconds`
    are not compared: they are noise.
    """
    largest = best_time(prepare(4 * size), clock, enough=floor_seconds)
    if largest <= floor_seconds:
        return None
    times = [best_time(prepare(size), clock), best_time(prepare(2 * size), clock), largest]
    allowed = 4 * math.log(4 * size) / math.log(size) * MAX_EXCESS
    if largest <= allowed * max(times[0], floor_seconds / allowed):
        return None
    taken = ", ".join(f"{1_000 * seconds:.1f} ms" for seconds in times)
    return f"{taken} for {size}, {2 * size} and {4 * size}: worse than n log n"


def best_time(function: Callable[[], object], clock: Callable[[], float], enough: float = 0.0) -> float:
    """Return the best CPU time of five calls, or of fewer as soon as one takes at most `enough`.

    No garbage is collected meanwhile: that takes longer the more objects the process has from before.
    """
    best = math.inf
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        for _ in range(ATTEMPTS):
            started_at = clock()
            function()
            best = min(best, clock() - started_at)
            if best <= enough:
                break
    finally:
        if was_enabled:
            gc.enable()
    return best
