"""Waiting for background work after a transaction, within the time of a request."""

import math
import time
from collections.abc import Callable, Generator

from holdfast.engine.gate.operation_handler import EngineResources
from holdfast.errors import DeadlineExceededError

MAX_WAIT_SHARE = 0.8
"""The share of the request timeout that an operation may spend waiting."""
FIRST_POLL_SECONDS, MAX_POLL_SECONDS = 0.02, 0.5


def poll(
    resources: EngineResources, is_done: Callable[[], bool], timeout: float | None, what: str
) -> Generator[float, None, None]:
    """Yield the seconds until the next look, until `is_done` returns True. `what` begins the error of a timeout."""
    seconds = min(timeout or math.inf, resources.settings.request_timeout_seconds * MAX_WAIT_SHARE)
    deadline, poll_seconds = time.monotonic() + seconds, FIRST_POLL_SECONDS
    while not is_done():
        if time.monotonic() > deadline or resources.is_stopping():
            raise DeadlineExceededError(f"{what} is not done after {seconds:g} s; it continues in the background")
        yield poll_seconds
        poll_seconds = min(poll_seconds * 1.5, MAX_POLL_SECONDS)
