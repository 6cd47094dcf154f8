"""The events of a session as server-sent events: first the past ones, then new ones as they happen."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.types import Receive, Send

from holdfast.config import Settings
from holdfast.engine.gate.call import PreparedCall
from holdfast.engine.gate.streams import StreamedResult
from holdfast.errors import DeadlineExceededError, HoldfastError, NotFoundError, UnauthenticatedError
from holdfast.http.auth import AuthenticatedCaller
from holdfast.http.executor import EngineExecutor
from holdfast.http.memory.budget import MemoryReservation
from holdfast.http.streaming.response_stream import wait_for_disconnect
from holdfast.model.identity import Origin, Principal
from holdfast.model.sessions import Event, EventPage
from holdfast.ops.sessions import ReadEvents

SessionKey = tuple[str, str]
"""The ids of the account and the session. Sessions of several owners may have one id: a stream may wake needlessly."""

HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store")]
DELETED = b'event: session\ndata: {"kind":"deleted"}\n\n'
HEARTBEAT = b": still here\n\n"


class EncodedEvents(msgspec.Struct, frozen=True):
    data: bytes
    cursor: str
    has_more: bool

    @property
    def size(self) -> int:
        return len(self.data)


class StreamNotifier:
    """Notifies the streams of a session when this server has written to it."""

    def __init__(self) -> None:
        self._subscribers: dict[SessionKey, set[asyncio.Event]] = {}
        self.is_closing = False

    def notify(self, session: SessionKey) -> None:
        for changed in self._subscribers.get(session, ()):
            changed.set()

    def close(self) -> None:
        """End all streams."""
        self.is_closing = True
        for session in list(self._subscribers):
            self.notify(session)

    def subscribe(self, session: SessionKey) -> asyncio.Event:
        """Return an event that is set at each write to the session, until `unsubscribe`."""
        changed = asyncio.Event()
        self._subscribers.setdefault(session, set()).add(changed)
        return changed

    def unsubscribe(self, session: SessionKey, changed: asyncio.Event) -> None:
        subscribers = self._subscribers[session]
        subscribers.discard(changed)
        if not subscribers:
            del self._subscribers[session]


class SessionStream:
    """The stream of one session's events to one client."""

    def __init__(
        self,
        executor: EngineExecutor,
        notifier: StreamNotifier,
        settings: Settings,
        principal: Principal,
        op: ReadEvents,
        identify: Callable[[], Awaitable[AuthenticatedCaller]],
        reservation: MemoryReservation,
        origin: Origin,
    ) -> None:
        self._origin = origin
        self._reservation = reservation
        self._executor = executor
        self._identify = identify
        self._notifier = notifier
        self._settings = settings
        self._principal = principal
        self._op = op
        self._cursor = op.after
        self._has_started = False
        self._session = (principal.account_id, op.session_id)

    async def run(self, receive: Receive, send: Send) -> None:
        """Send events until the client disconnects, the session is deleted or the server stops."""
        changed = self._notifier.subscribe(self._session)  # before the first read, so that no event is missed
        disconnected: asyncio.Task[None] | None = None
        try:
            page = await self._next_page()
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            disconnected = asyncio.create_task(wait_for_disconnect(receive))
            await self._send_events(page, send, changed, disconnected)
        finally:
            self._notifier.unsubscribe(self._session, changed)
            if disconnected is not None:
                disconnected.cancel()

    async def _send_events(
        self, page: EncodedEvents, send: Send, changed: asyncio.Event, disconnected: "asyncio.Task[None]"
    ) -> None:
        await _write(send, HEARTBEAT)
        idle_seconds = 0.0
        while not disconnected.done():
            if page.data:
                await _write(send, page.data)
                idle_seconds = 0.0
            has_more = page.has_more
            del page
            await _write(send, b"")  # waits until the page was received, except for a small rest
            self._reservation.release()
            if not has_more:
                if self._notifier.is_closing:
                    break
                idle_seconds += await self._wait_for_change(changed, disconnected)
                if idle_seconds >= self._settings.stream_heartbeat_seconds:
                    await _write(send, HEARTBEAT)
                    idle_seconds = 0.0
            changed.clear()
            try:
                page = await self._next_page()
            except NotFoundError:
                await _write(send, DELETED)
                break
            except HoldfastError:
                # The database is unavailable, the key no longer valid, or no memory free: the client can reconnect.
                break
        await _write(send, b"", last=True)

    async def _next_page(self) -> EncodedEvents:
        """Read the events after the cursor.

        A session that was deleted and created again counts as deleted: the client must read it from the beginning.
        """
        if (await self._identify()).principal != self._principal:  # the key may change while the stream is open
            raise UnauthenticatedError("this key now belongs to another user or role; open the stream again")
        op = self._op
        fields = {"session_id": op.session_id, "owner": op.owner, "after": self._cursor, "limit": op.limit}
        seconds = self._settings.request_timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                page = await self._executor.call_encoded(
                    *(self._principal, ReadEvents, fields),
                    strict=True,
                    body_size=0,
                    encode=_encode_page,
                    reservation=self._reservation,
                    origin=self._origin,
                )
        except TimeoutError:
            raise DeadlineExceededError(f"no events were read within {seconds:g} s; open the stream again") from None
        if self._has_started and self._cursor and _log_id(self._cursor) != _log_id(page.cursor):
            raise NotFoundError("session", self._op.session_id)
        self._cursor, self._has_started = page.cursor, True
        return page

    async def _wait_for_change(self, changed: asyncio.Event, disconnected: "asyncio.Task[None]") -> float:
        """Wait for a notification or until the next poll; return the seconds waited.

        Polling finds the writes of other processes to the same database.
        """
        loop = asyncio.get_running_loop()
        started_at = loop.time()
        waiting = asyncio.create_task(changed.wait())
        timeout = min(self._settings.stream_poll_seconds, self._settings.stream_heartbeat_seconds)
        await asyncio.wait({waiting, disconnected}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        return loop.time() - started_at


async def _write(send: Send, data: bytes, *, last: bool = False) -> None:
    """Send data, and wait for a slow client. The server closes the connection of one that reads nothing at all."""
    await send({"type": "http.response.body", "body": data, "more_body": not last})


def _encode_page(_call: PreparedCall[Any], result: EventPage | StreamedResult) -> EncodedEvents:
    """Encode a page of events. The rest of a streamed result is read as the next page of the stream."""
    if isinstance(result, StreamedResult):
        ending = result.first.ending
        result = EventPage(result.first.items, ending["cursor"], has_more=ending["has_more"])
    return EncodedEvents(b"".join([_encode(event) for event in result.events]), result.cursor, result.has_more)


def _encode(event: Event) -> bytes:
    data = msgspec.json.encode(event.message if event.change is None else event.change)
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (event.id.encode(), event.event.encode(), data)


def _log_id(cursor: str) -> str:
    """The first part of an event id. It identifies the session's event log."""
    return cursor.partition("-")[0]
