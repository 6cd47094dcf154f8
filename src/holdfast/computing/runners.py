"""Opens the runner that the settings ask for."""

import os
from collections.abc import Callable

from holdfast import lazy
from holdfast.computing.job import JobRunner
from holdfast.computing.thread import ThreadRunner
from holdfast.config import Settings
from holdfast.errors import InvalidArgumentError

CAN_LIMIT = os.name == "posix"
"""Whether a child process can have limits of time and memory."""


def open_runner(settings: Settings, operation_count: Callable[[], int]) -> JobRunner:
    """Open the runner for `settings`. `operation_count` grows while operations are called in this process."""
    if settings.compute != "process":
        return ThreadRunner(operation_count, embeds_locally=settings.embedder == "static")
    if not CAN_LIMIT:
        raise InvalidArgumentError("compute", "process is not possible on this system; use thread")
    runner: JobRunner = lazy.load("holdfast.computing.process").ProcessRunner(settings)
    return runner
