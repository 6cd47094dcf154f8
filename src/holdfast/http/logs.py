"""Structured logs: what was asked, by whom, with which outcome; never a message's text and never a key."""

import logging
import sys
from collections.abc import Callable, MutableMapping
from typing import Any

import msgspec
import structlog

from holdfast.config import Settings
from holdfast.store.moments import from_micros

Log = structlog.typing.FilteringBoundLogger


def open_log(settings: Settings, clock: Callable[[], int]) -> Log:
    """A log on standard error."""
    console = settings.log_format == "console" or (settings.log_format == "auto" and sys.stderr.isatty())

    def stamp(_log: Any, level: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        return {"at": from_micros(clock()), "level": level, **event}

    def as_json(_log: Any, _level: str, event: MutableMapping[str, Any]) -> bytes:
        return msgspec.json.encode(event, enc_hook=str)

    def as_text(log: Any, level: str, event: MutableMapping[str, Any]) -> bytes:
        shown = {**event, "timestamp": event["at"].strftime("%H:%M:%S")}
        del shown["at"]
        return str(structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())(log, level, shown)).encode()

    logger: Log = structlog.wrap_logger(
        structlog.BytesLogger(sys.stderr.buffer),
        processors=[stamp, structlog.processors.format_exc_info, as_text if console else as_json],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, settings.log_level.upper())),
    )
    return logger
