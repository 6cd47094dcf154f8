"""Readers of a session's event stream: one for a single connection, and one that reconnects."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Self

import msgspec

from holdfast.testing.faults.connections import TIMEOUT_SECONDS, Connection, request_head


class ServerEvent(msgspec.Struct, frozen=True):
    id: str | None
    event: str
    data: Any


class StreamCutError(Exception):
    """The connection ended before the server ended the stream."""


class EventStream:
    """One event stream. Iteration stops when the server ends the stream or the connection breaks."""

    def __init__(
        self, url: str, session_id: str, query: str = "", *, receive_buffer: int | None = None, **headers: str
    ) -> None:
        self.connection = Connection(url, receive_buffer=receive_buffer)
        self.complete = False
        """Whether the server ended the stream."""
        self.comments: list[str] = []
        self._received = b""
        self._chunk_left: int | None = None
        self._text = b""
        try:
            path = f"/api/v1/sessions/{session_id}/events{query}"
            self.connection.send(request_head("GET", path, None, accept="text/event-stream", **headers))
            self._read_head()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.connection.close()

    def take(self, count: int) -> list[ServerEvent]:
        """Return the next `count` events, and fail if the stream ends first."""
        events = iter(self)
        taken = [event for _, event in zip(range(count), events, strict=False)]
        assert len(taken) == count, f"the stream ended after {taken}"
        return taken

    def __iter__(self) -> Iterator[ServerEvent]:
        return self.events()

    def events(self, max_bytes: int | None = None) -> Iterator[ServerEvent]:
        """Yield the complete events in the next `max_bytes` received bytes."""
        for block in self._blocks(max_bytes):
            lines = block.decode().split("\n")
            fields = dict(line.split(": ", 1) for line in lines if not line.startswith(":"))
            self.comments += [line[1:].strip() for line in lines if line.startswith(":")]
            if fields:
                yield ServerEvent(fields.get("id"), fields["event"], msgspec.json.decode(fields["data"]))

    def _blocks(self, max_bytes: int | None) -> Iterator[bytes]:
        """Yield the blocks between blank lines. An incomplete block at the end is dropped."""
        while True:
            *blocks, self._text = self._text.split(b"\n\n")
            yield from blocks
            if self.complete:
                return
            try:
                max_bytes = self._receive(max_bytes)
            except StreamCutError:
                return
            self._decode()

    def _receive(self, max_bytes: int | None) -> int | None:
        """Receive some bytes and return how many of `max_bytes` remain."""
        data = self.connection.read(1 << 16 if max_bytes is None else min(max_bytes, 1 << 16))
        if not data:
            raise StreamCutError
        self._received += data
        return None if max_bytes is None else max_bytes - len(data)

    def _decode(self) -> None:
        """Decode the chunked transfer encoding of the received bytes."""
        while self._received and not self.complete:
            if self._chunk_left is None:
                line, separator, rest = self._received.partition(b"\r\n")
                if not separator:
                    return
                self._received, self._chunk_left = rest, int(line, 16)
                self.complete = self._chunk_left == 0
            elif self._chunk_left > 0:
                piece = self._received[: self._chunk_left]
                self._received, self._chunk_left = self._received[len(piece) :], self._chunk_left - len(piece)
                self._text += piece
            elif len(self._received) >= 2:
                self._received, self._chunk_left = self._received[2:], None
            else:
                return

    def _read_head(self) -> None:
        while b"\r\n\r\n" not in self._received:
            self._receive(None)
        head, _, self._received = self._received.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        assert lines[0].split(" ")[1] == "200", f"no stream: {head!r} {self._received!r}"
        self.headers = dict(line.lower().split(": ", 1) for line in lines[1:])
        self._decode()


class ReconnectingReader:
    """Reads the events of a session. After a cut it reconnects and resumes after the last complete event."""

    def __init__(self, url: str, session_id: str, rng: random.Random) -> None:
        self.events: list[ServerEvent] = []
        self.connections = 0
        self.stop = threading.Event()
        self._url = url
        self._session_id = session_id
        self._rng = rng
        self._timeout_seconds = 3 * TIMEOUT_SECONDS

    def wait_for_events(self, count: int) -> None:
        """Wait until `count` events were read; called from another thread."""
        deadline = time.monotonic() + self._timeout_seconds
        while len(self.events) < count:
            assert time.monotonic() < deadline, f"only {len(self.events)} of {count} events were read"
            time.sleep(0.01)

    def read_until(self, is_last: Callable[[ServerEvent], bool]) -> None:
        """Read until an event for which `is_last` is true, or until `stop` is set."""
        with ExitStack() as abandoned:
            while not self.stop.is_set() and not (self.events and is_last(self.events[-1])):
                try:
                    self._read_some(is_last, abandoned)
                except (OSError, StreamCutError):
                    time.sleep(0.02)  # the server is down

    def _read_some(self, is_last: Callable[[ServerEvent], bool], abandoned: ExitStack) -> None:
        stream = (
            EventStream(self._url, self._session_id, last_event_id=self.events[-1].id or "")
            if self.events
            else EventStream(self._url, self._session_id)
        )
        abandoned.callback(stream.close)
        self.connections += 1
        for event in stream.events(self._rng.randint(1, 20_000)):
            self.events.append(event)
            if is_last(event):
                break
        match self._rng.randrange(3):
            case 0:
                stream.close()
            case 1:
                stream.connection.reset()
            case _:
                pass  # the connection stays open and unread: the server must detect that
