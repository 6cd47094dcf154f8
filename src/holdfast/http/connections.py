"""A connection that knows how long it has been waiting for its client."""

import asyncio
import re
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from holdfast.errors import HoldfastError, InvalidArgumentError, TooLargeError
from holdfast.http import responses

MAX_HEAD_BYTES = 64 * 1024
"""How many bytes the request line and the headers may have."""


class HeadTooLargeError(TooLargeError):
    status = 431


class PatientProtocol(HttpToolsProtocol):
    """Knows since when it waits for its client: for a request's head, for a body nobody reads, to take an answer."""

    waits_since: float | None = None
    head_size = 0
    in_body = False
    heard_at = 0.0
    stuck_since: float | None = None
    stuck_with = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.waits_since = self.loop.time()

    def data_received(self, data: bytes) -> None:
        if self.waits_since is None and self.cycle.response_complete:
            # It may be blank lines, or more of a body that was answered long ago: both would keep it open for ever.
            self.waits_since = self.loop.time()
        self.heard_at = self.loop.time()
        began_in_body = self.in_body
        if self.waits_since is not None and not began_in_body and b"pgrade" in data:
            data = _without_upgrade(data)
        super().data_received(data)
        if self.waits_since is not None and not began_in_body:
            self.head_size += len(data)
            if self.head_size > MAX_HEAD_BYTES and not self.transport.is_closing():
                self._refuse(
                    HeadTooLargeError(f"the head has more than {MAX_HEAD_BYTES} bytes; send less", limit=MAX_HEAD_BYTES)
                )

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self.waits_since is None:
            self.waits_since = self.loop.time()

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self.waits_since, self.head_size, self.in_body = None, 0, True

    def on_message_complete(self) -> None:
        self.in_body = False
        if self.cycle.response_complete:
            self.waits_since = self.loop.time()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(InvalidArgumentError("request", f"{msg.rstrip('.')}; send HTTP/1.1"))

    def is_stuck(self, now: float, patience: float) -> bool:
        left = self.transport.get_write_buffer_size()
        if not left or left != self.stuck_with:
            self.stuck_since, self.stuck_with = now, left
        half_sent = self.waits_since is not None and now - self.waits_since > patience
        return half_sent or (left > 0 and now - (self.stuck_since or now) > patience)

    def _refuse(self, error: HoldfastError) -> None:
        """Answer what never became a request; if one before it is still worked on, its answer is the last."""
        cycle: Any = self.cycle  # none before the first request, whatever its type says
        if cycle is not None and not cycle.response_complete:
            cycle.keep_alive = False
            self.flow.pause_reading()
            return
        answer = responses.failure(error)
        told = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(answer.body)
        self.transport.write(STATUS_LINE[answer.status] + told + answer.body)
        self.transport.close()


def _without_upgrade(data: bytes) -> bytes:
    """The head as if no other protocol was offered: the parser would take the body for that protocol's."""
    head, end, rest = data.partition(b"\r\n\r\n")
    return re.sub(rb"(?i)\r\nupgrade(?=\s*:)", b"\r\nx-grade", head) + end + rest
