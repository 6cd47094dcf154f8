"""How a client's operations reach a gate."""

import asyncio
import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from holdfast.client.opening import open_engine
from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.engine.access import principal
from holdfast.model import Principal
from holdfast.ops import Operation

R = TypeVar("R")


class Transport(Protocol):
    who: Principal

    def call(self, op: Operation[R]) -> R: ...
    def close(self) -> None: ...


class AsyncTransport(Protocol):
    who: Principal

    async def call(self, op: Operation[R]) -> R: ...
    async def close(self) -> None: ...


class LocalTransport:
    """Straight into an engine in this process: a call is a call."""

    def __init__(self, engine: Engine, who: Principal) -> None:
        self.who = who
        self.engine = engine

    def call(self, op: Operation[R]) -> R:
        return self.engine.call(self.who, op)

    def close(self) -> None:
        self.engine.close()


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
        self.start()
        _open_transports.add(self)

    def start(self) -> None:
        """Get threads: at first, and in a forked child, which has none of its parent's."""
        self._opening = threading.Lock()
        self._threads = ThreadPoolExecutor(self.THREADS, thread_name_prefix="holdfast")

    async def call(self, op: Operation[R]) -> R:
        return await self._hop(lambda: self._opened().call(self.who, op))

    async def close(self) -> None:
        engine = self._engine
        if engine is not None:
            await asyncio.get_running_loop().run_in_executor(None, engine.close)
        self._threads.shutdown(wait=False)
        _open_transports.discard(self)

    def _opened(self) -> Engine:
        with self._opening:
            if self._engine is None:
                self._engine = self._open_one()
            return self._engine

    async def _hop(self, work: Callable[[], R]) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


_open_transports: "weakref.WeakSet[AsyncLocalTransport]" = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for transport in list(_open_transports):
        transport.start()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def open_transport(target: str | None, account: str, user: str, role: str, settings: Settings | None) -> Transport:
    who = principal(account, user, role)
    return LocalTransport(open_engine(target, settings), who)


def open_async_transport(
    target: str | None, account: str, user: str, role: str, settings: Settings | None
) -> AsyncTransport:
    who = principal(account, user, role)
    return AsyncLocalTransport(lambda: open_engine(target, settings), who)
