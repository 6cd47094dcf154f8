"""Structured logs: what was asked, by whom, with which outcome; never a message's text and never a key."""

import asyncio
import sys
import traceback
from collections.abc import Callable
from typing import Any, get_args

import msgspec

from holdfast.config import LogLevel, Settings
from holdfast.store.moments import from_micros

LEVELS: tuple[LogLevel, ...] = get_args(LogLevel)


class Log:
    """Lines on standard error, JSON or plain, written at once for all that come up while the event loop turns."""

    def __init__(self, settings: Settings, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._least = LEVELS.index(settings.log_level)
        plain = settings.log_format == "console" or (settings.log_format == "auto" and sys.stderr.isatty())
        self._format = _as_text if plain else msgspec.json.Encoder(enc_hook=str).encode
        self._waiting: list[bytes] = []

    def write(self, level: LogLevel, event: str, **told: Any) -> None:
        if LEVELS.index(level) < self._least:
            return
        line = self._format({"at": from_micros(self._clock()), "level": level, "event": event, **told})
        self._waiting.append(line)
        if len(self._waiting) == 1:
            try:
                asyncio.get_running_loop().call_soon(self.flush)
            except RuntimeError:  # no loop turns: before it starts, and after it has stopped
                self.flush()

    def failure(self, event: str, **told: Any) -> None:
        """The error that is being handled, with its story."""
        self.write("error", event, **told, error=traceback.format_exc())

    def flush(self) -> None:
        lines, self._waiting = self._waiting, []
        sys.stderr.buffer.write(b"\n".join([*lines, b""]))
        sys.stderr.buffer.flush()


def _as_text(told: dict[str, Any]) -> bytes:
    at, level, event = told.pop("at"), told.pop("level"), told.pop("event")
    story = told.pop("error", "")
    rest = "  ".join(f"{name}={value}" for name, value in told.items() if value is not None)
    return f"{at:%H:%M:%S} {level:<7} {event}  {rest}{story and chr(10) + story}".encode()
