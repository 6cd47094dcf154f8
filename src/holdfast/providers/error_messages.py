"""Error messages about a provider's failures, without the provider's own text, which may quote a prompt or a key."""

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
MAX_TEXT_CHARS = 300
MAX_CAUSES = 10
LOGGERS = ("httpx2", "httpcore2.connection", "httpcore2.http11", "httpcore2.http2", "httpcore2.proxy")

_thread = threading.local()


def error_code(content: bytes, confidential: bytes) -> str | None:
    """The provider's own error code, such as `context_length_exceeded`, if it is a short identifier.

    A code that occurs in `confidential`, the key and the request, is not returned: it may be a quotation.
    """
    error = _parse_error(content)
    if not isinstance(error, dict):
        return None
    candidates = (error.get("code"), error.get("type"))
    return next((code for code in candidates if _can_be_shown(code, IDENTIFIER, confidential)), None)


def error_text(content: bytes) -> str:
    """The provider's own error message, truncated. It may be searched but must never be shown."""
    error = _parse_error(content)
    text = str(error.get("message") or error) if isinstance(error, dict) else str(error)
    return text[:MAX_TEXT_CHARS]


def describe_content(headers: Mapping[str, str], content: bytes, confidential: bytes) -> str:
    """The media type and the size of a response that cannot be decoded."""
    media_type = headers.get("content-type", "").partition(";")[0].strip()
    if not _can_be_shown(media_type, MEDIA_TYPE, confidential):
        media_type = "something"
    return f"{media_type} of {len(content)} bytes"


def transport_reason(error: BaseException) -> str:
    """Why a connection failed, from the error codes of its causes. Their texts may contain a URL or server data."""
    cause: BaseException | None = error
    for _ in range(MAX_CAUSES):
        if cause is None:
            break
        if isinstance(cause, ssl.SSLError) and IDENTIFIER.fullmatch(cause.reason or ""):
            return f"TLS: {cause.reason}"
        if isinstance(cause, socket.gaierror):
            return "the host name cannot be resolved"
        if isinstance(cause, OSError) and cause.errno:
            return os.strerror(cause.errno)
        cause = cause.__cause__ or cause.__context__
    return type(error).__name__


@contextmanager
def http_logging_disabled() -> Iterator[None]:
    """Drop the log records of the HTTP library in this thread. They contain URLs and text from the server."""
    _thread.logging_disabled = True
    try:
        yield
    finally:
        _thread.logging_disabled = False


def _parse_error(content: bytes) -> Any:
    """The `error` object of a JSON response, or the start of any other content as text."""
    try:
        decoded = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return content[: MAX_TEXT_CHARS * 4].decode(errors="replace")
    return decoded.get("error", decoded) if isinstance(decoded, dict) else decoded


def _can_be_shown(value: Any, pattern: re.Pattern[str], confidential: bytes) -> bool:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        return False
    return value.lower().encode() not in confidential.lower()


def _is_logging_enabled(_record: logging.LogRecord) -> bool:
    return not getattr(_thread, "logging_disabled", False)


for _name in LOGGERS:
    logging.getLogger(_name).addFilter(_is_logging_enabled)
