"""Many requests of one user at once, and how long the requests of others take meanwhile."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import httpx2

RETRY_SECONDS = 0.05


@contextmanager
def crowd(url: str, request: Callable[[httpx2.Client], object], *, user: str, size: int = 16) -> Iterator[None]:
    """Let `size` clients of a user repeat a request for as long as the block runs."""
    is_over = threading.Event()

    def repeat() -> None:
        with httpx2.Client(base_url=url, timeout=60, headers={"X-OpenViking-User": user}) as http:
            while not is_over.wait(RETRY_SECONDS):
                with suppress(httpx2.TransportError):
                    request(http)

    threads = [threading.Thread(target=repeat, daemon=True) for _ in range(size)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join(60)


def response_seconds(request: Callable[[], httpx2.Response], count: int) -> list[float]:
    """The durations of `count` requests, one after the other, in ascending order. All must succeed."""
    seconds = []
    for _ in range(count):
        started_at = time.perf_counter()
        response = request()
        seconds.append(time.perf_counter() - started_at)
        assert response.status_code == 200, response.text
    return sorted(seconds)


def percentile(ascending: list[float], percent: float) -> float:
    return ascending[min(len(ascending) - 1, int(len(ascending) * percent / 100))]
