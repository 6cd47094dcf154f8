"""Structured logs. They never contain the text of a message or a key."""

import logging
import sys
import traceback
from collections.abc import Callable
from typing import Any, get_args

import msgspec

from holdfast.config import LogLevel, Settings
from holdfast.http.telemetry.log_writer import EXIT_SECONDS, LogWriter
from holdfast.store.timestamps import from_micros

LEVELS: tuple[LogLevel, ...] = get_args(LogLevel)


class Log:
    """Writes lines of JSON or plain text to standard error, without waiting for their reader or for the disk."""

    def __init__(self, settings: Settings, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._levels = frozenset(LEVELS[LEVELS.index(settings.log_level) :])
        plain = settings.log_format == "console" or (settings.log_format == "auto" and _is_terminal())
        self._format = _as_text if plain else msgspec.json.Encoder(enc_hook=str).encode
        self._writer = LogWriter(lambda count: self._line("warning", "log lines dropped", count=count))

    @property
    def dropped_count(self) -> int:
        """The number of lines that were not written, because nobody read them or the disk was full."""
        return self._writer.dropped_count

    def write(self, level: LogLevel, event: str, **fields: Any) -> None:
        if level in self._levels:
            self._writer.put(self._line(level, event, **fields))

    def write_exception(self, event: str, **fields: Any) -> None:
        """Write the exception that is being handled, with its traceback."""
        self.write("error", event, **fields, error=_format_exception(sys.exc_info()[1]))

    def capture_library_logs(self) -> None:
        """Write the warnings and errors of libraries to this log."""
        logging.getLogger().addHandler(_LibraryHandler(self))

    def flush(self) -> None:
        """Wait until the lines are written, for a limited time."""
        self._writer.flush(EXIT_SECONDS)

    def _line(self, level: LogLevel, event: str, **fields: Any) -> bytes:
        return self._format({"at": from_micros(self._clock()), "level": level, "event": event, **fields})


class _LibraryHandler(logging.Handler):
    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        level: LogLevel = "error" if record.levelno >= logging.ERROR else "warning"
        try:
            message = record.getMessage().partition("\n")[0]
            error = _format_exception((record.exc_info or (0, None))[1])
            self._log.write(level, "library", name=record.name, message=message, error=error)
        except Exception:  # noqa: BLE001 - a log never reports its own errors
            return


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()  # it is None if the process was started without it


def _format_exception(error: BaseException | None) -> str:
    """The tracebacks and types of an error and its causes. Their messages are left out: they may quote user data."""
    lines: list[str] = []
    while error is not None:
        lines = [
            *traceback.format_tb(error.__traceback__),
            f"{type(error).__module__}.{type(error).__qualname__}\n",
            *lines,
        ]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "".join(lines)


def _as_text(fields: dict[str, Any]) -> bytes:
    at, level, event = fields.pop("at"), fields.pop("level"), fields.pop("event")
    exception = fields.pop("error", "")
    rest = "  ".join(f"{name}={value}" for name, value in fields.items() if value is not None)
    return f"{at:%H:%M:%S} {level:<7} {event}  {rest}{exception and chr(10) + exception}".encode()
