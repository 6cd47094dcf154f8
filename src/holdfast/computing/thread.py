"""Jobs in a thread of this process. They yield the CPU to its other threads."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from holdfast import forking
from holdfast.computing.job import Embed, I, Job, JobContext, O, YieldCpu

COMPUTE_SECONDS = 0.001
"""How long to compute before yielding the CPU."""
IDLE_YIELD_SECONDS = 0.00005
"""How long to yield while no operation is called."""
BUSY_YIELD_SECONDS = 3 * COMPUTE_SECONDS
"""How long to yield while operations are called: they get three quarters of the time."""


class ThreadRunner:
    """Runs each job in the thread that calls it, one job at a time.

    Two threads would be no faster, and would delay the operations of the process twice as long.
    """

    def __init__(self, operation_count: Callable[[], int] = lambda: 0, *, embeds_locally: bool = True) -> None:
        self._operation_count = operation_count
        self._embeds_locally = embeds_locally
        self._reset_lock()
        _all_runners.add(self)

    def run(self, job: Job[I, O], input: I, embed: Embed) -> O:
        yield_cpu = _make_yield_cpu(self._operation_count)
        lock = self._lock

        def embed_texts(texts: Sequence[str]) -> Any:
            if self._embeds_locally:
                return embed(texts, yield_cpu)
            lock.release()  # another job can run while this one waits for the network
            try:
                return embed(texts, yield_cpu)
            finally:
                lock.acquire()

        with lock:
            return job.run(input, JobContext(embed_texts, yield_cpu))

    def close(self) -> None:
        """Do nothing: a running job ends with its thread."""

    def _reset_lock(self) -> None:
        self._lock = threading.Lock()


_all_runners = forking.reset_in_child(ThreadRunner._reset_lock)  # noqa: SLF001


def _make_yield_cpu(operation_count: Callable[[], int]) -> YieldCpu:
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
