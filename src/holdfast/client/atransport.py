"""How an asynchronous client's operations reach a gate."""

import asyncio
import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol, TypeVar

from holdfast.client.opening import Place, open_engine
from holdfast.client.wire import NOTHING_DONE, Courier, Request, told_wait
from holdfast.engine import Engine
from holdfast.errors import FailedPreconditionError
from holdfast.model import Principal
from holdfast.ops import Operation

if TYPE_CHECKING:
    from httpx2 import Response

R = TypeVar("R")


class AsyncTransport(Protocol):
    async def call(self, op: Operation[R]) -> R: ...
    async def close(self) -> None: ...


class AsyncLocalTransport:
    """Into an engine in this process, one thread hop per operation, so that the event loop never waits for a disk.

    The engine is opened by the first operation, in its thread. A cancelled caller stops waiting; the operation
    itself runs to its end, as a commit cannot be half called off.
    """

    THREADS = 32

    def __init__(self, open_one: Callable[[], Engine], who: Principal) -> None:
        self.who = who
        self._open_one = open_one
        self._engine: Engine | None = None
        self._closed = False
        self.start()
        _open_transports.add(self)

    def start(self) -> None:
        """Get threads: at first, and in a forked child, which has none of its parent's."""
        self._opening = threading.Lock()
        self._threads = ThreadPoolExecutor(self.THREADS, thread_name_prefix="holdfast")

    async def call(self, op: Operation[R]) -> R:
        if self._closed:
            raise FailedPreconditionError("this client was closed; connect again to use it")
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._call, op)

    async def close(self) -> None:
        """Let what was begun come to its end, also what nobody waits for any more."""
        if self._closed:
            return
        self._closed = True
        await asyncio.get_running_loop().run_in_executor(None, self._finish)
        _open_transports.discard(self)

    def _call(self, op: Operation[R]) -> R:
        with self._opening:
            if self._engine is None:
                self._engine = self._open_one()
        return self._engine.call(self.who, op)

    def _finish(self) -> None:
        self._threads.shutdown(wait=True)
        if self._engine is not None:
            self._engine.close()


class AsyncHttpTransport:
    """To a server, over connections that are kept open. What failed is asked again where that does no harm."""

    def __init__(self, courier: Courier) -> None:
        import httpx2  # noqa: PLC0415 - who talks to no server does not pay for it

        self._httpx = httpx2
        self._courier = courier
        self._closed = False
        self._open()

    async def call(self, op: Operation[R]) -> R:
        courier = self._courier
        request = courier.request(op)
        courier.require_open(closed=self._closed)
        if self._process != os.getpid():
            self._open()  # a fork: the connections are the parent's, who still uses them
        sent = False  # at any attempt: what was sent once may have been done
        for wait in courier.waits():
            try:
                response = await self._send(request)
            except self._httpx.TransportError as error:
                sent = sent or not isinstance(error, self._httpx.ConnectError | self._httpx.ConnectTimeout)
                if wait is None or (sent and not request.retriable):
                    raise courier.unreachable(error, sent=sent) from error
                await asyncio.sleep(wait)
            else:
                if wait is None or not courier.asks_again(request, response.status_code):
                    return courier.result(op, response.status_code, response.content)
                sent = sent or response.status_code not in NOTHING_DONE
                await asyncio.sleep(told_wait(response.headers, wait))
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def close(self) -> None:
        self._closed = True
        await self._connections.aclose()

    def _open(self) -> None:
        self._process = os.getpid()
        self._connections = self._httpx.AsyncClient(**self._courier.options(self._httpx))

    async def _send(self, request: Request) -> "Response":
        return await self._connections.request(request.verb, request.path, params=request.query, content=request.body)


_open_transports: "weakref.WeakSet[AsyncLocalTransport]" = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for transport in list(_open_transports):
        transport.start()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def open_async_transport(place: Place) -> AsyncTransport:
    if place.url is not None:
        return AsyncHttpTransport(Courier(place.url, place.headers, place.settings))
    return AsyncLocalTransport(lambda: open_engine(place), place.who)
