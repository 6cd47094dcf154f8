"""The memory that large requests and responses share. A user who leaves data unread does not block the others."""

import asyncio
from collections import OrderedDict, deque
from types import TracebackType
from typing import Self

from holdfast.http.fair_threads import User
from holdfast.model.identity import Principal

UNRESERVED_BYTES = 64 * 1024
"""Requests and responses up to this size need no reservation, so they never wait for large ones."""


class MemoryBudget:
    """Hands out a number of bytes. Users that wait get them in turn, each user in the order of asking."""

    def __init__(self, total: int, max_per_user: int) -> None:
        self._total = total
        self._max_per_user = max_per_user
        """What one user may hold, except that a single reservation may have any size."""
        self._held: dict[User, int] = {}
        self._used = 0
        self._waiting: OrderedDict[User, deque[tuple[int, asyncio.Future[None]]]] = OrderedDict()

    @property
    def used(self) -> int:
        return self._used

    def new_reservation(self, principal: Principal) -> "MemoryReservation":
        """Return a reservation that holds nothing yet. What it reserves is released at the end of its block."""
        return MemoryReservation(self, (principal.account_id, principal.user_id), self._total)

    def take(self, user: User, size: int) -> bool:
        """Take `size` bytes if they are free and it is the user's turn."""
        if not self._is_next(user, size):
            return False
        self._take(user, size)
        return True

    async def wait(self, user: User, size: int) -> None:
        """Take `size` bytes as soon as they are free and it is the user's turn."""
        if self.take(user, size):
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(user, deque()).append((size, granted))
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self.give_back(user, size)
            else:
                self._stop_waiting(user, granted)
            raise

    def overdraw(self, user: User, size: int) -> None:
        """Take `size` bytes although they may not be free: they are already in memory."""
        self._take(user, size)

    def give_back(self, user: User, size: int) -> None:
        self._used -= size
        self._held[user] -= size
        if not self._held[user]:
            del self._held[user]
        self._grant()

    def _is_within_share(self, user: User, size: int) -> bool:
        held = self._held.get(user, 0)
        return held == 0 or held + size <= self._max_per_user

    def _is_next(self, user: User, size: int) -> bool:
        """Whether the bytes are free, and nobody waits for them who may have them."""
        return (
            self._used + size <= self._total
            and self._is_within_share(user, size)
            and not any(self._is_within_share(other, queue[0][0]) for other, queue in self._waiting.items())
        )

    def _take(self, user: User, size: int) -> None:
        self._used += size
        self._held[user] = self._held.get(user, 0) + size

    def _grant(self) -> None:
        """Give free memory to those who wait: one reservation per user, in turn."""
        has_granted = True
        while has_granted:
            has_granted = False
            for user in list(self._waiting):
                size, granted = self._waiting[user][0]
                if not self._is_within_share(user, size):
                    continue
                if self._used + size > self._total:
                    return  # the next free memory is for this one: otherwise a large reservation might wait for ever
                self._waiting[user].popleft()
                if self._waiting[user]:
                    self._waiting.move_to_end(user)
                else:
                    del self._waiting[user]
                if not granted.done():
                    self._take(user, size)
                    granted.set_result(None)
                    has_granted = True

    def _stop_waiting(self, user: User, granted: "asyncio.Future[None]") -> None:
        queue = self._waiting.get(user, deque())
        kept = deque(entry for entry in queue if entry[1] is not granted)
        if kept:
            self._waiting[user] = kept
        else:
            self._waiting.pop(user, None)
        self._grant()


class MemoryReservation:
    """What one request holds of the budget."""

    __slots__ = ("_budget", "_total", "_user", "size")

    def __init__(self, budget: MemoryBudget, user: User, total: int) -> None:
        self._budget = budget
        self._user = user
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
        await self._budget.wait(self._user, size)
        self.size = size

    def try_reserve(self, size: int) -> bool:
        """As `reserve`, but without waiting: return whether it succeeded."""
        self.release()
        size = min(size, self._total)
        if not self._budget.take(self._user, size):
            return False
        self.size = size
        return True

    def adjust(self, size: int) -> None:
        """Hold `size` bytes, which are in memory already, instead of an estimate."""
        if size > self.size:
            self._budget.overdraw(self._user, size - self.size)
        elif size < self.size:
            self._budget.give_back(self._user, self.size - size)
        self.size = size

    def release(self) -> None:
        if self.size:
            size, self.size = self.size, 0
            self._budget.give_back(self._user, size)
