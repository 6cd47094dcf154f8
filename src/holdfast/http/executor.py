"""Runs operations for the event loop: reads and waits in threads, writes in batches through the writer thread."""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from holdfast.engine import Engine
from holdfast.engine.gate.call import CheckedCall, PreparedCall
from holdfast.model.identity import Principal
from holdfast.ops.table import Operation
from holdfast.store.database import ReplyCallback

R = TypeVar("R")
MAX_INLINE_BYTES = 64 * 1024
"""A larger body is checked in a thread. On the event loop it would delay all other requests."""
READER_THREADS = 16
PREPARER_THREADS = 16
"""Threads for operations that call a model or read the database before their transaction."""
CHECKER_THREADS = 2
"""Threads that parse and check large bodies. They compute: more of them would be no faster, and would delay the event
loop, which waits for each of them in turn."""
WAITER_THREADS = 8
"""Threads for operations that wait for background tasks. In threads of their own, they block no others."""
MAX_BATCH_TURNS = 2
"""How many turns of the event loop a write may wait for others to join its batch."""


class EngineExecutor:
    """Runs operations for one event loop."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._readers = ThreadPoolExecutor(READER_THREADS, thread_name_prefix="holdfast-reader")
        self._preparers = ThreadPoolExecutor(PREPARER_THREADS, thread_name_prefix="holdfast-preparer")
        self._checkers = ThreadPoolExecutor(CHECKER_THREADS, thread_name_prefix="holdfast-checker")
        self._waiters = ThreadPoolExecutor(WAITER_THREADS, thread_name_prefix="holdfast-waiter")
        self._results: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._is_delivery_scheduled = False
        self._batch: list[tuple[PreparedCall[Any], ReplyCallback]] = []

    def open(self) -> None:
        self._loop = asyncio.get_running_loop()

    async def call(
        self, principal: Principal, cls: type[Operation[R]], fields: dict[str, Any], *, strict: bool, body_size: int
    ) -> R:
        """Run an operation. Cancelling the caller does not undo a write.

        With `strict=False`, numbers may be given as strings, as in a query string. `body_size` is the number of bytes
        that `fields` were parsed from.
        """
        check = partial(self.engine.check, principal, cls, fields, strict=strict)
        checked: CheckedCall[R] = check() if body_size <= MAX_INLINE_BYTES else await self.in_checker(check)
        result: R
        if checked.may_wait:
            threads = self._waiters if checked.rule.waits_for_tasks else self._preparers
            result = await self._loop.run_in_executor(threads, lambda: self.engine.prepare(checked).run())
            return result
        prepared = self.engine.prepare(checked)
        if not prepared.writes:
            result = await self._loop.run_in_executor(self._readers, prepared.run)
            return result
        future: asyncio.Future[R] = self._loop.create_future()
        self._batch.append((prepared, partial(self._add_result, future)))
        if len(self._batch) == 1:
            self._loop.call_soon(self._submit, 0, 0)
        return await future

    async def in_thread(self, function: Any) -> Any:
        return await self._loop.run_in_executor(self._readers, function)

    async def in_checker(self, function: Callable[[], R]) -> R:
        """Run a function that parses or checks a large body."""
        return await self._loop.run_in_executor(self._checkers, function)

    def close(self) -> None:
        for threads in (self._readers, self._preparers, self._checkers, self._waiters):
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
