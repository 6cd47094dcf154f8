"""Counts and times for Prometheus. They name operations, never accounts or sessions."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    def __init__(self, waiting: Callable[[], int], streams: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "holdfast_requests", "Requests answered.", ["operation", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "holdfast_request_seconds",
            "Time from a request to its answer.",
            ["operation"],
            registry=self._registry,
            buckets=SECONDS,
        )
        for name, text, value in (
            ("holdfast_writes_waiting", "Writes that wait for others.", waiting),
            ("holdfast_streams", "Open event streams.", streams),
        ):
            Gauge(name, text, registry=self._registry).set_function(value)
        self._answered: dict[tuple[str, int], Callable[[], None]] = {}
        self._took: dict[str, Callable[[float], None]] = {}

    def answered(self, operation: str, status: int, seconds: float) -> None:
        count = self._answered.get((operation, status))
        if count is None:
            count = self._answered[operation, status] = self._requests.labels(operation, str(status)).inc
        took = self._took.get(operation)
        if took is None:
            took = self._took[operation] = self._seconds.labels(operation).observe
        count()
        took(seconds)

    def text(self) -> bytes:
        return generate_latest(self._registry)
