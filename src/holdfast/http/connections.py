"""The HTTP protocol of a connection, with limits on slow clients and on the size of a request's head."""

import asyncio
import re
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from holdfast.errors import HoldfastError, InvalidArgumentError, TooLargeError
from holdfast.http import responses

MAX_HEAD_BYTES = 64 * 1024
"""The limit for the request line and the headers together."""


class HeadTooLargeError(TooLargeError):
    status = 431


class TimedProtocol(HttpToolsProtocol):
    """Measures how long the client takes to send a request's head and to read a response."""

    idle_since: float | None = None
    """The time since which no request is in progress and the head of the next one is awaited."""
    head_bytes = 0
    is_receiving_body = False
    last_received_at = 0.0
    unsent_since: float | None = None
    unsent_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.idle_since = self.loop.time()

    def connection_lost(self, exc: Exception | None) -> None:
        cycle: Any = self.cycle  # None before the first request, although its type says otherwise
        if cycle is not None and not cycle.response_complete:
            record = cycle.scope.get("record")  # set by RequestMiddleware
            if record is not None:
                record.disconnect()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.idle_since is None and self.cycle.response_complete:
            # Blank lines, or the rest of a body whose response was already sent, must not keep the connection open.
            self.idle_since = self.loop.time()
        self.last_received_at = self.loop.time()
        began_in_body = self.is_receiving_body
        if self.idle_since is not None and not began_in_body and b"pgrade" in data:  # `Upgrade` or `upgrade`
            data = _without_upgrade(data)
        super().data_received(data)
        if self.idle_since is not None and not began_in_body:
            self.head_bytes += len(data)
            if self.head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
                self._reject(
                    HeadTooLargeError(
                        f"the request line and headers have more than {MAX_HEAD_BYTES} bytes; send less",
                        limit=MAX_HEAD_BYTES,
                    )
                )

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self.idle_since is None:
            self.idle_since = self.loop.time()

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self.idle_since, self.head_bytes, self.is_receiving_body = None, 0, True

    def on_message_complete(self) -> None:
        self.is_receiving_body = False
        if self.cycle.response_complete:
            self.idle_since = self.loop.time()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._reject(InvalidArgumentError("request", f"{msg.rstrip('.')}; send HTTP/1.1"))

    def has_timed_out(self, now: float, timeout: float) -> bool:
        """Whether the client sent no complete head, or read nothing of a response, for `timeout` seconds."""
        unsent = self.transport.get_write_buffer_size()
        if not unsent or unsent != self.unsent_bytes:
            self.unsent_since, self.unsent_bytes = now, unsent
        head_is_late = self.idle_since is not None and now - self.idle_since > timeout
        return head_is_late or (unsent > 0 and now - (self.unsent_since or now) > timeout)

    def _reject(self, error: HoldfastError) -> None:
        """Respond to an invalid request and close. If an earlier request is in progress, close after its response."""
        cycle: Any = self.cycle  # None before the first request, although its type says otherwise
        if cycle is not None and not cycle.response_complete:
            cycle.keep_alive = False
            self.flow.pause_reading()
            return
        response = responses.failure(error)
        headers = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[response.status] + headers % len(response.body) + response.body)
        self.transport.close()


def _without_upgrade(data: bytes) -> bytes:
    """Rename the `Upgrade` header. The parser would read the body as data of the other protocol."""
    head, end, rest = data.partition(b"\r\n\r\n")
    return re.sub(rb"(?i)\r\nupgrade(?=\s*:)", b"\r\nx-grade", head) + end + rest
