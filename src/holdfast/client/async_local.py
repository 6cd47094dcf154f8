"""The asynchronous transport to an engine in this process."""

import asyncio
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from holdfast import forking
from holdfast.client.local import close_when_dropped
from holdfast.client.telemetry import call_measured
from holdfast.composition import Target, open_engine
from holdfast.engine import Engine
from holdfast.errors import FailedPreconditionError
from holdfast.model.identity import Principal
from holdfast.model.system import Backup
from holdfast.ops.table import Operation

R = TypeVar("R")
T = TypeVar("T")


class AsyncLocalTransport:
    """Runs each operation in a thread, so that disk access never blocks the event loop.

    The first operation opens the engine, in its own thread. A cancelled caller stops waiting, but the operation
    runs to completion: a transaction cannot be cancelled halfway through its commit.
    """

    THREADS = 32

    def __init__(self, open_engine: Callable[[], Engine], principal: Principal) -> None:
        self.principal = principal
        self._open_engine = open_engine
        self._engine: Engine | None = None
        self._closed = False
        self._finalizer: weakref.finalize[[Engine], object] | None = None
        self.start()
        _open_transports.add(self)

    def start(self) -> None:
        """Create the threads. A forked child calls this again, since it has none of its parent's threads."""
        self._opening = threading.Lock()
        self._threads = ThreadPoolExecutor(self.THREADS, thread_name_prefix="holdfast")

    async def call(self, op: Operation[R]) -> R:
        return await self._run(lambda engine: call_measured(engine, self.principal, op))

    async def back_up(self, target: Path, *, overwrite: bool) -> Backup:
        return await self._run(lambda engine: engine.back_up(self.principal, target, overwrite=overwrite))

    async def _run(self, work: Callable[[Engine], T]) -> T:
        if self._closed:
            raise FailedPreconditionError("this client was closed; connect again to use it")
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._run_in_thread, work)

    async def close(self) -> None:
        """Wait for all running operations, including those of cancelled callers, then close the engine."""
        if self._closed:
            return
        self._closed = True
        await asyncio.get_running_loop().run_in_executor(None, self._finish)
        _open_transports.discard(self)

    def _run_in_thread(self, work: Callable[[Engine], T]) -> T:
        with self._opening:
            if self._engine is None:
                self._engine = self._open_engine()
                self._finalizer = close_when_dropped(self, self._engine)
        return work(self._engine)

    def _finish(self) -> None:
        self._threads.shutdown(wait=True)
        if self._finalizer is not None:
            self._finalizer.detach()
        if self._engine is not None:
            self._engine.close()


_open_transports = forking.reset_in_child(AsyncLocalTransport.start)


def open_async_local(target: Target, principal: Principal) -> AsyncLocalTransport:
    return AsyncLocalTransport(lambda: open_engine(target), principal)
