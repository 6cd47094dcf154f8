"""A wrapper that makes an asynchronous client callable like a synchronous one, so that both share one test suite."""

import asyncio
import inspect
import threading
from collections.abc import Callable
from typing import Any

from holdfast.client.generated.admin import AsyncAdmin
from holdfast.client.generated.client import AsyncClient
from holdfast.client.generated.session import AsyncSession


class EventLoop:
    """An event loop that runs in its own thread."""

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
    """Forwards every call to the asynchronous client, waits for the result, and wraps returned handles."""

    def __init__(self, wrapped: AsyncClient | AsyncSession | AsyncAdmin, loop: EventLoop) -> None:
        self._wrapped = wrapped
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._wrapped, name)
        return self._wrap_call(value) if callable(value) else self._resolve(value)

    def _wrap_call(self, method: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: self._resolve(method(*args, **kwargs))

    def _resolve(self, value: Any) -> Any:
        result = self._loop.wait_for(value) if inspect.isawaitable(value) else value
        return Awaited(result, self._loop) if isinstance(result, AsyncSession | AsyncAdmin) else result


async def _as_coroutine(awaitable: Any) -> Any:
    return await awaitable
