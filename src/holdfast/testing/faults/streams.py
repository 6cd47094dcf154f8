"""Readers of a session's events: one for as long as its connection lasts, and one that always comes back."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Self

import msgspec

from holdfast.testing.faults.connections import PATIENCE, Connection, head


class ServerEvent(msgspec.Struct, frozen=True):
    id: str | None
    event: str
    data: Any


class CutError(Exception):
    """The connection ended before the stream did."""


class EventStream:
    """One stream. Iterating over it ends where the server ends it, or where the connection breaks."""

    def __init__(
        self, url: str, session_id: str, query: str = "", *, receive_buffer: int | None = None, **headers: str
    ) -> None:
        self.connection = Connection(url, receive_buffer=receive_buffer)
        self.complete = False
        """Whether the server ended it, rather than something else."""
        self.comments: list[str] = []
        self._raw = b""
        self._left: int | None = None
        self._text = b""
        try:
            path = f"/api/v1/sessions/{session_id}/events{query}"
            self.connection.send(head("GET", path, None, accept="text/event-stream", **headers))
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
        """The next events, which must come."""
        events = iter(self)
        taken = [event for _, event in zip(range(count), events, strict=False)]
        assert len(taken) == count, f"the stream ended behind {taken}"
        return taken

    def __iter__(self) -> Iterator[ServerEvent]:
        return self.events()

    def events(self, most: int | None = None) -> Iterator[ServerEvent]:
        """Whole events, from the next `most` bytes that come through the connection."""
        for block in self._blocks(most):
            lines = block.decode().split("\n")
            fields = dict(line.split(": ", 1) for line in lines if not line.startswith(":"))
            self.comments += [line[1:].strip() for line in lines if line.startswith(":")]
            if fields:
                yield ServerEvent(fields.get("id"), fields["event"], msgspec.json.decode(fields["data"]))

    def _blocks(self, most: int | None) -> Iterator[bytes]:
        """What stands between blank lines; half a block is nothing."""
        while True:
            *blocks, self._text = self._text.split(b"\n\n")
            yield from blocks
            if self.complete:
                return
            try:
                most = self._receive(most)
            except CutError:
                return
            self._decode()

    def _receive(self, most: int | None) -> int | None:
        """One more piece; what is left of `most` then."""
        piece = self.connection.read(1 << 16 if most is None else min(most, 1 << 16))
        if not piece:
            raise CutError
        self._raw += piece
        return None if most is None else most - len(piece)

    def _decode(self) -> None:
        """Take the stream out of its chunks, as far as they have come."""
        while self._raw and not self.complete:
            if self._left is None:
                line, found, rest = self._raw.partition(b"\r\n")
                if not found:
                    return
                self._raw, self._left = rest, int(line, 16)
                self.complete = self._left == 0
            elif self._left > 0:
                piece = self._raw[: self._left]
                self._raw, self._left = self._raw[len(piece) :], self._left - len(piece)
                self._text += piece
            elif len(self._raw) >= 2:
                self._raw, self._left = self._raw[2:], None
            else:
                return

    def _read_head(self) -> None:
        while b"\r\n\r\n" not in self._raw:
            self._receive(None)
        told, _, self._raw = self._raw.partition(b"\r\n\r\n")
        lines = told.decode("latin-1").split("\r\n")
        assert lines[0].split(" ")[1] == "200", f"no stream: {told!r} {self._raw!r}"
        self.headers = dict(line.lower().split(": ", 1) for line in lines[1:])
        self._decode()


class Follower:
    """Reads the events of a session through everything: cut off, it comes back to behind the last whole event."""

    def __init__(self, url: str, session_id: str, draw: random.Random) -> None:
        self.seen: list[ServerEvent] = []
        self.connections = 0
        self.stop = threading.Event()
        self._url = url
        self._session_id = session_id
        self._draw = draw
        self._patience = 3 * PATIENCE

    def wait_for_events(self, count: int) -> None:
        """In another thread: until it has seen so many."""
        deadline = time.monotonic() + self._patience
        while len(self.seen) < count:
            assert time.monotonic() < deadline, f"only {len(self.seen)} of {count} events have come"
            time.sleep(0.01)

    def follow(self, done: Callable[[ServerEvent], bool]) -> None:
        """Until the event that is `done`, or until it is told to `stop`."""
        with ExitStack() as forgotten:
            while not self.stop.is_set() and not (self.seen and done(self.seen[-1])):
                try:
                    self._read_on(done, forgotten)
                except (OSError, CutError):
                    time.sleep(0.02)  # nobody is there for the moment

    def _read_on(self, done: Callable[[ServerEvent], bool], forgotten: ExitStack) -> None:
        stream = (
            EventStream(self._url, self._session_id, last_event_id=self.seen[-1].id or "")
            if self.seen
            else EventStream(self._url, self._session_id)
        )
        forgotten.callback(stream.close)
        self.connections += 1
        for event in stream.events(self._draw.randint(1, 20_000)):
            self.seen.append(event)
            if done(event):
                break
        match self._draw.randrange(3):
            case 0:
                stream.close()
            case 1:
                stream.connection.reset()
            case _:
                pass  # nobody tells the server: it must find out by itself
