"""Runs operations for the event loop: reads in threads, writes in batches through the writer thread."""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from holdfast.engine import Engine
from holdfast.engine.gate.call import CheckedCall, PreparedCall
from holdfast.errors import ResourceExhaustedError
from holdfast.http.fair_threads import SERVER, FairThreads, User, Work
from holdfast.http.memory.budget import UNRESERVED_BYTES, MemoryReservation
from holdfast.model.identity import NO_ORIGIN, Origin, Principal
from holdfast.ops.table import Operation
from holdfast.store.database import Cancellation, ReplyCallback
from holdfast.store.read_memory import PAGE_BYTES, LargeReadError


class Sized(Protocol):
    @property
    def size(self) -> int:
        """The bytes that it holds."""


R = TypeVar("R")
T = TypeVar("T")
E = TypeVar("E", bound=Sized)
MAX_INLINE_BYTES = 64 * 1024
"""A larger body is checked in a thread. On the event loop it would delay all other requests."""
READER_THREADS = 16
LARGE_READER_THREADS = 2
"""Threads for reads of more than a page. Such a read needs a multiple of its size while it is decoded and encoded."""
PREPARER_THREADS = 16
"""Threads for operations that call a model or read the database before their transaction."""
EXPORTER_THREADS = 4
"""Threads that write packs to temporary files."""
CHECKER_THREADS = 2
"""Threads that parse and check large bodies. They compute: more of them would be no faster, and would delay the event
loop, which waits for each of them in turn."""
MAX_WAITS_PER_USER = 100
"""How many operations of a user may wait for background tasks. They need no thread, but poll the database."""
MAX_BATCH_TURNS = 2
"""How many turns of the event loop a write may wait for others to join its batch."""


class Requester(NamedTuple):
    """The user that work is done for, and the cancellation of the request."""

    user: User
    cancellation: Cancellation

    @classmethod
    def of(cls, principal: Principal, cancellation: Cancellation | None) -> Self:
        return cls((principal.account_id, principal.user_id), cancellation or Cancellation())


