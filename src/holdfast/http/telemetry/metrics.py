"""Metrics for Prometheus. Labels are operations, never accounts or sessions."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

BUCKET_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
BUCKET_NAMES = [*map(str, BUCKET_BOUNDS), "+Inf"]
TASK_STATUSES = ("pending", "running", "failed")


class Metrics(Collector):
    """Counts requests in plain numbers, and builds the Prometheus metrics when they are read. For one thread."""

    def __init__(
        self,
        count_waiting_writes: Callable[[], int],
        count_streams: Callable[[], int],
        count_dropped_lines: Callable[[], int],
    ) -> None:
        self._count_waiting_writes = count_waiting_writes
        self._count_streams = count_streams
        self._count_dropped_lines = count_dropped_lines
        self._requests: Counter[tuple[str, int]] = Counter()
        self._buckets: dict[str, list[int]] = defaultdict(lambda: [0] * len(BUCKET_NAMES))
        self._seconds: Counter[str] = Counter()
        self._tasks: dict[str, int] = {}
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def record_request(self, operation: str, status: int, seconds: float) -> None:
        self._requests[operation, status] += 1
        self._buckets[operation][bisect_left(BUCKET_BOUNDS, seconds)] += 1
        self._seconds[operation] += seconds  # type: ignore[assignment]  # a Counter accepts floats

    def collect(self) -> Iterator[Metric]:
        requests = CounterMetricFamily("holdfast_requests", "Requests answered.", labels=["operation", "status"])
        for (operation, status), count in self._requests.items():
            requests.add_metric([operation, str(status)], count)
        yield requests
        durations = HistogramMetricFamily(
            "holdfast_request_seconds", "Time from a request to its response.", labels=["operation"]
        )
        for operation, counts in self._buckets.items():
            cumulative = list(accumulate(counts))
            durations.add_metric(
                [operation], list(zip(BUCKET_NAMES, cumulative, strict=True)), self._seconds[operation]
            )
        yield durations
        yield GaugeMetricFamily(
            "holdfast_writes_waiting", "Writes that wait for the writer.", self._count_waiting_writes()
        )
        yield CounterMetricFamily(
            "holdfast_log_lines_dropped", "Lines of the log that could not be written.", self._count_dropped_lines()
        )
        yield GaugeMetricFamily("holdfast_streams", "Open event streams.", self._count_streams())
        tasks = GaugeMetricFamily("holdfast_tasks", "Unfinished background tasks.", labels=["status"])
        for task_status in TASK_STATUSES:
            tasks.add_metric([task_status], self._tasks.get(task_status, 0))
        yield tasks

    def render(self, tasks: dict[str, int]) -> bytes:
        """Return all metrics in the text format. `tasks` counts the background tasks by status."""
        self._tasks = tasks
        return generate_latest(self._registry)
