"""Waiting for background work, before or after a transaction, within the time of a request."""

import math
import time
from collections.abc import Callable, Generator
from typing import Any

from holdfast.engine.gate.operation_handler import EngineResources
from holdfast.errors import DeadlineExceededError
from holdfast.store.tables import tasks
from holdfast.store.tables.tasks import StoredTask

MAX_WAIT_SHARE = 0.8
"""The share of the request timeout that an operation may spend waiting."""
FIRST_POLL_SECONDS, MAX_POLL_SECONDS = 0.02, 0.5


def poll(
    resources: EngineResources,
    is_done: Callable[[], bool],
    timeout: float | None,
    timeout_error: Callable[[float], DeadlineExceededError],
) -> Generator[float, None, None]:
    """Yield the seconds until the next check, until `is_done` returns True.

    `timeout_error` returns the error to raise after so many seconds; `not_done` makes the usual one.
    """
    seconds = min(timeout or math.inf, resources.settings.request_timeout_seconds * MAX_WAIT_SHARE)
    deadline, poll_seconds = time.monotonic() + seconds, FIRST_POLL_SECONDS
    while not is_done():
        if time.monotonic() > deadline or resources.is_stopping():
            raise timeout_error(seconds)
        yield poll_seconds
        poll_seconds = min(poll_seconds * 1.5, MAX_POLL_SECONDS)


def poll_task(
    resources: EngineResources,
    account_id: str,
    task_id: str,
    timeout: float | None,
    timeout_error: Callable[[float], DeadlineExceededError],
) -> Generator[float, None, StoredTask | None]:
    """Wait as `poll` does until a task has ended, and return it; None if there is no such task any more."""
    task: StoredTask | None = None

    def has_ended() -> bool:
        nonlocal task
        task = resources.db.read(account_id, lambda tx: tasks.find(tx, task_id))
        return task is None or task.status not in {"pending", "running"}

    yield from poll(resources, has_ended, timeout, timeout_error)
    return task


def not_done(what: str, **details: Any) -> Callable[[float], DeadlineExceededError]:
    """Return a function that makes the error of work that takes too long. `what` begins its message."""
    return lambda seconds: DeadlineExceededError(
        f"{what} is not done after {seconds:g} s; it continues in the background", **details
    )
