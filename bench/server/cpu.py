"""The CPU time of this process, and of a PostgreSQL server with all its processes."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from measure import Series

_TICKS = os.sysconf("SC_CLK_TCK")


class CpuSeries(Series, frozen=True):
    """As `Series`, with the CPU time of each call in this process, and of all calls in the server."""

    each: list[float]
    server: float

    @property
    def p50(self) -> float:
        """The median in this process, and the mean in the server, whose clock is too coarse for one call."""
        return sorted(self.each)[len(self.each) // 2] + self.server / len(self.each)


def measure_cpu(function: Callable[[int], object], rounds: int, postmaster: int | None = None) -> CpuSeries:
    """Call a function with the numbers of the rounds. `postmaster` is the first process of a PostgreSQL server."""
    wall: list[float] = []
    each: list[float] = []
    before = server_cpu(postmaster)
    for number in range(rounds):
        cpu, begun = time.process_time(), time.perf_counter()
        function(number)
        wall.append(time.perf_counter() - begun)
        each.append(time.process_time() - cpu)
    server = server_cpu(postmaster) - before
    return CpuSeries(wall, sum(each) + server, each, server)


def server_cpu(postmaster: int | None) -> float:
    """Return the CPU time of a process and of all that it has started, in seconds."""
    if postmaster is None or not Path("/proc/self/stat").exists():
        return 0.0
    ticks = 0
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:  # it has ended
            continue
        is_first = int(folder.name) == postmaster
        if is_first or int(fields[1]) == postmaster:
            ticks += sum(int(field) for field in fields[11 : 15 if is_first else 13])
    return ticks / _TICKS
