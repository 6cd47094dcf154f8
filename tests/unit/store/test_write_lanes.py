"""Lanes for writes that could not run with others."""

import threading
from collections.abc import Callable
from typing import Any

from holdfast.store.drivers.write_lanes import WriteLanes
from holdfast.store.drivers.write_queue import SubmittedWrite

TIMEOUT_SECONDS = 20


class HeldLanes:
    """Lanes whose runs wait until they are released. Records which writes were started, in order."""

    def __init__(self, *, threads: int = 4, per_account: int = 2) -> None:
        self.lanes = WriteLanes[str](self._run, threads=threads, per_account=per_account)
        self.started: list[str] = []
        self.max_running = 0
        self._running = 0
        self._gate = threading.Semaphore(0)
        self._changed = threading.Condition()

    def add(self, account: str, key: str, name: str) -> None:
        self.lanes.add(SubmittedWrite(name, lambda *_: None, key=(account, key)))

    def wait_for_started(self, count: int) -> list[str]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.started) >= count, TIMEOUT_SECONDS)
            return list(self.started)

    def release(self, runs: int) -> None:
        self._gate.release(runs)

    def finish(self) -> None:
        self._gate.release(1_000)
        self.lanes.close()

    def _run(self, writes: list[SubmittedWrite[Any]]) -> None:
        with self._changed:
            self.started += [write.work for write in writes]
            self._running += 1
            self.max_running = max(self.max_running, self._running)
            self._changed.notify_all()
        assert self._gate.acquire(timeout=TIMEOUT_SECONDS)
        with self._changed:
            self._running -= 1


def test_writes_of_one_key_run_in_order_and_use_one_thread() -> None:
    held = HeldLanes()
    held.add("acme", "chat", "0")
    assert held.wait_for_started(1) == ["0"]
    for number in range(1, 5):
        held.add("acme", "chat", f"{number}")
    assert ("acme", "chat") in held.lanes
    assert held.lanes.count_waiting() == 4
    held.finish()
    assert held.started == ["0", "1", "2", "3", "4"]
    assert held.max_running == 1
    assert ("acme", "chat") not in held.lanes


def test_an_account_uses_at_most_its_share_of_the_threads() -> None:
    held = HeldLanes(threads=4, per_account=2)
    for number in range(10):
        held.add("acme", f"s{number}", f"acme{number}")
    assert sorted(held.wait_for_started(2)) == ["acme0", "acme1"]
    held.add("rival", "chat", "rival")
    assert "rival" in held.wait_for_started(3)
    assert held.max_running == 3
    held.finish()
    assert len(held.started) == 11


def test_accounts_take_turns_when_all_threads_are_used() -> None:
    held = HeldLanes(threads=2, per_account=2)
    for number in range(4):
        held.add("acme", f"s{number}", f"acme{number}")
    held.wait_for_started(2)
    for account in ("rival", "third"):
        held.add(account, "chat", account)
    held.release(2)
    assert set(held.wait_for_started(4)[2:]) & {"rival", "third"}
    held.release(2)
    assert {"rival", "third"} <= set(held.wait_for_started(6))
    held.finish()


def test_writes_without_a_key_do_not_wait_for_each_other() -> None:
    held = HeldLanes()
    held.add("acme", "", "first")
    held.add("acme", "", "second")
    assert set(held.wait_for_started(2)) == {"first", "second"}
    held.finish()


def test_a_run_that_fails_leaves_its_lane_usable() -> None:
    started: list[str] = []
    done = threading.Semaphore(0)

    def fail(writes: list[SubmittedWrite[str]]) -> None:
        started.extend(write.work for write in writes)
        done.release()
        raise ZeroDivisionError

    lanes: WriteLanes[str] = WriteLanes(fail, threads=1, per_account=1)
    for name in ("first", "second"):
        lanes.add(SubmittedWrite(name, _ignore(), key=("acme", "chat")))
        assert done.acquire(timeout=TIMEOUT_SECONDS)
    lanes.close()
    assert started == ["first", "second"]


def _ignore() -> Callable[[Any, BaseException | None], None]:
    return lambda _outcome, _error: None
