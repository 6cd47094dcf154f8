"""The events of a session as a stream: everything that happened, then everything as it happens."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
from starlette.types import Receive, Send

from holdfast.config import Settings
from holdfast.errors import HoldfastError, NotFoundError, UnauthenticatedError
from holdfast.http.auth import Caller
from holdfast.http.executor import EngineExecutor
from holdfast.model.identity import Principal
from holdfast.model.sessions import Event, EventPage
from holdfast.ops.sessions import ReadEvents

Place = tuple[str, str, str]
"""Account, user and session."""

HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store")]
DELETED = b'event: session\ndata: {"kind":"deleted"}\n\n'
STILL_HERE = b": still here\n\n"


class Hub:
    """Wakes the streams of a session when something was done to it here."""

    def __init__(self) -> None:
        self._waiting: dict[Place, set[asyncio.Event]] = {}
        self.closing = False

    def wake(self, place: Place) -> None:
        for event in self._waiting.get(place, ()):
            event.set()

    def close(self) -> None:
        """Let all streams come to their end."""
        self.closing = True
        for place in list(self._waiting):
            self.wake(place)

    def join(self, place: Place) -> asyncio.Event:
        event = asyncio.Event()
        self._waiting.setdefault(place, set()).add(event)
        return event

    def leave(self, place: Place, event: asyncio.Event) -> None:
        waiting = self._waiting[place]
        waiting.discard(event)
        if not waiting:
            del self._waiting[place]


class Stream:
    """One reader of one session's events."""

    def __init__(
        self,
        executor: EngineExecutor,
        hub: Hub,
        settings: Settings,
        principal: Principal,
        op: ReadEvents,
        identify: Callable[[], Awaitable[Caller]],
    ) -> None:
        self._bridge = executor
        self._identify = identify
        self._hub = hub
        self._settings = settings
        self._principal = principal
        self._op = op
        self._cursor = op.after
        self._begun = False
        self._place = (principal.account_id, principal.user_id, op.session_id)

    async def run(self, receive: Receive, send: Send) -> None:
        """Send until the reader goes, the session is deleted or the server stops."""
        woken = self._hub.join(self._place)  # before the first look, so that nothing happens unnoticed in between
        leaving: asyncio.Task[None] | None = None
        try:
            page = await self._next_page()
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            leaving = asyncio.create_task(_gone(receive))
            await self._deliver(page, send, woken, leaving)
        finally:
            self._hub.leave(self._place, woken)
            if leaving is not None:
                leaving.cancel()

    async def _deliver(self, page: EventPage, send: Send, woken: asyncio.Event, leaving: "asyncio.Task[None]") -> None:
        await _write(send, STILL_HERE)
        silent = 0.0
        while not leaving.done():
            if page.events:
                await _write(send, b"".join([_encoded(event) for event in page.events]))
                silent = 0.0
            if len(page.events) < self._op.limit:
                if self._hub.closing:
                    break
                silent += await self._wait(woken, leaving)
                if silent >= self._settings.stream_heartbeat_seconds:
                    await _write(send, STILL_HERE)
                    silent = 0.0
            woken.clear()
            try:
                page = await self._next_page()
            except NotFoundError:
                await _write(send, DELETED)
                break
            except HoldfastError:  # the database is away, or the key is dead; the reader can try and come back
                break
        await _write(send, b"", last=True)

    async def _next_page(self) -> EventPage:
        """What comes behind the cursor. A new session of the same name is as good as none: its reader must begin."""
        if (await self._identify()).principal != self._principal:  # a stream lives long; its key may not
            raise UnauthenticatedError("this key is not what it was; open the stream again")
        fields = {"session_id": self._op.session_id, "after": self._cursor, "limit": self._op.limit}
        page = await self._bridge.call(self._principal, ReadEvents, fields, strict=True, size=0)
        if self._begun and self._cursor and _log(self._cursor) != _log(page.cursor):
            raise NotFoundError("session", self._op.session_id)
        self._cursor, self._begun = page.cursor, True
        return page

    async def _wait(self, woken: asyncio.Event, leaving: "asyncio.Task[None]") -> float:
        """Until something may have happened. Others may write to the same database, so look now and then."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        waiting = asyncio.create_task(woken.wait())
        patience = min(self._settings.stream_poll_seconds, self._settings.stream_heartbeat_seconds)
        await asyncio.wait({waiting, leaving}, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        return loop.time() - began


async def _write(send: Send, data: bytes, *, last: bool = False) -> None:
    """Waits for a reader that is slow. One that takes nothing at all loses its connection, and can come back."""
    await send({"type": "http.response.body", "body": data, "more_body": not last})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _encoded(event: Event) -> bytes:
    data = msgspec.json.encode(event.message if event.change is None else event.change)
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (event.id.encode(), event.event.encode(), data)


def _log(cursor: str) -> str:
    return cursor.partition("-")[0]
