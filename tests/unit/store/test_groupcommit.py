"""Many callers, one writer."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast.store.drivers.group_commit import GroupCommit, Job


class Recorder:
    """Commits by writing down each batch; holds the first one until told to go on."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.entered, self.go_on = threading.Event(), threading.Event()

    def commit(self, batch: list[Job[str]]) -> None:
        self.batches.append([job.work for job in batch])
        self.entered.set()
        assert self.go_on.wait(10)
        for job in batch:
            if job.work.startswith("bad"):
                job.error = ValueError(job.work)
            else:
                job.outcome = job.work.upper()


def waiting_behind_the_first(recorder: Recorder, group: GroupCommit[str], works: list[str]) -> list[str]:
    """Run `works`, all of which arrive while "first" is being committed."""
    with ThreadPoolExecutor(20) as threads:
        first = threads.submit(group.run, "first")
        assert recorder.entered.wait(10)
        others = [threads.submit(group.run, work) for work in works]
        _until(lambda: len(group._waiting) == len(works))
        recorder.go_on.set()
        return [first.result(10), *[str(other.exception(10) or other.result(10)) for other in others]]


def _until(holds: object) -> None:
    for _ in range(1_000):
        if holds():  # type: ignore[operator]
            return
        time.sleep(0.005)
    raise AssertionError("it never came to that")


def test_those_who_wait_are_committed_together() -> None:
    recorder = Recorder()
    group = GroupCommit(recorder.commit)
    assert waiting_behind_the_first(recorder, group, ["a", "b", "c"]) == ["FIRST", "A", "B", "C"]
    assert recorder.batches == [["first"], ["a", "b", "c"]]


def test_a_batch_has_a_limit() -> None:
    recorder = Recorder()
    group = GroupCommit(recorder.commit, most=2)
    waiting_behind_the_first(recorder, group, ["a", "b", "c"])
    assert recorder.batches == [["first"], ["a", "b"], ["c"]]


def test_each_caller_gets_its_own_outcome() -> None:
    recorder = Recorder()
    group = GroupCommit(recorder.commit)
    assert waiting_behind_the_first(recorder, group, ["a", "bad one", "c"]) == ["FIRST", "A", "bad one", "C"]


def test_who_has_the_writer_alone_is_not_joined() -> None:
    recorder = Recorder()
    group = GroupCommit(recorder.commit)
    alone = threading.Event()

    def hold() -> None:
        with group.exclusive():
            alone.set()

    with ThreadPoolExecutor(4) as threads:
        threads.submit(group.run, "first")
        assert recorder.entered.wait(10)
        before = threads.submit(group.run, "before")
        _until(lambda: len(group._waiting) == 1)
        holding = threads.submit(hold)
        _until(lambda: len(group._waiting) == 2)
        after = threads.submit(group.run, "after")
        _until(lambda: len(group._waiting) == 3)
        assert not alone.is_set()
        recorder.go_on.set()
        for each in (before, holding, after):
            each.result(10)
    assert recorder.batches == [["first"], ["before"], ["after"]]


def test_a_leader_that_is_interrupted_leaves_nobody_waiting() -> None:
    entered, go_on = threading.Event(), threading.Event()

    def commit(batch: list[Job[str]]) -> None:
        entered.set()
        assert go_on.wait(10)
        if batch[0].work == "first":
            raise KeyboardInterrupt
        for job in batch:
            job.outcome = "done"

    group = GroupCommit(commit)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(group.run, "first")
        assert entered.wait(10)
        second = threads.submit(group.run, "second")
        _until(lambda: len(group._waiting) == 1)
        go_on.set()
        assert isinstance(first.exception(10), KeyboardInterrupt)
        assert second.result(10) == "done"


def test_whose_leader_is_interrupted_is_told_and_not_taken_for_done() -> None:
    recorder = Recorder()

    def commit(batch: list[Job[str]]) -> None:
        recorder.commit(batch)
        if len(batch) > 1:
            raise KeyboardInterrupt

    group = GroupCommit(commit)
    with ThreadPoolExecutor(3) as threads:
        threads.submit(group.run, "first")
        assert recorder.entered.wait(10)
        leader = threads.submit(group.run, "leader")
        _until(lambda: len(group._waiting) == 1)
        led = threads.submit(group.run, "led")
        _until(lambda: len(group._waiting) == 2)
        recorder.go_on.set()
        assert isinstance(leader.exception(10), KeyboardInterrupt)
        assert "unknown" in str(led.exception(10))


def test_a_caller_that_gives_up_waiting_passes_the_lead_on() -> None:
    """As when Ctrl-C reaches a thread just as it was chosen to lead."""
    recorder = Recorder()
    recorder.go_on.set()
    group = GroupCommit(recorder.commit)
    first, quitter, waiting = Job("first"), Job("quitter"), Job("waiting")
    group._leader = first
    for job in (quitter, waiting):
        job.wake = threading.Lock()
        job.wake.acquire()
        group._waiting.append(job)
    group._leave([first], committed=True)
    assert group._leader is quitter
    group._leave([quitter], committed=False)
    assert group._leader is waiting
    assert waiting.wake is not None
    assert waiting.wake.acquire(timeout=1)


def test_a_caller_that_gives_up_waiting_leaves_the_queue() -> None:
    group = GroupCommit(Recorder().commit)
    job = Job("quitter")
    group._leader = Job("first")
    group._waiting.append(job)
    group._leave([job], committed=False)
    assert not group._waiting


@pytest.mark.parametrize("threads", [1, 8])
def test_nothing_is_run_twice_or_never(threads: int) -> None:
    seen: list[int] = []

    def commit(batch: list[Job[int]]) -> None:
        for job in batch:
            seen.append(job.work)
            job.outcome = job.work

    group = GroupCommit(commit)
    with ThreadPoolExecutor(threads) as pool:
        assert list(pool.map(group.run, range(2_000))) == list(range(2_000))
    assert sorted(seen) == list(range(2_000))
