"""The time limit of requests. One check per second of all running requests costs less than a timer for each."""

import asyncio
from types import TracebackType


class Deadlines:
    """`with deadlines:` raises TimeoutError if the current task takes longer than `seconds` in the block."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._started_at: dict[asyncio.Task[object], float] = {}
        """In order of their start, and so in order of their deadlines."""
        self._timed_out: set[asyncio.Task[object]] = set()

    def __enter__(self) -> None:
        self._started_at[_current_task()] = asyncio.get_running_loop().time()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task = _current_task()
        del self._started_at[task]
        if task in self._timed_out:
            self._timed_out.discard(task)
            task.uncancel()
            if kind is asyncio.CancelledError:
                raise TimeoutError from error

    async def cancel_overdue(self) -> None:
        """Cancel the tasks that exceed the limit. Runs until it is cancelled itself."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(1.0, self.seconds / 4))
            now = loop.time()
            for task, started_at in list(self._started_at.items()):
                if now - started_at <= self.seconds:
                    break
                if task not in self._timed_out:
                    self._timed_out.add(task)
                    task.cancel()


def _current_task() -> "asyncio.Task[object]":
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - every request runs in a task
    return task
