"""Threads that users share fairly."""

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from holdfast.errors import DeadlineExceededError, ResourceExhaustedError
from holdfast.http import fair_threads
from holdfast.http.fair_threads import FairThreads, User, Work
from holdfast.store.database import Cancellation

ALICE, BOB, CAROL = ("acme", "alice"), ("acme", "bob"), ("other", "carol")


class Recorder:
    """Submits work that blocks until it is released, and records the order in which it starts."""

    def __init__(self, threads: FairThreads) -> None:
        self.threads = threads
        self.started: list[User] = []
        self.replies: list[tuple[Any, BaseException | None]] = []
        self._release = threading.Semaphore(0)
        self._changed = threading.Condition()

    def submit(self, user: User, count: int = 1, cancellation: Cancellation | None = None) -> list[Work]:
        works = [
            Work(user, lambda: self._block(user), self._reply, cancellation or Cancellation()) for _ in range(count)
        ]
        for work in works:
            self.threads.submit(work)
        return works

    def release(self, count: int = 1) -> None:
        self._release.release(count)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, 10)

    def _block(self, user: User) -> User:
        with self._changed:
            self.started.append(user)
            self._changed.notify_all()
        assert self._release.acquire(timeout=10)
        return user

    def _reply(self, result: Any, error: BaseException | None) -> None:
        with self._changed:
            self.replies.append((result, error))
            self._changed.notify_all()


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    threads = FairThreads(16, "test")
    recorder = Recorder(threads)
    yield recorder
    recorder.release(10_000)
    threads.close()


def test_one_user_leaves_threads_for_others(recorder: Recorder) -> None:
    recorder.submit(ALICE, 50)
    recorder.wait_for(lambda: len(recorder.started) == 12)
    recorder.submit(BOB, 50)
    recorder.wait_for(lambda: len(recorder.started) == 15)
    recorder.submit(CAROL, 50)
    recorder.wait_for(lambda: len(recorder.started) == 16)
    assert [recorder.started.count(user) for user in (ALICE, BOB, CAROL)] == [12, 3, 1]


def test_users_whose_work_waits_take_turns(recorder: Recorder) -> None:
    recorder.submit(ALICE, 12)
    recorder.submit(BOB, 3)
    recorder.submit(CAROL, 1)
    recorder.wait_for(lambda: len(recorder.started) == 16)
    recorder.submit(("dave", "1"), 30)
    recorder.submit(("dave", "2"), 1)
    recorder.submit(("dave", "3"), 1)
    recorder.release(4)
    recorder.wait_for(lambda: len(recorder.started) == 20)
    assert {("dave", "2"), ("dave", "3")} <= set(recorder.started[16:])


def test_the_waiting_work_of_a_user_is_limited(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_threads, "MAX_WAITING_PER_USER", 10)
    recorder.submit(ALICE, 22)
    with pytest.raises(ResourceExhaustedError, match="wait for a response"):
        recorder.submit(ALICE)
    recorder.submit(BOB)


def test_cancelled_work_is_not_started(recorder: Recorder) -> None:
    cancellation = Cancellation()
    recorder.submit(ALICE, 12)
    (discarded,) = recorder.submit(ALICE, 1)
    recorder.submit(ALICE, 1, cancellation)
    cancellation.is_requested = True
    recorder.threads.discard(discarded)
    recorder.release(12)
    recorder.wait_for(lambda: len(recorder.replies) == 13)
    assert len(recorder.started) == 12
    errors = [error for _, error in recorder.replies if error is not None]
    assert [type(error) for error in errors] == [DeadlineExceededError]


def test_closing_finishes_the_work_of_a_user_in_order() -> None:
    threads = FairThreads(1, "test")
    results: list[int] = []
    for number in range(100):
        threads.submit(Work(ALICE, partial(int, number), lambda result, _: results.append(result), Cancellation()))
    threads.close()
    assert results == list(range(100))


def test_work_that_failed_keeps_nothing_in_memory() -> None:
    """Without a run of the garbage collector: a server runs it seldom, and bodies are large."""

    class Body:
        pass

    def fail(_body: Body) -> None:
        raise ValueError

    def run() -> "weakref.ref[Body]":
        body = Body()
        Work(("acme", "alice"), partial(fail, body), lambda *_: None, Cancellation()).run()
        return weakref.ref(body)

    gc.disable()
    try:
        assert run()() is None
    finally:
        gc.enable()
