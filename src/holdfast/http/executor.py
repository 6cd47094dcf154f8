"""Runs operations for the event loop: reads and waits in threads, writes in batches through the writer thread."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol, TypeVar

from holdfast.engine import Engine
from holdfast.engine.gate.call import CheckedCall, PreparedCall
from holdfast.http.memory.budget import UNRESERVED_BYTES, MemoryReservation
from holdfast.model.identity import Principal
from holdfast.ops.table import Operation
from holdfast.store.database import ReplyCallback
from holdfast.store.read_memory import PAGE_BYTES, LargeReadError


class Sized(Protocol):
    @property
    def size(self) -> int:
        """The bytes that it holds."""


R = TypeVar("R")
E = TypeVar("E", bound=Sized)
MAX_INLINE_BYTES = 64 * 1024
"""A larger body is checked in a thread. On the event loop it would delay all other requests."""
READER_THREADS = 16
LARGE_READER_THREADS = 2
"""Threads for reads of more than a page. Such a read needs a multiple of its size while it is decoded and encoded."""
PREPARER_THREADS = 16
"""Threads for operations that call a model or read the database before their transaction."""
WAITER_THREADS = 8
"""Threads for operations that wait for background tasks. In threads of their own, they block no others."""
MAX_BATCH_TURNS = 2
"""How many turns of the event loop a write may wait for others to join its batch."""


class EngineExecutor:
    """Runs operations for one event loop."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._readers = ThreadPoolExecutor(READER_THREADS, thread_name_prefix="holdfast-reader")
        self._large_readers = ThreadPoolExecutor(LARGE_READER_THREADS, thread_name_prefix="holdfast-large-reader")
        self._preparers = ThreadPoolExecutor(PREPARER_THREADS, thread_name_prefix="holdfast-preparer")
        self._waiters = ThreadPoolExecutor(WAITER_THREADS, thread_name_prefix="holdfast-waiter")
        self._results: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._is_delivery_scheduled = False
        self._batch: list[tuple[PreparedCall[Any], ReplyCallback]] = []

    def open(self) -> None:
        self._loop = asyncio.get_running_loop()

    async def call(
        self, principal: Principal, cls: type[Operation[R]], fields: dict[str, Any], *, strict: bool, body_size: int
    ) -> R:
        """Run an operation whose result is small. Cancelling the caller does not undo a write.

        With `strict=False`, numbers may be given as strings, as in a query string. `body_size` is the number of bytes
        that `fields` were parsed from.
        """
        result: R
        _, result = await self._run(principal, cls, fields, strict=strict, body_size=body_size, read=None)
        return result

    async def call_encoded(
        self,
        principal: Principal,
        cls: type[Operation[Any]],
        fields: dict[str, Any],
        *,
        strict: bool,
        body_size: int,
        encode: Callable[[PreparedCall[Any], Any], E],
        reservation: MemoryReservation,
    ) -> E:
        """As `call`, but encode the result, in a thread if it was read. `reservation` holds a large one."""

        async def read(prepared: PreparedCall[Any]) -> E:
            return await self.read(lambda max_bytes: encode(prepared, prepared.run(max_bytes)), reservation)

        prepared, result = await self._run(principal, cls, fields, strict=strict, body_size=body_size, read=read)
        return result if prepared is None else encode(prepared, result)

    async def read(self, read: Callable[[int], E], reservation: MemoryReservation) -> E:
        """Run a read in a thread, which gets the number of bytes that it may hold.

        Memory for more is reserved first. Then the read runs again, in one of a few threads for large reads.
        """
        try:
            encoded = await self._loop.run_in_executor(self._readers, read, PAGE_BYTES)
            size = encoded.size
            if size <= UNRESERVED_BYTES or reservation.try_reserve(size):
                return encoded
            del encoded  # it would be held while others read theirs
        except LargeReadError as error:
            size = error.size
        return await self.read_large(read, size, reservation)

    async def read_large(self, read: Callable[[int], E], size: int, reservation: MemoryReservation) -> E:
        """Reserve memory, and run a read in one of the threads for large reads. It then holds the result."""
        while True:
            size = max(size, PAGE_BYTES)
            await reservation.reserve(size)
            try:
                encoded = await self._loop.run_in_executor(self._large_readers, read, size)
            except LargeReadError as error:
                size = max(error.size, 2 * size)  # doubled, so that a read runs only a few times
            else:
                reservation.adjust(encoded.size)
                return encoded

    async def _run(
        self,
        principal: Principal,
        cls: type[Operation[Any]],
        fields: dict[str, Any],
        *,
        strict: bool,
        body_size: int,
        read: Callable[[PreparedCall[Any]], Awaitable[Any]] | None,
    ) -> tuple[PreparedCall[Any] | None, Any]:
        """Run an operation. Return the call with its result, or None with what `read` returned."""
        check = partial(self.engine.check, principal, cls, fields, strict=strict)
        checked: CheckedCall[Any] = check() if body_size <= MAX_INLINE_BYTES else await self.in_thread(check)
        if checked.may_wait:
            threads = self._waiters if checked.rule.waits_for_tasks else self._preparers
            return await self._loop.run_in_executor(threads, self._prepare_and_run, checked)
        prepared = self.engine.prepare(checked)
        if not prepared.writes and read is not None:
            return None, await read(prepared)
        if not prepared.writes:
            return prepared, await self._loop.run_in_executor(self._readers, prepared.run)
        future: asyncio.Future[Any] = self._loop.create_future()
        self._batch.append((prepared, partial(self._add_result, future)))
        if len(self._batch) == 1:
            self._loop.call_soon(self._submit, 0, 0)
        return prepared, await future

    def _prepare_and_run(self, checked: CheckedCall[Any]) -> tuple[PreparedCall[Any], Any]:
        prepared = self.engine.prepare(checked)
        return prepared, prepared.run()

    async def in_thread(self, function: Any) -> Any:
        return await self._loop.run_in_executor(self._readers, function)

    def close(self) -> None:
        for threads in (self._readers, self._large_readers, self._preparers, self._waiters):
            threads.shutdown(wait=True)

    def _submit(self, size_before: int, turns: int) -> None:
        """Submit the batch once a turn of the loop adds no more writes, so that the writer wakes up only once."""
        if len(self._batch) > size_before and turns < MAX_BATCH_TURNS:
            self._loop.call_soon(self._submit, len(self._batch), turns + 1)
            return
        batch, self._batch = self._batch, []
        try:
            self.engine.submit(batch)
        except Exception as error:  # noqa: BLE001 - each caller of the batch gets the error
            for _, reply in batch:
                reply(None, error)

    def _add_result(self, future: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
        """Queue a result for the event loop. Called in the writer's thread; the first of a batch wakes the loop."""
        self._results.append((future, result, error))
        if not self._is_delivery_scheduled:
            self._is_delivery_scheduled = True
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._is_delivery_scheduled = False  # reset first: a result that is added from now on schedules a delivery
        while self._results:
            future, result, error = self._results.popleft()
            if future.done():
                continue
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)
