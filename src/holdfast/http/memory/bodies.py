"""The memory for large bodies that are being received."""

import asyncio
from types import TracebackType
from typing import Self


class BodyMemory:
    """Limits the bytes of all bodies that were received in part.

    It counts what was received, not what was announced: a client that sends slowly holds little. If the memory is used
    up, bodies wait, except the one that began first. So there is always one that can be completed.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self._used = 0
        self._held: dict[BodyBuffer, int] = {}
        """What each body holds, in the order of their beginnings."""
        self._waiting: list[asyncio.Event] = []

    def buffer(self) -> "BodyBuffer":
        """Return a buffer that holds nothing yet. What it holds is released at the end of its block."""
        return BodyBuffer(self)

    async def hold(self, body: "BodyBuffer", size: int) -> None:
        """Count `size` bytes for a body that are in memory. Returns when the next ones may be received."""
        self._used += size - self._held.get(body, 0)
        self._held[body] = size
        while self._used > self._total and next(iter(self._held)) is not body:
            released = asyncio.Event()
            self._waiting.append(released)
            await released.wait()

    def release(self, body: "BodyBuffer") -> None:
        held = self._held.pop(body, 0)
        if not held:
            return
        self._used -= held
        for released in self._waiting:
            released.set()
        self._waiting.clear()


class BodyBuffer:
    """What one body holds."""

    __slots__ = ("_memory",)

    def __init__(self, memory: BodyMemory) -> None:
        self._memory = memory

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._memory.release(self)

    async def hold(self, size: int) -> None:
        await self._memory.hold(self, size)