class EngineExecutor:
    """Runs operations for one event loop."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._readers = FairThreads(READER_THREADS, "holdfast-reader")
        self._large_readers = FairThreads(LARGE_READER_THREADS, "holdfast-large-reader")
        self._preparers = FairThreads(PREPARER_THREADS, "holdfast-preparer")
        self._exporters = FairThreads(EXPORTER_THREADS, "holdfast-exporter")
        self._checkers = FairThreads(CHECKER_THREADS, "holdfast-checker")
        self._wait_counts: Counter[User] = Counter()
        self._results: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._is_delivery_scheduled = False
        self._batch: list[tuple[PreparedCall[Any], ReplyCallback]] = []

    def open(self) -> None:
        self._loop = asyncio.get_running_loop()

    async def call(
        self,
        principal: Principal,
        cls: type[Operation[R]],
        fields: dict[str, Any],
        *,
        strict: bool,
        body_size: int,
        cancellation: Cancellation | None = None,
        origin: Origin = NO_ORIGIN,
    ) -> R:
        """Run an operation whose result is small.

        If the caller is cancelled, the operation stops unless its write was submitted. With `strict=False`, numbers may
        be given as strings, as in a query string. `body_size` is the number of bytes that `fields` were parsed from.
        """
        check = partial(self.engine.check, principal, cls, fields, strict=strict, origin=origin)
        requester = Requester.of(principal, cancellation)
        result: R
        _, result = await self._check_and_run(check, body_size, requester, read=None)
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
        cancellation: Cancellation | None = None,
        origin: Origin = NO_ORIGIN,
    ) -> E:
        """As `call`, but encode the result, in a thread if it was read. `reservation` holds a large one."""
        check = partial(self.engine.check, principal, cls, fields, strict=strict, origin=origin)
        requester = Requester.of(principal, cancellation)

        async def read(prepared: PreparedCall[Any]) -> E:
            def read_and_encode(max_bytes: int) -> E:
                return encode(prepared, prepared.run_transaction(max_bytes))

            return await self._read(read_and_encode, reservation, requester)

        prepared, result = await self._check_and_run(check, body_size, requester, read)
        return result if prepared is None else encode(prepared, result)

    async def read_large(
        self, read: Callable[[int], E], size: int, reservation: MemoryReservation, requester: Requester
    ) -> E:
        """Reserve memory, and run a read in one of the threads for large reads. It then holds the result."""
        while True:
            size = max(size, PAGE_BYTES)
            await reservation.reserve(size)
            try:
                encoded: E = await self._run(self._large_readers, requester, partial(read, size))
            except LargeReadError as error:
                size = max(error.size, 2 * size)  # doubled, so that a read runs only a few times
            else:
                reservation.adjust(encoded.size)
                return encoded

    async def in_thread(self, function: Callable[[], T], user: User = SERVER) -> T:
        result: T = await self._run(self._readers, Requester(user, Cancellation()), function)
        return result

    async def in_checker(self, function: Callable[[], T], user: User) -> T:
        """Run a function that parses or checks a large body."""
        result: T = await self._run(self._checkers, Requester(user, Cancellation()), function)
        return result

    async def export(self, function: Callable[[], T], requester: Requester) -> T:
        """Run a function that writes a file, which may take minutes."""
        result: T = await self._run(self._exporters, requester, function)
        return result

    async def probe_write(self) -> None:
        """Make a test write in the queue of all writes."""
        future: asyncio.Future[None] = self._loop.create_future()
        self.engine.submit_probe(partial(self._add_result, future))
        await future

    def close(self) -> None:
        self._readers.close()
        self._large_readers.close()
        self._preparers.close()
        self._exporters.close()
        self._checkers.close()

    async def _check_and_run(
        self,
        check: Callable[[], CheckedCall[Any]],
        body_size: int,
        requester: Requester,
        read: Callable[[PreparedCall[Any]], Awaitable[Any]] | None,
    ) -> tuple[PreparedCall[Any] | None, Any]:
        """Run an operation. Return the call with its result, or None with what `read` returned."""
        checked = check() if body_size <= MAX_INLINE_BYTES else await self._run(self._checkers, requester, check)
        threads = self._preparers if checked.may_wait else self._readers
        prepared: PreparedCall[Any]
        if checked.may_wait:
            prepared = await self._run(threads, requester, partial(self.engine.prepare, checked))
        else:
            prepared = self.engine.prepare(checked)
        if checked.handler.wait is not None:
            await self._wait(partial(next, prepared.waits(), None), requester)
        if not prepared.writes and read is not None:
            return None, await read(prepared)
        if prepared.writes and not checked.may_wait:
            result = await self._submit(prepared)
        else:
            result = await self._run(threads, requester, prepared.run_transaction)
        if checked.handler.follow is not None:
            following = prepared.follow(result)
            await self._wait(following.next_wait, requester)
            result = following.result
        return prepared, result

    async def _read(self, read: Callable[[int], E], reservation: MemoryReservation, requester: Requester) -> E:
        """Run a read in a thread, which gets the number of bytes that it may hold.

        Memory for more is reserved first. Then the read runs again, in one of a few threads for large reads.
        """
        try:
            encoded: E = await self._run(self._readers, requester, partial(read, PAGE_BYTES))
            size = encoded.size
            if size <= UNRESERVED_BYTES or reservation.try_reserve(size):
                return encoded
            del encoded  # it would be held while others read theirs
        except LargeReadError as error:
            size = error.size
        return await self.read_large(read, size, reservation, requester)

    async def _run(self, threads: FairThreads, requester: Requester, function: Callable[[], Any]) -> Any:
        future: asyncio.Future[Any] = self._loop.create_future()
        work = Work(requester.user, function, partial(self._add_result, future), requester.cancellation)
        threads.submit(work)
        try:
            return await future
        except asyncio.CancelledError:
            requester.cancellation.is_requested = True
            threads.discard(work)
            raise
        finally:
            del future, work, function  # an error refers to this frame, and the future to the error

    async def _wait(self, poll: Callable[[], float | None], requester: Requester) -> None:
        """Wait for what an operation waits for, until `poll` returns None. Only the polls need a thread."""
        user = requester.user
        if self._wait_counts[user] >= MAX_WAITS_PER_USER:
            raise ResourceExhaustedError(
                f"{MAX_WAITS_PER_USER} requests of this user wait for background tasks already; wait for one of them",
                retry_after=1.0,
                limit=MAX_WAITS_PER_USER,
            )
        self._wait_counts[user] += 1
        try:
            while (seconds := await self._run(self._readers, requester, poll)) is not None:  # noqa: ASYNC110
                await asyncio.sleep(seconds)
        finally:
            self._wait_counts[user] -= 1
            if not self._wait_counts[user]:
                del self._wait_counts[user]

    async def _submit(self, prepared: PreparedCall[R]) -> R:
        """Write in the next batch. Cancelling the caller does not undo it."""
        future: asyncio.Future[R] = self._loop.create_future()
        self._batch.append((prepared, partial(self._add_result, future)))
        if len(self._batch) == 1:
            self._loop.call_soon(self._submit_batch, 0, 0)
        return await future

    def _submit_batch(self, size_before: int, turns: int) -> None:
        """Submit the batch once a turn of the loop adds no more writes, so that the writer wakes up only once."""
        if len(self._batch) > size_before and turns < MAX_BATCH_TURNS:
            self._loop.call_soon(self._submit_batch, len(self._batch), turns + 1)
            return
        batch, self._batch = self._batch, []
        try:
            self.engine.submit(batch)
        except Exception as error:  # noqa: BLE001 - each caller of the batch gets the error
            for _, reply in batch:
                reply(None, error)

    def _add_result(self, future: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
        """Queue a result for the event loop. Called in other threads; the first of several wakes the loop."""
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
