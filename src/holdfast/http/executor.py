"""Between the event loop and the gate: reads in threads, writes through the one writer, one wake-up per batch."""

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from holdfast.engine import Engine
from holdfast.engine.engine import Plan
from holdfast.model.identity import Principal
from holdfast.ops.table import Operation
from holdfast.store.database import Reply

R = TypeVar("R")
LARGE = 64 * 1024
"""A body of more bytes is checked and prepared in a thread: on the loop it would make everyone wait."""
THREADS = 16
PATIENT_THREADS = 8
"""For those who wait until something is done: they must not keep readers from reading."""
PATIENT_TURNS = 2
"""How many turns of the loop a write may wait for others; each takes as long as the requests that it brings."""


class EngineExecutor:
    """Belongs to one event loop."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="holdfast-reader")
        self._patient_threads = ThreadPoolExecutor(PATIENT_THREADS, thread_name_prefix="holdfast-waiter")
        self._done: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._woken = False
        self._asked: list[tuple[Plan[Any], Reply]] = []

    def open(self) -> None:
        self._loop = asyncio.get_running_loop()

    async def call(
        self, principal: Principal, cls: type[Operation[R]], fields: dict[str, Any], *, strict: bool, size: int
    ) -> R:
        """Do an operation. Who stops waiting for a write has not undone it."""
        plan_it = partial(self.engine.plan, principal, cls, fields, strict=strict)
        plan: Plan[R] = plan_it() if size <= LARGE else await self.in_thread(plan_it)
        if plan.wait_for is not None or not plan.writes:
            threads = self._threads if plan.wait_for is None else self._patient_threads
            result: R = await self._loop.run_in_executor(threads, plan.run)
            return result
        future: asyncio.Future[R] = self._loop.create_future()
        self._asked.append((plan, partial(self._arrived, future)))
        if len(self._asked) == 1:
            self._loop.call_soon(self._submit, 0, 0)
        return await future

    async def in_thread(self, work: Any) -> Any:
        return await self._loop.run_in_executor(self._threads, work)

    def close(self) -> None:
        self._threads.shutdown(wait=True)
        self._patient_threads.shutdown(wait=True)

    def _submit(self, before: int, turns: int) -> None:
        """Hand over all writes at once, as soon as a turn of the loop brings no more: the writer wakes up once."""
        if len(self._asked) > before and turns < PATIENT_TURNS:
            self._loop.call_soon(self._submit, len(self._asked), turns + 1)
            return
        asked, self._asked = self._asked, []
        try:
            self.engine.submit(asked)
        except Exception as error:  # noqa: BLE001 - it is handed to those who asked
            for _, reply in asked:
                reply(None, error)

    def _arrived(self, future: "asyncio.Future[Any]", outcome: Any, error: BaseException | None) -> None:
        """In the writer's thread: the first of a batch wakes the loop, the others are found there."""
        self._done.append((future, outcome, error))
        if not self._woken:
            self._woken = True
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._woken = False  # before looking, so that nothing arrives unnoticed
        while self._done:
            future, outcome, error = self._done.popleft()
            if future.done():
                continue
            if error is None:
                future.set_result(outcome)
            else:
                future.set_exception(error)
