"""Group commit: many callers share one writer."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast.store.drivers.group_commit import GroupCommit, PendingWrite


class Recorder:
    """A commit function that records its batches. It blocks until `resume` is set."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.entered, self.resume = threading.Event(), threading.Event()

    def commit(self, batch: list[PendingWrite[str]]) -> None:
        self.batches.append([write.work for write in batch])
        self.entered.set()
        assert self.resume.wait(10)
        for write in batch:
            if write.work.startswith("bad"):
                write.error = ValueError(write.work)
            else:
                write.outcome = write.work.upper()


def run_while_first_commits(recorder: Recorder, group: GroupCommit[str], works: list[str]) -> list[str]:
    """Run `works`, all of which queue while "first" is being committed. Return the outcomes."""
    with ThreadPoolExecutor(20) as threads:
        first = threads.submit(group.run, "first")
        assert recorder.entered.wait(10)
        others = [threads.submit(group.run, work) for work in works]
        _wait_until(lambda: len(group._waiting) == len(works))
        recorder.resume.set()
        return [first.result(10), *[str(other.exception(10) or other.result(10)) for other in others]]


def _wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(1_000):
        if condition():
            return
        time.sleep(0.005)
    raise AssertionError("the condition did not become true in time")


def test_waiting_writes_are_committed_in_one_batch() -> None:
    recorder = Recorder()
    group = GroupCommit(recorder.commit)
    assert run_while_first_commits(recorder, group, ["a", "b", "c"]) == ["FIRST", "A", "B", "C"]
    assert recorder.batches == [["first"], ["a", "b", "c"]]


def test_a_batch_has_a_maximum_size() -> None:
    recorder = Recorder()
    group = GroupCommit(recorder.commit, max_batch=2)
    run_while_first_commits(recorder, group, ["a", "b", "c"])
    assert recorder.batches == [["first"], ["a", "b"], ["c"]]


def test_each_caller_gets_its_own_outcome() -> None:
    recorder = Recorder()
    group = GroupCommit(recorder.commit)
    assert run_while_first_commits(recorder, group, ["a", "bad one", "c"]) == ["FIRST", "A", "bad one", "C"]


def test_an_exclusive_holder_shares_no_batch() -> None:
    recorder = Recorder()
    group = GroupCommit(recorder.commit)
    entered_alone = threading.Event()

    def hold() -> None:
        with group.exclusive():
            entered_alone.set()

    with ThreadPoolExecutor(4) as threads:
        threads.submit(group.run, "first")
        assert recorder.entered.wait(10)
        before = threads.submit(group.run, "before")
        _wait_until(lambda: len(group._waiting) == 1)
        holding = threads.submit(hold)
        _wait_until(lambda: len(group._waiting) == 2)
        after = threads.submit(group.run, "after")
        _wait_until(lambda: len(group._waiting) == 3)
        assert not entered_alone.is_set()
        recorder.resume.set()
        for future in (before, holding, after):
            future.result(10)
    assert recorder.batches == [["first"], ["before"], ["after"]]


def test_an_interrupted_leader_leaves_no_caller_waiting() -> None:
    entered, resume = threading.Event(), threading.Event()

    def commit(batch: list[PendingWrite[str]]) -> None:
        entered.set()
        assert resume.wait(10)
        if batch[0].work == "first":
            raise KeyboardInterrupt
        for write in batch:
            write.outcome = "done"

    group = GroupCommit(commit)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(group.run, "first")
        assert entered.wait(10)
        second = threads.submit(group.run, "second")
        _wait_until(lambda: len(group._waiting) == 1)
        resume.set()
        assert isinstance(first.exception(10), KeyboardInterrupt)
        assert second.result(10) == "done"


def test_an_interrupted_leader_makes_the_outcome_of_its_batch_unknown() -> None:
    recorder = Recorder()

    def commit(batch: list[PendingWrite[str]]) -> None:
        recorder.commit(batch)
        if len(batch) > 1:
            raise KeyboardInterrupt

    group = GroupCommit(commit)
    with ThreadPoolExecutor(3) as threads:
        threads.submit(group.run, "first")
        assert recorder.entered.wait(10)
        leader = threads.submit(group.run, "leader")
        _wait_until(lambda: len(group._waiting) == 1)
        follower = threads.submit(group.run, "follower")
        _wait_until(lambda: len(group._waiting) == 2)
        recorder.resume.set()
        assert isinstance(leader.exception(10), KeyboardInterrupt)
        assert "unknown" in str(follower.exception(10))


def test_an_interrupted_caller_passes_the_lead_to_the_next() -> None:
    """A KeyboardInterrupt may reach a thread just when it becomes the leader."""
    recorder = Recorder()
    recorder.resume.set()
    group = GroupCommit(recorder.commit)
    first, interrupted, waiting = PendingWrite("first"), PendingWrite("interrupted"), PendingWrite("waiting")
    group._leader = first
    for write in (interrupted, waiting):
        write.wake_lock = threading.Lock()
        write.wake_lock.acquire()
        group._waiting.append(write)
    group._finish([first], committed=True)
    assert group._leader is interrupted
    group._finish([interrupted], committed=False)
    assert group._leader is waiting
    assert waiting.wake_lock is not None
    assert waiting.wake_lock.acquire(timeout=1)


def test_an_interrupted_caller_leaves_the_queue() -> None:
    group = GroupCommit(Recorder().commit)
    write = PendingWrite("interrupted")
    group._leader = PendingWrite("first")
    group._waiting.append(write)
    group._finish([write], committed=False)
    assert not group._waiting


@pytest.mark.parametrize("threads", [1, 8])
def test_each_write_runs_exactly_once(threads: int) -> None:
    seen: list[int] = []

    def commit(batch: list[PendingWrite[int]]) -> None:
        for write in batch:
            seen.append(write.work)
            write.outcome = write.work

    group = GroupCommit(commit)
    with ThreadPoolExecutor(threads) as pool:
        assert list(pool.map(group.run, range(2_000))) == list(range(2_000))
    assert sorted(seen) == list(range(2_000))
