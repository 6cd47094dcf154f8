"""How much a caller may ask for: bytes at once, requests per second, open streams."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.types import Receive

from holdfast.config import Settings
from holdfast.errors import ResourceExhaustedError, TooLargeError
from holdfast.http.auth import Headers
from holdfast.model.identity import Principal

MAX_BUCKETS = 10_000


class Disconnected(Exception):  # noqa: N818 - not an error: they went away
    """Nobody waits for the answer any more."""


async def read_body(receive: Receive, headers: Headers, most: int) -> bytes:
    """The whole body, or an error as soon as it is clear that it is too large."""
    announced = headers.get(b"content-length")
    if announced is None and b"transfer-encoding" not in headers:
        return b""
    if announced is not None and announced.isdigit() and int(announced) > most:
        raise _too_large(most)
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > most:
            raise _too_large(most)
        if not message.get("more_body", False):
            return b"".join([*chunks, chunk]) if chunks else chunk
        chunks.append(chunk)


def _too_large(most: int) -> TooLargeError:
    return TooLargeError(f"the body is larger than {most} bytes; send less at once", limit=most)


class RateLimit:
    """A bucket for each caller that fills at `per_second` and holds `burst`; without a rate, no limit."""

    def __init__(self, settings: Settings) -> None:
        self._per_second = settings.rate_limit_per_second
        self._burst = float(settings.rate_limit_burst or max(1, settings.rate_limit_per_second))
        self._buckets: dict[tuple[str, str], tuple[float, float]] = {}

    def spend(self, principal: Principal) -> None:
        if not self._per_second:
            return
        now = time.monotonic()
        caller = (principal.account_id, principal.user_id)
        left, since = self._buckets.get(caller, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._per_second)
        if left < 1:
            raise ResourceExhaustedError(
                f"more than {self._per_second} requests per second; slow down",
                retry_after=round((1 - left) / self._per_second, 3),
                limit=self._per_second,
            )
        if len(self._buckets) >= MAX_BUCKETS:
            del self._buckets[next(iter(self._buckets))]
        self._buckets[caller] = (left - 1, now)


class StreamLimit:
    """Streams stay open, so they are counted: in all, and of each caller."""

    def __init__(self, settings: Settings) -> None:
        self._most = settings.max_streams
        self._most_each = settings.max_streams_per_user
        self._open: dict[tuple[str, str], int] = {}

    @property
    def count(self) -> int:
        return sum(self._open.values())

    @contextmanager
    def one_more(self, principal: Principal) -> Iterator[None]:
        caller = (principal.account_id, principal.user_id)
        mine = self._open.get(caller, 0)
        if mine >= self._most_each or self.count >= self._most:
            most = self._most_each if mine >= self._most_each else self._most
            raise ResourceExhaustedError(
                f"{most} streams are open already; close one first", retry_after=1.0, limit=most
            )
        self._open[caller] = mine + 1
        try:
            yield
        finally:
            self._open[caller] -= 1
            if not self._open[caller]:
                del self._open[caller]
