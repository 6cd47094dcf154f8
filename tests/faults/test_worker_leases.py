"""Who has a task and until when: slow, frozen, forked, closed and restarted workers, and many at once."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast.client.local import LocalTransport
from holdfast.client.sync.client import Client
from holdfast.composition import open_database
from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.engine.gate.ids import system_clock
from holdfast.errors import NotFoundError
from holdfast.model.identity import Principal
from holdfast.store.database import Tx
from holdfast.testing.faults.disks import Trouble, full_disk
from holdfast.testing.faults.watching import wait_for
from holdfast.testing.faults.worker import Orders
from holdfast.testing.faults.workers import (
    MESSAGES,
    READS_LITTLE,
    FatalModel,
    Watch,
    check_done_once,
    check_whole,
    commit,
    freeze,
    running,
    wait_until_done,
    working,
)
from holdfast.testing.postgres import postgres_server
from holdfast.testing.server import running_server

SHORT: dict[str, Any] = {"task_lease_seconds": 0.4, "worker_poll_seconds": 0.02}
LONG: dict[str, Any] = {"task_lease_seconds": 60.0, "worker_poll_seconds": 0.02}
HOUR = 3_600_000_000
FORK = str(Path(__file__).with_name("programs") / "working_fork.py")


@pytest.fixture
def model() -> Iterator[FatalModel]:
    model = FatalModel()
    with running(model):
        yield model


@pytest.fixture
def client(target: str) -> Iterator[Client]:
    """Somebody who commits and leaves the work to others."""
    with holdfast.connect(target, settings=Settings(worker_threads=0)) as client:
        yield client


@pytest.fixture
def orders(target: str, tmp_path: Path, model: FatalModel) -> Callable[..., Orders]:
    def orders(processes: int = 1, **settings: Any) -> Orders:
        chosen = {**READS_LITTLE, "model_base_url": model.url, "worker_threads": 1, **settings}
        return Orders(target=target, settings=chosen, processes=processes, marks=str(tmp_path / "marks"))

    return orders


def test_a_task_stays_with_its_worker_while_the_model_takes_longer_than_the_lease(
    client: Client, model: FatalModel, orders: Callable[..., Orders]
) -> None:
    (task_id,) = commit(client, "s", 1, count=2)
    model.gate.clear()
    with working(orders(processes=3, **SHORT)):
        model.wait_for_calls(1)
        deadline = time.monotonic() + 3 * SHORT["task_lease_seconds"]
        while time.monotonic() < deadline:
            assert (model.calls, client.get_task(task_id).status) == (1, "running")
            time.sleep(0.02)
        model.gate.set()
        wait_until_done(client, ["s"], 1)
    assert (model.calls, client.get_task(task_id).attempts) == (1, 1)


def freeze_until(happens: Callable[[], None], pid: int) -> None:
    """Freeze a process; again, if it was in the middle of a write, which holds everybody up."""
    for _ in range(5):
        freeze(pid)
        with suppress(AssertionError):
            return happens()
        os.kill(pid, signal.SIGCONT)
    return happens()


def test_a_frozen_worker_that_comes_back_after_its_lease_changes_nothing(
    client: Client, model: FatalModel, orders: Callable[..., Orders]
) -> None:
    (task_id,) = commit(client, "s", 1)
    model.answers_all = False
    with Watch(client, ["s"], MESSAGES), working(orders(**SHORT)) as frozen, working(orders(**SHORT)) as other:
        model.wait_for_calls(1)
        first, second = frozen.workers[0], other.workers[0]
        if model.requests[0].headers["authorization"] == f"Bearer {second}":
            first, second = second, first
        freeze_until(lambda: model.wait_for_calls(2, patience=3.0), first)  # by the second, as the lease is over
        before = client.get_task(task_id)
        model.may_have[first].set()
        os.kill(first, signal.SIGCONT)
        commit(client, "next", 1)
        model.wait_for_calls(3)  # the first has given up and taken what came next, for the second is held
        after = client.get_task(task_id)
        assert (after.status, after.attempts) == ("running", 2)
        assert (after.stage, after.progress) == (before.stage, before.progress)
        model.may_have[second].set()
        wait_until_done(client, ["s", "next"], 1)
    check_done_once(client, "s", 1)
    asked = model.asked_for("s", 1)
    assert asked.total() == len(asked) + 1


def test_workers_in_many_processes_share_the_work_and_do_none_of_it_twice(
    client: Client, model: FatalModel, orders: Callable[..., Orders]
) -> None:
    sessions = [f"s{number}" for number in range(24)]
    with working(orders(processes=4, **{**LONG, "worker_threads": 2})):
        for session_id in sessions:
            commit(client, session_id, 1, count=2)
        wait_until_done(client, sessions, 1)
    for session_id in sessions:
        check_done_once(client, session_id, 1)
    assert {asked for name in sessions for asked in model.asked_for(name, 1).values()} == {1}
    assert len({asked.headers["authorization"] for asked in model.requests}) == 4


def test_closing_a_client_hands_back_at_once_what_it_has_in_hand(target: str, model: FatalModel) -> None:
    settings = Settings(**READS_LITTLE, **LONG, model_base_url=model.url, close_seconds=0)
    model.gate.clear()
    with holdfast.connect(target, settings=settings) as client:
        (task_id,) = commit(client, "s", 1, count=2)
        model.wait_for_calls(1)
        since = time.monotonic()
    assert time.monotonic() - since < 5
    model.gate.set()
    with holdfast.connect(target, settings=settings) as client:
        task = client.wait_for_task(task_id, seconds=20)
        assert (task.status, task.attempts) == ("completed", 1)
        check_done_once(client, "s", 1)


def test_closing_a_client_lets_short_work_finish(target: str) -> None:
    with holdfast.connect(target, settings=Settings(close_seconds=60)) as client:
        tasks = commit(client, "s", 3, count=2)
    with holdfast.connect(target, settings=Settings(worker_threads=0)) as client:
        assert [client.get_task(task_id).status for task_id in tasks] == ["completed"] * 3


def test_a_fork_takes_nothing_from_its_parent_and_both_go_on_working(target: str, model: FatalModel) -> None:
    model.behaviour = msgspec.structs.replace(model.behaviour, seconds=0.5)
    command = [sys.executable, FORK, target, model.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert model.calls == 4


def test_tasks_and_their_results_survive_a_restart(target: str) -> None:
    with holdfast.connect(target) as client:
        (done,) = commit(client, "done", 1, count=2)
        before = client.wait_for_task(done)
    with holdfast.connect(target, settings=Settings(worker_threads=0)) as client:
        (left,) = commit(client, "left", 1, count=2)
    with holdfast.connect(target) as client:
        assert client.get_task(done) == before
        assert client.wait_for_task(left).status == "completed"


def test_ended_tasks_are_forgotten_by_age_but_failures_and_archives_stay(target: str) -> None:
    settings = Settings(worker_threads=0, task_retention_hours=24, task_attempts=1, close_seconds=60)
    now = system_clock()
    engine = Engine(open_database(target, settings), settings, clock=lambda: now)
    client = Client(LocalTransport(engine, Principal("default", "default", "root")))
    (failed,) = commit(client, "failed", 1, count=2)
    dead = {"model_provider": "openai", "model_name": "none", "model_base_url": "http://127.0.0.1:9/v1"}
    work(target, msgspec.structs.replace(settings, worker_threads=1, **dead))
    (cancelled,) = commit(client, "cancelled", 1, count=2)
    client.cancel_task(cancelled)
    (done,) = commit(client, "done", 1, count=2)
    work(target, msgspec.structs.replace(settings, worker_threads=1))
    (pending,) = commit(client, "pending", 1, count=2)
    everything = {failed, cancelled, done, pending}
    now += 23 * HOUR
    engine.tidy()
    assert {task.task_id for task in client.list_tasks()} == everything
    now += 2 * HOUR
    engine.tidy()
    assert {task.task_id for task in client.list_tasks()} == everything - {done}
    with pytest.raises(NotFoundError):
        client.get_task(done)
    assert client.get_session_archive("done", "archive_001").overview
    assert client.retry_task(failed).status == "pending"
    client.close()


def work(target: str, settings: Settings) -> None:
    """Do all that is due, and end."""
    engine = Engine(open_database(target, settings), settings)
    engine.work(polls=False)
    engine.close()


def struck_or_done(disk: Trouble, last: int, client: Client) -> bool:
    return disk.calls > last or client.get_session("s").commit_count == 2


def test_a_disk_that_is_full_at_any_write_of_the_work_loses_nothing_and_the_work_is_done_later(tmp_path: Path) -> None:
    origin, place = tmp_path / "origin", tmp_path / "place"
    with holdfast.connect(origin, settings=Settings(worker_threads=0)) as client:
        commit(client, "s", 2)
    settings = Settings(worker_threads=1, task_lease_seconds=0.02, task_backoff_seconds=0, worker_poll_seconds=0.01)
    with full_disk() as disk:
        work(str(shutil.copytree(origin, place)), settings)
        writes = disk.calls
        shutil.rmtree(place)
        assert writes > 20
        for number in range(0, writes, 3):
            shutil.copytree(origin, place)
            engine = Engine(open_database(str(place), settings), settings)
            client = Client(LocalTransport(engine, Principal("default", "default", "root")))
            last = disk.calls + number
            disk.begin(after=number)
            engine.work(polls=False)
            wait_for(partial(struck_or_done, disk, last, client))
            check_whole(client.get_session_context("s"), 2 * MESSAGES)
            disk.end()
            wait_until_done(client, ["s"], 2)
            check_done_once(client, "s", 2)
            client.close()
            shutil.rmtree(place)


def test_workers_go_on_after_the_database_was_away() -> None:
    with postgres_server() as server:
        settings = Settings(**SHORT)
        with holdfast.connect(server.new_database(), settings=settings) as client:
            commit(client, "before", 1, count=2)
            wait_until_done(client, ["before"], 1)
            server.kill()
            time.sleep(10 * settings.worker_poll_seconds)  # idle workers look, and find nothing
            server.restart()
            commit(client, "after", 2, count=2)
            wait_until_done(client, ["after"], 2)


def test_a_session_that_is_deleted_while_its_task_is_in_hand_leaves_nothing(target: str, model: FatalModel) -> None:
    settings = Settings(**READS_LITTLE, **SHORT, model_base_url=model.url)
    with holdfast.connect(target, settings=settings) as client:
        model.gate.clear()
        client.create_session("s", auto_commit_policy={"idle_timeout_seconds": 3_600})
        call = {"type": "tool", "tool_id": "x", "tool_name": "look", "tool_status": "running"}
        client.add_message("s", "assistant", parts=[call])
        commit(client, "s", 2)
        model.wait_for_calls(1)
        client.delete_session("s")
        model.gate.set()
        (task_id,) = commit(client, "next", 1)
        assert client.wait_for_task(task_id).status == "completed"
        client.delete_session("next")
    with closing(open_database(target, settings)) as database:
        for table in ("sessions", "messages", "archives", "tasks", "steps", "watches", "calls"):
            assert database.read("default", partial(count, table=table)) == 0, table


def count(tx: Tx, table: str) -> int:
    (found,) = tx.one(f"SELECT COUNT(*) FROM {table} WHERE account_id = ?", (tx.account,)) or (None,)
    assert isinstance(found, int)
    return found


def test_a_task_that_is_cancelled_while_it_is_in_hand_shows_nothing_of_what_was_done(
    target: str, model: FatalModel
) -> None:
    settings = Settings(**READS_LITTLE, **SHORT, model_base_url=model.url)
    with holdfast.connect(target, settings=settings) as client:
        model.gate.clear()
        (task_id,) = commit(client, "s", 1)
        model.wait_for_calls(1)
        cancelled = client.cancel_task(task_id)
        model.gate.set()
        (other,) = commit(client, "next", 1)
        assert client.wait_for_task(other).status == "completed"
        assert client.get_task(task_id) == cancelled
        check_whole(client.get_session_context("s"), MESSAGES)
        assert [archive.token_usage.total_tokens for archive in client.list_archives("s")] == [0]
        client.retry_task(task_id)
        assert client.wait_for_task(task_id).status == "completed"


def test_a_server_that_is_told_to_stop_hands_back_what_it_has_in_hand(tmp_path: Path, model: FatalModel) -> None:
    settings = {**READS_LITTLE, **LONG, "model_base_url": model.url, "close_seconds": 0.1}
    model.gate.clear()
    with running_server(tmp_path, **settings) as server, holdfast.connect(server.url) as client:
        (task_id,) = commit(client, "s", 1, count=2)
        model.wait_for_calls(1)
        assert server.stop() == 0
    model.gate.set()
    with running_server(tmp_path, **settings) as server, holdfast.connect(server.url) as client:
        task = client.wait_for_task(task_id, seconds=20)
        assert (task.status, task.attempts) == ("completed", 1)
