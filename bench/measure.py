"""Times functions that run in turn, and computes statistics of the times."""

import gc
import time
from collections.abc import Callable, Sequence

import msgspec

TimedFunction = Callable[[int], object]
"""A function that is called once per round, with the number of the round."""


class Series(msgspec.Struct, frozen=True):
    """The wall time of each call of a function, and the CPU time of all calls together, in seconds."""

    wall: list[float]
    cpu: float


class Statistics(msgspec.Struct, frozen=True):
    """Statistics of a series, in seconds. `cpu` is the mean CPU time of one call."""

    count: int
    mean: float
    """Includes costs that occur only in some calls, which the median hides."""
    p50: float
    p99: float
    max: float
    cpu: float


class Check(msgspec.Struct, frozen=True):
    """A value that is compared with its target."""

    target: str
    value: float
    met: bool


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the report: what was measured, its baseline, and whether it meets its targets."""

    name: str
    measured: Statistics
    baseline_name: str
    baseline: Statistics
    ratio: float
    """Measured time divided by the baseline's. With several threads or clients, the ratio of their rates."""
    checks: list[Check]
    notes: list[str] = []
    extra_values: dict[str, float | list[str]] = {}
    """Further values, by name. They are written to the JSON report only."""

    @property
    def met(self) -> bool:
        return all(check.met for check in self.checks)


def time_interleaved(rounds: int, *functions: TimedFunction, warm_up: int = 0) -> list[Series]:
    """Call the functions in turn, round by round, so that other load on the machine affects all of them equally.

    Every second round runs in reverse order, so that no function always follows the same other one.
    The first `warm_up` rounds are not measured.
    """
    walls: list[list[float]] = [[] for _ in functions]
    cpus = [0.0 for _ in functions]
    freeze_heap()
    for number in range(warm_up + rounds):
        order = range(len(functions)) if number % 2 == 0 else range(len(functions) - 1, -1, -1)
        for index in order:
            function = functions[index]
            cpu, wall = time.thread_time(), time.perf_counter()
            function(number)
            wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
            if number >= warm_up:
                walls[index].append(wall)
                cpus[index] += cpu
    return [Series(wall, cpu) for wall, cpu in zip(walls, cpus, strict=True)]


def freeze_heap() -> None:
    """Exclude existing objects from garbage collection. The collector stays on, as it is for users."""
    gc.collect()
    gc.freeze()


def compute_statistics(series: Series) -> Statistics:
    ordered = sorted(series.wall)
    return Statistics(
        count=len(ordered),
        mean=sum(ordered) / len(ordered),
        p50=quantile(ordered, 0.50),
        p99=quantile(ordered, 0.99),
        max=ordered[-1],
        cpu=series.cpu / len(ordered),
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the value below which `share` of the values lie. `ordered` is in ascending order."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def join_series(several: Sequence[Series]) -> Series:
    return Series([time for series in several for time in series.wall], sum(series.cpu for series in several))


def check_at_most(limit: float, value: float, target: str) -> Check:
    return Check(target, value, value <= limit)


def check_at_least(limit: float, value: float, target: str) -> Check:
    return Check(target, value, value >= limit)
