"""Counts and times for Prometheus. They name operations, never accounts or sessions."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
UNFINISHED = ("pending", "running", "failed")
NAMES = [*map(str, BOUNDS), "+Inf"]


class Metrics(Collector):
    """Plain numbers while requests pass; what Prometheus wants to see is made when it asks. Of one thread."""

    def __init__(self, waiting: Callable[[], int], streams: Callable[[], int]) -> None:
        self._waiting = waiting
        self._streams = streams
        self._answered: Counter[tuple[str, int]] = Counter()
        self._buckets: dict[str, list[int]] = defaultdict(lambda: [0] * len(NAMES))
        self._seconds: Counter[str] = Counter()
        self._tasks: dict[str, int] = {}
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def answered(self, operation: str, status: int, seconds: float) -> None:
        self._answered[operation, status] += 1
        self._buckets[operation][bisect_left(BOUNDS, seconds)] += 1
        self._seconds[operation] += seconds  # type: ignore[assignment]  # a Counter counts in floats as well

    def collect(self) -> Iterator[Metric]:
        answered = CounterMetricFamily("holdfast_requests", "Requests answered.", labels=["operation", "status"])
        for (operation, status), count in self._answered.items():
            answered.add_metric([operation, str(status)], count)
        yield answered
        took = HistogramMetricFamily(
            "holdfast_request_seconds", "Time from a request to its answer.", labels=["operation"]
        )
        for operation, counts in self._buckets.items():
            through = [sum(counts[: place + 1]) for place in range(len(counts))]
            took.add_metric([operation], list(zip(NAMES, through, strict=True)), self._seconds[operation])
        yield took
        yield GaugeMetricFamily("holdfast_writes_waiting", "Writes that wait for others.", self._waiting())
        yield GaugeMetricFamily("holdfast_streams", "Open event streams.", self._streams())
        tasks = GaugeMetricFamily("holdfast_tasks", "Background tasks that are not done.", labels=["status"])
        for state in UNFINISHED:
            tasks.add_metric([state], self._tasks.get(state, 0))
        yield tasks

    def text(self, tasks: dict[str, int]) -> bytes:
        self._tasks = tasks
        return generate_latest(self._registry)
