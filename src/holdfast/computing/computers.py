"""Opens the computer that the settings ask for."""

import os
from collections.abc import Callable

from holdfast import lazy
from holdfast.computing.job import Computer
from holdfast.computing.thread import ThreadComputer
from holdfast.config import Settings
from holdfast.errors import InvalidArgumentError

CAN_LIMIT = os.name == "posix"
"""Whether a child process can have limits of time and memory."""


def open_computer(settings: Settings, operation_count: Callable[[], int]) -> Computer:
    """Open the computer for `settings`. `operation_count` grows while operations are called in this process."""
    if settings.compute != "process":
        return ThreadComputer(operation_count, embeds_locally=settings.embedder == "static")
    if not CAN_LIMIT:
        raise InvalidArgumentError("compute", "process is not possible on this system; use thread")
    computer: Computer = lazy.load("holdfast.computing.process").ProcessComputer(settings)
    return computer
