"""An asynchronous client that can be called like a synchronous one, so that one suite serves both."""

import asyncio
import inspect
import threading
from collections.abc import Callable
from typing import Any

from holdfast.client.generated.admin import AsyncAdmin
from holdfast.client.generated.client import AsyncClient
from holdfast.client.generated.session import AsyncSession


class EventLoop:
    """A running event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def wait_for(self, awaitable: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(_as_coroutine(awaitable), self._loop).result(60)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()


class Awaited:
    """Passes everything on, waits for whatever is awaitable, and wraps the handles that come back."""

    def __init__(self, behind: AsyncClient | AsyncSession | AsyncAdmin, loop: EventLoop) -> None:
        self._behind = behind
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._behind, name)
        return self._calling(value) if callable(value) else self._resolved(value)

    def _calling(self, method: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: self._resolved(method(*args, **kwargs))

    def _resolved(self, value: Any) -> Any:
        result = self._loop.wait_for(value) if inspect.isawaitable(value) else value
        return Awaited(result, self._loop) if isinstance(result, AsyncSession | AsyncAdmin) else result


async def _as_coroutine(awaitable: Any) -> Any:
    return await awaitable
