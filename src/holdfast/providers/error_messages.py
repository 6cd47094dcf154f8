"""What may be said of a model's failure: codes and our own words. Its own words may repeat a prompt or a key."""

import logging
import os
import re
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

IDENTIFIER = re.compile(r"[A-Za-z0-9_.-]{1,64}")
MEDIA_TYPE = re.compile(r"[A-Za-z0-9.+-]{1,40}/[A-Za-z0-9.+-]{1,40}")
MAX_TEXT = 300
MAX_CAUSES = 10
LOGGERS = ("httpx2", "httpcore2.connection", "httpcore2.http11", "httpcore2.http2", "httpcore2.proxy")

_asking = threading.local()


def error_code(content: bytes, secret: bytes) -> str | None:
    """The provider's own code for a failure, such as `context_length_exceeded`, if it is a short identifier.

    One that occurs in `secret`, which is what was sent, may be a word of it, and is not shown.
    """
    error = _error_in(content)
    if not isinstance(error, dict):
        return None
    return next(
        (code for code in (error.get("code"), error.get("type")) if _is_showable(code, IDENTIFIER, secret)), None
    )


def error_text(content: bytes) -> str:
    """What the provider says of a failure, in short: to look at, never to show."""
    error = _error_in(content)
    text = str(error.get("message") or error) if isinstance(error, dict) else str(error)
    return text[:MAX_TEXT]


def described(headers: Mapping[str, str], content: bytes, secret: bytes) -> str:
    """An answer that was not understood: its type and its size."""
    named = headers.get("content-type", "").partition(";")[0].strip()
    kind = named if _is_showable(named, MEDIA_TYPE, secret) else "something"
    return f"{kind} of {len(content)} bytes"


def transport_reason(error: BaseException) -> str:
    """Why there is no connection, by the codes of what led to it; texts may have a URL or what a server sent."""
    cause: BaseException | None = error
    for _ in range(MAX_CAUSES):
        if cause is None:
            break
        if isinstance(cause, ssl.SSLError) and IDENTIFIER.fullmatch(cause.reason or ""):
            return f"TLS: {cause.reason}"
        if isinstance(cause, socket.gaierror):
            return "the name of its host is not known"
        if isinstance(cause, OSError) and cause.errno:
            return os.strerror(cause.errno)
        cause = cause.__cause__ or cause.__context__
    return type(error).__name__


@contextmanager
def unlogged() -> Iterator[None]:
    """Keep the HTTP library from logging what this thread asks: it logs URLs, and what a server adds to its status."""
    _asking.now = True
    try:
        yield
    finally:
        _asking.now = False


def _error_in(content: bytes) -> Any:
    try:
        found = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return content[: MAX_TEXT * 4].decode(errors="replace")
    return found.get("error", found) if isinstance(found, dict) else found


def _is_showable(value: Any, pattern: re.Pattern[str], secret: bytes) -> bool:
    return isinstance(value, str) and bool(pattern.fullmatch(value)) and value.lower().encode() not in secret.lower()


def _is_not_ours(_record: logging.LogRecord) -> bool:
    return not getattr(_asking, "now", False)


for _name in LOGGERS:
    logging.getLogger(_name).addFilter(_is_not_ours)
