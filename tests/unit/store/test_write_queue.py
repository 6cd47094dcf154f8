"""The queue of submitted writes, with several threads that commit them."""

import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.store.drivers.write_queue import SubmittedWrite, WriteQueue

ROUNDS = 3_000


@pytest.fixture
def frequent_thread_switches() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("frequent_thread_switches")
def test_every_write_gets_its_reply_while_several_threads_empty_the_queue() -> None:
    queue = WriteQueue[int](lambda _batch: None, threads=3)
    try:
        for number in range(ROUNDS):
            replies = threading.Semaphore(0)

            def reply(_outcome: Any, _error: BaseException | None, replies: threading.Semaphore = replies) -> None:
                replies.release()

            for _ in range(2):
                queue.put([SubmittedWrite(number, reply)])
            for _ in range(2):
                assert replies.acquire(timeout=30), "a write waits for the next one to be submitted"
        assert queue.count_waiting() == 0
    finally:
        queue.close()
