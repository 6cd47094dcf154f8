"""Limits on the size of a body, the rate of requests and the number of open streams."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.types import Receive

from holdfast.config import Settings
from holdfast.errors import ResourceExhaustedError, TooLargeError
from holdfast.http.auth import Headers
from holdfast.http.fair_threads import User
from holdfast.http.memory.bodies import BodyBuffer
from holdfast.http.memory.budget import UNRESERVED_BYTES
from holdfast.model.identity import Principal

MAX_BUCKETS = 10_000


class Disconnected(Exception):  # noqa: N818 - not an error of the server
    """The client closed the connection before it had sent the whole body."""


async def read_body(receive: Receive, headers: Headers, max_bytes: int, buffer: BodyBuffer) -> bytes | bytearray:
    """Read the whole body. Raises an error as soon as it is known to be too large."""
    length = headers.get(b"content-length")
    if length is None and b"transfer-encoding" not in headers:
        return b""
    if length is not None and length.isdigit() and int(length) > max_bytes:
        raise _too_large(max_bytes)
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        chunk: bytes = message.get("body", b"")
        if len(body) + len(chunk) > max_bytes:
            raise _too_large(max_bytes)
        if not body and not message.get("more_body", False):
            return chunk
        body += chunk
        if not message.get("more_body", False):
            return body
        if len(body) > UNRESERVED_BYTES:
            await buffer.hold(len(body))


def _too_large(max_bytes: int) -> TooLargeError:
    return TooLargeError(f"the body is larger than {max_bytes} bytes; send less at once", limit=max_bytes)


class RateLimit:
    """A token bucket per user: it refills at `per_second` and holds up to `burst`. A rate of 0 means no limit."""

    def __init__(self, settings: Settings) -> None:
        self._per_second = settings.rate_limit_per_second
        self._burst = float(settings.rate_limit_burst or max(1, settings.rate_limit_per_second))
        self._buckets: dict[User, tuple[float, float]] = {}

    def consume(self, principal: Principal) -> None:
        """Take one token. Raises an error if the user's bucket is empty."""
        if not self._per_second:
            return
        now = time.monotonic()
        user = (principal.account_id, principal.user_id)
        tokens, updated_at = self._buckets.get(user, (self._burst, now))
        tokens = min(self._burst, tokens + (now - updated_at) * self._per_second)
        if tokens < 1:
            raise ResourceExhaustedError(
                f"more than {self._per_second} requests per second; slow down",
                retry_after=round((1 - tokens) / self._per_second, 3),
                limit=self._per_second,
            )
        if len(self._buckets) >= MAX_BUCKETS:
            del self._buckets[next(iter(self._buckets))]
        self._buckets[user] = (tokens - 1, now)


class StreamLimit:
    """Limits the number of open streams, in total and per user."""

    def __init__(self, settings: Settings) -> None:
        self._max_total = settings.max_streams
        self._max_per_user = settings.max_streams_per_user
        self._open: dict[User, int] = {}

    @property
    def count(self) -> int:
        return sum(self._open.values())

    @contextmanager
    def reserve(self, principal: Principal) -> Iterator[None]:
        """Count one stream as open while the block runs. Raises an error if a limit is reached."""
        user = (principal.account_id, principal.user_id)
        open_by_user = self._open.get(user, 0)
        if open_by_user >= self._max_per_user or self.count >= self._max_total:
            limit = self._max_per_user if open_by_user >= self._max_per_user else self._max_total
            raise ResourceExhaustedError(
                f"{limit} streams are already open; close one first", retry_after=1.0, limit=limit
            )
        self._open[user] = open_by_user + 1
        try:
            yield
        finally:
            self._open[user] -= 1
            if not self._open[user]:
                del self._open[user]
