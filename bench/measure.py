"""Timing works against each other in one run, and what a series of times comes to."""

import gc
import time
from collections.abc import Callable, Sequence

import msgspec

Work = Callable[[int], object]
"""One repetition of what is measured; it gets the number of the round."""


class Series(msgspec.Struct, frozen=True):
    """The wall times of a work, in seconds, and the CPU time of all of them together."""

    wall: list[float]
    cpu: float


class Summary(msgspec.Struct, frozen=True):
    """A series in a few numbers; times in seconds, `cpu` per repetition."""

    count: int
    mean: float
    """What the median hides: work that only every so many repetitions do."""
    p50: float
    p99: float
    most: float
    cpu: float


class Check(msgspec.Struct, frozen=True):
    """A value that must not pass its limit, in words that fit the table."""

    target: str
    value: float
    met: bool


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the report: a work, what it is measured against, and whether it reaches what it must."""

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


def interleaved(rounds: int, *works: Work, warm_up: int = 0) -> list[Series]:
    """Run the works in turn, round by round, so that whatever else the machine does meets all of them alike.

    Every second round runs backwards: a work that always followed the same other one would inherit its wake.
    """
    walls: list[list[float]] = [[] for _ in works]
    cpus = [0.0 for _ in works]
    settle()
    for number in range(warm_up + rounds):
        order = range(len(works)) if number % 2 == 0 else range(len(works) - 1, -1, -1)
        for place in order:
            work = works[place]
            cpu, wall = time.thread_time(), time.perf_counter()
            work(number)
            wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
            if number >= warm_up:
                walls[place].append(wall)
                cpus[place] += cpu
    return [Series(wall, cpu) for wall, cpu in zip(walls, cpus, strict=True)]


def settle() -> None:
    """Keep the collector on, as it is for users, but out of what was prepared for the measurement."""
    gc.collect()
    gc.freeze()


def summary(series: Series) -> Summary:
    ordered = sorted(series.wall)
    return Summary(
        count=len(ordered),
        mean=sum(ordered) / len(ordered),
        p50=quantile(ordered, 0.50),
        p99=quantile(ordered, 0.99),
        most=ordered[-1],
        cpu=series.cpu / len(ordered),
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """The nearest-rank quantile of values in ascending order."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def joined(several: Sequence[Series]) -> Series:
    return Series([time for series in several for time in series.wall], sum(series.cpu for series in several))


def at_most(limit: float, value: float, target: str) -> Check:
    return Check(target, value, value <= limit)


def at_least(limit: float, value: float, target: str) -> Check:
    return Check(target, value, value >= limit)
