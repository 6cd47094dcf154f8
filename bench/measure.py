"""Timing of operations that are run in turn, and statistics of the times."""

import gc
import time
from collections.abc import Callable, Sequence

import msgspec

Operation = Callable[[int], object]
"""One repetition of a measured operation. Its argument is the number of the round."""


class Series(msgspec.Struct, frozen=True):
    """The wall times of an operation's repetitions, and their total CPU time, in seconds."""

    wall: list[float]
    cpu: float


class Summary(msgspec.Struct, frozen=True):
    """Statistics of a series: times in seconds, `cpu` per repetition."""

    count: int
    mean: float
    """Includes costs that occur only in some repetitions, which the median hides."""
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
    """One line of the report: an operation, its baseline, and whether it meets its targets."""

    work: str
    ours: Summary
    against: str
    baseline: Summary
    ratio: float
    checks: list[Check]
    notes: list[str] = []
    more: dict[str, float | list[str]] = {}

    @property
    def met(self) -> bool:
        return all(check.met for check in self.checks)


def time_interleaved(rounds: int, *operations: Operation, warm_up: int = 0) -> list[Series]:
    """Run the operations in turn, round by round, so that other load on the machine affects all of them equally.

    Every second round runs in reverse order, so that no operation always follows the same other one.
    """
    walls: list[list[float]] = [[] for _ in operations]
    cpus = [0.0 for _ in operations]
    freeze_heap()
    for number in range(warm_up + rounds):
        order = range(len(operations)) if number % 2 == 0 else range(len(operations) - 1, -1, -1)
        for place in order:
            operation = operations[place]
            cpu, wall = time.thread_time(), time.perf_counter()
            operation(number)
            wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
            if number >= warm_up:
                walls[place].append(wall)
                cpus[place] += cpu
    return [Series(wall, cpu) for wall, cpu in zip(walls, cpus, strict=True)]


def freeze_heap() -> None:
    """Exclude existing objects from garbage collection. The collector stays on, as it is for users."""
    gc.collect()
    gc.freeze()


def summarise(series: Series) -> Summary:
    ordered = sorted(series.wall)
    return Summary(
        count=len(ordered),
        mean=sum(ordered) / len(ordered),
        p50=quantile(ordered, 0.50),
        p99=quantile(ordered, 0.99),
        max=ordered[-1],
        cpu=series.cpu / len(ordered),
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """The nearest-rank quantile of values in ascending order."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def join_series(several: Sequence[Series]) -> Series:
    return Series([time for series in several for time in series.wall], sum(series.cpu for series in several))


def check_at_most(limit: float, value: float, target: str) -> Check:
    return Check(target, value, value <= limit)


def check_at_least(limit: float, value: float, target: str) -> Check:
    return Check(target, value, value >= limit)
