"""The memory that large requests and responses share. A caller who leaves data unread does not block the others."""

import asyncio
from collections import OrderedDict, deque
from types import TracebackType
from typing import Self

from holdfast.model.identity import Principal

UNRESERVED_BYTES = 64 * 1024
"""Requests and responses up to this size need no reservation, so they never wait for large ones."""
Caller = tuple[str, str]


class MemoryBudget:
    """Hands out a number of bytes. Callers that wait get them in turn, each caller in the order of asking."""

    def __init__(self, total: int, max_per_caller: int) -> None:
        self._total = total
        self._max_per_caller = max_per_caller
        """What one caller may hold, except that a single reservation may have any size."""
        self._held: dict[Caller, int] = {}
        self._used = 0
        self._waiting: OrderedDict[Caller, deque[tuple[int, asyncio.Future[None]]]] = OrderedDict()

    @property
    def used(self) -> int:
        return self._used

    def new_reservation(self, principal: Principal) -> "MemoryReservation":
        """Return a reservation that holds nothing yet. What it reserves is released at the end of its block."""
        return MemoryReservation(self, (principal.account_id, principal.user_id), self._total)

    def take(self, caller: Caller, size: int) -> bool:
        """Take `size` bytes if they are free and it is the caller's turn."""
        if not self._is_next(caller, size):
            return False
        self._take(caller, size)
        return True

    async def wait(self, caller: Caller, size: int) -> None:
        """Take `size` bytes as soon as they are free and it is the caller's turn."""
        if self.take(caller, size):
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append((size, granted))
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self.give_back(caller, size)
            else:
                self._stop_waiting(caller, granted)
            raise

    def overdraw(self, caller: Caller, size: int) -> None:
        """Take `size` bytes although they may not be free: they are already in memory."""
        self._take(caller, size)

    def give_back(self, caller: Caller, size: int) -> None:
        self._used -= size
        self._held[caller] -= size
        if not self._held[caller]:
            del self._held[caller]
        self._grant()

    def _is_within_share(self, caller: Caller, size: int) -> bool:
        held = self._held.get(caller, 0)
        return held == 0 or held + size <= self._max_per_caller

    def _is_next(self, caller: Caller, size: int) -> bool:
        """Whether the bytes are free, and nobody waits for them who may have them."""
        return (
            self._used + size <= self._total
            and self._is_within_share(caller, size)
            and not any(self._is_within_share(other, queue[0][0]) for other, queue in self._waiting.items())
        )

    def _take(self, caller: Caller, size: int) -> None:
        self._used += size
        self._held[caller] = self._held.get(caller, 0) + size

    def _grant(self) -> None:
        """Give free memory to those who wait: one reservation per caller, in turn."""
        has_granted = True
        while has_granted:
            has_granted = False
            for caller in list(self._waiting):
                size, granted = self._waiting[caller][0]
                if not self._is_within_share(caller, size):
                    continue
                if self._used + size > self._total:
                    return  # the next free memory is for this one: otherwise a large reservation might wait for ever
                self._waiting[caller].popleft()
                if self._waiting[caller]:
                    self._waiting.move_to_end(caller)
                else:
                    del self._waiting[caller]
                if not granted.done():
                    self._take(caller, size)
                    granted.set_result(None)
                    has_granted = True

    def _stop_waiting(self, caller: Caller, granted: "asyncio.Future[None]") -> None:
        queue = self._waiting.get(caller, deque())
        kept = deque(entry for entry in queue if entry[1] is not granted)
        if kept:
            self._waiting[caller] = kept
        else:
            self._waiting.pop(caller, None)
        self._grant()


class MemoryReservation:
    """What one request holds of the budget."""

    __slots__ = ("_budget", "_caller", "_total", "size")

    def __init__(self, budget: MemoryBudget, caller: Caller, total: int) -> None:
        self._budget = budget
        self._caller = caller
        self._total = total
        self.size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.size:
            self.release()

    async def reserve(self, size: int) -> None:
        """Hold `size` bytes instead of what was held before. Waits until they are free."""
        self.release()
        size = min(size, self._total)
        await self._budget.wait(self._caller, size)
        self.size = size

    def try_reserve(self, size: int) -> bool:
        """As `reserve`, but without waiting: return whether it succeeded."""
        self.release()
        size = min(size, self._total)
        if not self._budget.take(self._caller, size):
            return False
        self.size = size
        return True

    def adjust(self, size: int) -> None:
        """Hold `size` bytes, which are in memory already, instead of an estimate."""
        if size > self.size:
            self._budget.overdraw(self._caller, size - self.size)
        elif size < self.size:
            self._budget.give_back(self._caller, self.size - size)
        self.size = size

    def release(self) -> None:
        if self.size:
            size, self.size = self.size, 0
            self._budget.give_back(self._caller, size)
