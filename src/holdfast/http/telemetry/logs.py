"""Structured logs: what was asked, by whom, with which outcome; never a message's text and never a key."""

import asyncio
import logging
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, get_args

import msgspec

from holdfast.config import LogLevel, Settings
from holdfast.store.timestamps import from_micros

LEVELS: tuple[LogLevel, ...] = get_args(LogLevel)


class Log:
    """Lines on standard error, JSON or plain, written at once for all that come up while the event loop turns."""

    def __init__(self, settings: Settings, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._levels = frozenset(LEVELS[LEVELS.index(settings.log_level) :])
        plain = settings.log_format == "console" or (settings.log_format == "auto" and sys.stderr.isatty())
        self._format = _as_text if plain else msgspec.json.Encoder(enc_hook=str).encode
        self._waiting: list[bytes] = []
        self._lock = threading.Lock()

    def write(self, level: LogLevel, event: str, **told: Any) -> None:
        if level not in self._levels:
            return
        line = self._format({"at": from_micros(self._clock()), "level": level, "event": event, **told})
        with self._lock:
            self._waiting.append(line)
            first = len(self._waiting) == 1
        if first:
            try:
                asyncio.get_running_loop().call_soon(self.flush)
            except RuntimeError:  # no loop turns: before it starts, and after it has stopped
                self.flush()

    def failure(self, event: str, **told: Any) -> None:
        """The error that is being handled, with its story."""
        self.write("error", event, **told, error=_story(sys.exc_info()[1]))

    def take_over(self) -> None:
        """Let what libraries have to say come in the same form."""
        logging.getLogger().addHandler(_FromLibraries(self))

    def flush(self) -> None:
        with self._lock:
            lines, self._waiting = self._waiting, []
        sys.stderr.buffer.write(b"\n".join([*lines, b""]))
        sys.stderr.buffer.flush()


class _FromLibraries(logging.Handler):
    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        level: LogLevel = "error" if record.levelno >= logging.ERROR else "warning"
        said = record.getMessage().partition("\n")[0]
        self._log.write(level, "library", name=record.name, said=said, error=_story((record.exc_info or (0, None))[1]))


def _story(error: BaseException | None) -> str:
    """Where it happened and what kinds of errors led to it. Their words may quote what a caller sent."""
    told: list[str] = []
    while error is not None:
        told = [
            *traceback.format_tb(error.__traceback__),
            f"{type(error).__module__}.{type(error).__qualname__}\n",
            *told,
        ]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "".join(told)


def _as_text(told: dict[str, Any]) -> bytes:
    at, level, event = told.pop("at"), told.pop("level"), told.pop("event")
    story = told.pop("error", "")
    rest = "  ".join(f"{name}={value}" for name, value in told.items() if value is not None)
    return f"{at:%H:%M:%S} {level:<7} {event}  {rest}{story and chr(10) + story}".encode()
