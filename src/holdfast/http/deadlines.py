"""How long a request may take. One look a second at those that run costs less than a timer for each of them."""

import asyncio
from types import TracebackType


class Deadlines:
    """`with deadlines:` around the work of a task ends in TimeoutError when it takes longer than `seconds`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._begun: dict[asyncio.Task[object], float] = {}
        """In the order in which they began, and so in the order in which they are due."""
        self._late: set[asyncio.Task[object]] = set()

    def __enter__(self) -> None:
        self._begun[_this_task()] = asyncio.get_running_loop().time()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task = _this_task()
        del self._begun[task]
        if task in self._late:
            self._late.discard(task)
            task.uncancel()
            if kind is asyncio.CancelledError:
                raise TimeoutError from error

    async def watch(self) -> None:
        """Cut short what is due, for as long as this runs."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(1.0, self.seconds / 4))
            now = loop.time()
            for task, began in list(self._begun.items()):
                if now - began <= self.seconds:
                    break
                if task not in self._late:
                    self._late.add(task)
                    task.cancel()


def _this_task() -> "asyncio.Task[object]":
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - requests run in tasks
    return task
