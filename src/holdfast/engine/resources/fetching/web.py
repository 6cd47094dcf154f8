"""Fetching a page: the connection goes to an address that was checked, and everything is limited."""

import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, NamedTuple
from urllib.parse import urljoin, urlsplit, urlunsplit

from holdfast import lazy
from holdfast.config import Settings
from holdfast.engine.resources import naming
from holdfast.engine.resources.fetching.addresses import Destination, parse_url, resolve
from holdfast.engine.resources.fetching.deadlines import connection_ended_after
from holdfast.errors import (
    FailedPreconditionError,
    HoldfastError,
    InvalidArgumentError,
    TooLargeError,
    UnavailableError,
)
from holdfast.providers import error_messages
from holdfast.providers.http_service import without_secrets

MAX_REDIRECTS = 5
CONNECT_SECONDS = 10.0
REDIRECTS = frozenset({301, 302, 303, 307, 308})
OK = 200
TEMPORARY = frozenset({408, 425, 429, 502, 503, 504})
USER_AGENT = "Holdfast"
_EXTENSIONS = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "text/markdown": ".md",
    "text/plain": ".txt",
    "text/csv": ".csv",
    "application/json": ".json",
    "application/pdf": ".pdf",
    "application/zip": ".zip",
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
}
_KNOWN = re.compile(r"\.[A-Za-z0-9]{1,8}")
_UNREADABLE_TYPES = ("audio/", "video/", "font/", "multipart/")


class Page(NamedTuple):
    """What a URL led to."""

    name: str
    size: int
    file: IO[bytes]


@contextmanager
def fetched(url: str, settings: Settings) -> Iterator[Page]:
    """Fetch a URL into a temporary file, which exists until the context ends."""
    deadline = time.monotonic() + settings.fetch_seconds
    with tempfile.TemporaryFile() as file, error_messages.http_logging_disabled():
        location = url
        for _ in range(MAX_REDIRECTS + 1):
            redirect, name = _fetch(location, settings, deadline, file)
            if redirect is None:
                yield Page(name, file.tell(), file)
                return
            location = urljoin(location, redirect)
            parse_url(location)
    raise FailedPreconditionError(f"{_shown(url)} redirects more than {MAX_REDIRECTS} times; use the last URL")


def _shown(url: str) -> str:
    return without_secrets(url)[:200]


def _fetch(url: str, settings: Settings, deadline: float, file: IO[bytes]) -> tuple[str | None, str]:
    """Send one request. Return where it redirects to; or None, with a name for the content, which is in the file."""
    httpx = lazy.httpx2
    destination = resolve(url, settings)
    left = deadline - time.monotonic()
    if left <= 0:
        raise _too_slow(url, settings)
    timeout = httpx.Timeout(left, connect=min(CONNECT_SECONDS, left))
    try:
        with (
            connection_ended_after(left) as trace,
            httpx.Client(timeout=timeout, follow_redirects=False, trust_env=False) as client,
            client.stream(
                "GET",
                _to_address(url, destination),
                headers=_headers(url),
                extensions={**_extensions(destination), "trace": trace},
            ) as response,
        ):
            status = response.status_code
            if status in REDIRECTS and response.headers.get("location"):
                return response.headers["location"], ""
            if status != OK:
                raise _status_error(url, status)
            media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if media_type.startswith(_UNREADABLE_TYPES):
                raise FailedPreconditionError(f"{_shown(url)} is of the type {media_type}, which cannot be read")
            _copy(response, url, settings, deadline, file)
            return None, _name_of(url, media_type)
    except httpx.TimeoutException:
        raise _too_slow(url, settings) from None
    except httpx.InvalidURL:
        raise InvalidArgumentError("path", f"{_shown(url)} is not a valid URL, or leads to one that is not") from None
    except (httpx.TransportError, httpx.DecodingError) as error:
        if time.monotonic() >= deadline:
            raise _too_slow(url, settings) from None
        reason = error_messages.transport_reason(error)
        raise UnavailableError(
            f"{_shown(url)} cannot be fetched: {reason}", service="fetching", reason=type(error).__name__
        ) from None


def _to_address(url: str, destination: Destination) -> str:
    """Return the URL with the checked address in place of the host: no second lookup can lead elsewhere."""
    parts = urlsplit(url)
    address = f"[{destination.address}]" if ":" in destination.address else destination.address
    netloc = f"{address}:{destination.port}"
    return urlunsplit((destination.scheme, netloc, parts.path or "/", parts.query, ""))


def _headers(url: str) -> dict[str, str]:
    host = urlsplit(url).netloc.rpartition("@")[2]
    return {"Host": host, "User-Agent": USER_AGENT, "Accept": "*/*", "Accept-Encoding": "gzip, deflate"}


def _extensions(destination: Destination) -> dict[str, Any]:
    """Let TLS check the certificate of the host, not of its address."""
    return {"sni_hostname": destination.host} if destination.scheme == "https" else {}


def _copy(response: Any, url: str, settings: Settings, deadline: float, file: IO[bytes]) -> None:
    """Copy the content. Its size counts after decompression, so that a small response cannot become a large one."""
    limit, size = settings.max_fetch_bytes, 0
    file.seek(0)
    file.truncate()
    for chunk in response.iter_bytes():
        size += len(chunk)
        if size > limit or response.num_bytes_downloaded > limit:
            raise TooLargeError(
                f"{_shown(url)} has more than {limit:,} bytes; the limit is max_fetch_bytes", limit=limit
            )
        if time.monotonic() > deadline:
            raise _too_slow(url, settings)
        file.write(chunk)
    file.seek(0, os.SEEK_END)


def _too_slow(url: str, settings: Settings) -> HoldfastError:
    return FailedPreconditionError(
        f"{_shown(url)} was not fetched within {settings.fetch_seconds:g} s; the limit is fetch_seconds"
    )


def _status_error(url: str, status: int) -> HoldfastError:
    message = f"{_shown(url)} answered with the status {status}"
    if status in TEMPORARY:
        return UnavailableError(message, service="fetching", reason=str(status))
    return FailedPreconditionError(f"{message}; check the URL", status=status)


def _name_of(url: str, media_type: str) -> str:
    """Return a file name with an extension that fits the type of the content."""
    name = naming.name_of_url(url)
    wanted = _EXTENSIONS.get(media_type, "")
    stem, dot, suffix = name.rpartition(".")
    is_path = bool(urlsplit(url).path.strip("/"))
    has_suffix = bool(stem) and is_path and _KNOWN.fullmatch(dot + suffix) is not None
    if not wanted or (has_suffix and media_type == "text/plain"):
        return name
    return name if has_suffix and f".{suffix.lower()}" == wanted else f"{name}{wanted}"
