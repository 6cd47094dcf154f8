"""Opens the computer that the settings ask for."""

from collections.abc import Callable

from holdfast.computing.job import Computer
from holdfast.computing.thread import ThreadComputer
from holdfast.config import Settings


def open_computer(settings: Settings, operation_count: Callable[[], int]) -> Computer:
    """Open the computer for `settings`. `operation_count` grows while operations are called in this process."""
    return ThreadComputer(operation_count, embeds_locally=settings.embedder == "static")
