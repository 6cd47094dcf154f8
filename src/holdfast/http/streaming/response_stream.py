"""A response that is read, encoded and sent page by page, as fast as the client receives it."""

import asyncio
from collections.abc import Callable

import msgspec
from starlette.types import Receive, Send

from holdfast.errors import DeadlineExceededError
from holdfast.http import responses
from holdfast.http.encoded_stream import EncodedStream
from holdfast.http.executor import EngineExecutor, Requester
from holdfast.http.memory.budget import MemoryReservation
from holdfast.store.read_memory import PAGE_BYTES


class EncodedPage(msgspec.Struct, frozen=True):
    json: bytes

    @property
    def size(self) -> int:
        return len(self.json)


class ResponseStream:
    """Sends the pages of one response. Its reservation holds one page at a time."""

    def __init__(
        self, executor: EngineExecutor, reservation: MemoryReservation, page_seconds: float, requester: Requester
    ) -> None:
        self._executor = executor
        self._requester = requester
        self._reservation = reservation
        self._page_seconds = page_seconds
        """How long reading a page may take, with the wait for memory."""

    async def send(
        self,
        stream: EncodedStream,
        headers: list[responses.Header],
        end: Callable[[], bytes],
        receive: Receive,
        send: Send,
    ) -> None:
        """Send all pages, and what `end` returns then."""
        await send({"type": "http.response.start", "status": 200, "headers": [responses.JSON, *headers]})
        disconnected = asyncio.create_task(wait_for_disconnect(receive))
        try:
            await _write(send, responses.ENVELOPE_START)
            await _write(send, stream.take_beginning())
            while stream.has_more:
                await _write(send, b"")  # returns when the client has received the page before, except for a small rest
                if disconnected.done():
                    return
                page = await self._next_page(lambda max_bytes: EncodedPage(stream.read_next(max_bytes)))
                await _write(send, page.json)
                del page  # while the client receives it, only the connection holds it
            await send({"type": "http.response.body", "body": stream.encode_end() + end()})
        finally:
            disconnected.cancel()

    async def _next_page(self, read: Callable[[int], EncodedPage]) -> EncodedPage:
        self._reservation.release()
        try:
            async with asyncio.timeout(self._page_seconds):
                return await self._executor.read_large(read, PAGE_BYTES, self._reservation, self._requester)
        except TimeoutError:
            raise DeadlineExceededError(
                f"a page of the response was not read within {self._page_seconds:g} s; try again"
            ) from None


async def wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _write(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})
