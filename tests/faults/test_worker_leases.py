"""Task leases with slow, suspended, forked, closed and restarted workers, and with many workers."""

import os
import shutil
import signal
import subprocess
import sys
import threading
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
from holdfast.engine.tasks.workers import Workers
from holdfast.errors import NotFoundError
from holdfast.model.identity import Principal
from holdfast.store.database import Tx
from holdfast.store.tables.tasks import Claim
from holdfast.testing.clocks import advance_clock
from holdfast.testing.faults.disks import FaultSchedule, full_disk
from holdfast.testing.faults.watching import wait_for
from holdfast.testing.faults.workers.processes import (
    MESSAGES,
    SMALL_MODEL,
    ContextWatcher,
    KillingModel,
    add_and_commit,
    check_archived_once,
    check_context_complete,
    run_workers,
    stopping,
    suspend,
    wait_for_archives,
)
from holdfast.testing.faults.workers.program import WorkerOptions
from holdfast.testing.postgres import postgres_server
from holdfast.testing.server import running_server

SHORT_LEASE: dict[str, Any] = {"task_lease_seconds": 0.4, "worker_poll_seconds": 0.02}
LONG_LEASE: dict[str, Any] = {"task_lease_seconds": 60.0, "worker_poll_seconds": 0.02}
HOUR_MICROSECONDS = 3_600_000_000
FORKING_PROGRAM = str(Path(__file__).with_name("programs") / "forking_during_task.py")


@pytest.fixture
def model() -> Iterator[KillingModel]:
    model = KillingModel()
    with stopping(model):
        yield model


@pytest.fixture
def client(target: str) -> Iterator[Client]:
    """A client that commits and runs no tasks itself."""
    with holdfast.connect(target, settings=Settings(worker_threads=0)) as client:
        yield client


@pytest.fixture
def worker_options(target: str, tmp_path: Path, model: KillingModel) -> Callable[..., WorkerOptions]:
    def make(processes: int = 1, **settings: Any) -> WorkerOptions:
        all_settings = {**SMALL_MODEL, "model_base_url": model.url, "worker_threads": 1, **settings}
        return WorkerOptions(
            target=target, settings=all_settings, processes=processes, kill_folder=str(tmp_path / "killed")
        )

    return make


def test_a_worker_keeps_its_task_while_the_model_takes_longer_than_the_lease(
    client: Client, model: KillingModel, worker_options: Callable[..., WorkerOptions]
) -> None:
    (task_id,) = add_and_commit(client, "s", 1, count=2)
    model.gate.clear()
    with run_workers(worker_options(processes=3, **SHORT_LEASE)):
        model.wait_for_calls(1)
        deadline = time.monotonic() + 3 * SHORT_LEASE["task_lease_seconds"]
        while time.monotonic() < deadline:
            assert (model.calls, client.get_task(task_id).status) == (1, "running")
            time.sleep(0.02)
        model.gate.set()
        wait_for_archives(client, ["s"], 1)
    assert (model.calls, client.get_task(task_id).attempts) == (1, 1)


def suspend_until(check: Callable[[], None], pid: int) -> None:
    """Suspend a process until `check` passes. A process that is suspended during a write blocks all others: resume it
    and try again.
    """
    for _ in range(5):
        suspend(pid)
        with suppress(AssertionError):
            return check()
        os.kill(pid, signal.SIGCONT)
    return check()


def test_a_suspended_worker_that_resumes_after_its_lease_expired_changes_nothing(
    client: Client, model: KillingModel, worker_options: Callable[..., WorkerOptions]
) -> None:
    (task_id,) = add_and_commit(client, "s", 1)
    model.responds_to_all = False
    with (
        ContextWatcher(client, ["s"], MESSAGES),
        run_workers(worker_options(**SHORT_LEASE)) as suspended,
        run_workers(worker_options(**SHORT_LEASE)) as other,
    ):
        model.wait_for_calls(1)
        first, second = suspended.workers[0], other.workers[0]
        # A worker uses its process id as the key of the model.
        if model.requests[0].headers["authorization"] == f"Bearer {second}":
            first, second = second, first
        # The second call comes from the second worker, after the lease expired.
        suspend_until(lambda: model.wait_for_calls(2, timeout=3.0), first)
        before = client.get_task(task_id)
        model.released[first].set()
        os.kill(first, signal.SIGCONT)
        add_and_commit(client, "next", 1)
        # The third call comes from the first worker, which gave up its task and claimed the next. The second waits.
        model.wait_for_calls(3)
        after = client.get_task(task_id)
        assert (after.status, after.attempts) == ("running", 2)
        assert (after.stage, after.progress) == (before.stage, before.progress)
        model.released[second].set()
        wait_for_archives(client, ["s", "next"], 1)
    check_archived_once(client, "s", 1)
    requests = model.count_requests("s", 1)
    assert requests.total() == len(requests) + 1


def test_workers_in_many_processes_share_the_tasks_and_run_each_once(
    client: Client, model: KillingModel, worker_options: Callable[..., WorkerOptions]
) -> None:
    def has_called() -> bool:
        """Whether all four processes have called the model. Each uses its own id as the key."""
        return len({request.headers["authorization"] for request in model.requests}) == 4

    sessions = [f"s{number}" for number in range(24)]
    model.gate.clear()
    with run_workers(worker_options(processes=4, **{**LONG_LEASE, "worker_threads": 2})):
        for session_id in sessions:
            add_and_commit(client, session_id, 1, count=2)
        wait_for(has_called)
        model.gate.set()
        wait_for_archives(client, sessions, 1)
    for session_id in sessions:
        check_archived_once(client, session_id, 1)
    assert {count for name in sessions for count in model.count_requests(name, 1).values()} == {1}


def test_closing_a_client_releases_its_tasks_at_once(target: str, model: KillingModel) -> None:
    settings = Settings(**SMALL_MODEL, **LONG_LEASE, model_base_url=model.url, close_seconds=0)
    model.gate.clear()
    with holdfast.connect(target, settings=settings) as client:
        (task_id,) = add_and_commit(client, "s", 1, count=2)
        model.wait_for_calls(1)
        started = time.monotonic()
    assert time.monotonic() - started < 5
    model.gate.set()
    with holdfast.connect(target, settings=settings) as client:
        task = client.wait_for_task(task_id, seconds=20)
        assert (task.status, task.attempts) == ("completed", 1)
        check_archived_once(client, "s", 1)


def test_a_closing_client_does_not_claim_the_tasks_that_it_has_released(
    target: str, model: KillingModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its other thread tries to claim one between the release and the end of the client."""
    released, release, claim_next = threading.Event(), Workers._release_claims, Workers._claim_next

    def release_and_tell(workers: Workers) -> None:
        release(workers)
        released.set()
        time.sleep(0.2)

    def claim_after_release(workers: Workers) -> Claim | None:
        if workers._claims:
            released.wait(5)
        return claim_next(workers)

    monkeypatch.setattr(Workers, "_release_claims", release_and_tell)
    monkeypatch.setattr(Workers, "_claim_next", claim_after_release)
    model.gate.clear()
    settings = Settings(**SMALL_MODEL, **LONG_LEASE, model_base_url=model.url, close_seconds=0, worker_threads=2)
    with holdfast.connect(target, settings=settings) as client:
        (task_id,) = add_and_commit(client, "s", 1, count=2)
        model.wait_for_calls(1)
    model.gate.set()
    with holdfast.connect(target, settings=Settings(worker_threads=0)) as client:
        assert client.get_task(task_id).status == "pending"


def test_closing_a_client_waits_for_short_tasks(target: str) -> None:
    with holdfast.connect(target, settings=Settings(close_seconds=60)) as client:
        tasks = add_and_commit(client, "s", 3, count=2)
    with holdfast.connect(target, settings=Settings(worker_threads=0)) as client:
        assert [client.get_task(task_id).status for task_id in tasks] == ["completed"] * 3


def test_after_a_fork_the_parent_keeps_its_task_and_both_processes_run_tasks(target: str, model: KillingModel) -> None:
    model.behaviour = msgspec.structs.replace(model.behaviour, seconds=0.5)
    command = [sys.executable, FORKING_PROGRAM, target, model.url]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert model.calls == 4, "one call for each commit of the program"


def test_tasks_and_their_results_survive_a_restart(target: str) -> None:
    with holdfast.connect(target) as client:
        (done,) = add_and_commit(client, "done", 1, count=2)
        before = client.wait_for_task(done)
    with holdfast.connect(target, settings=Settings(worker_threads=0)) as client:
        (left,) = add_and_commit(client, "left", 1, count=2)
    with holdfast.connect(target) as client:
        assert client.get_task(done) == before
        assert client.wait_for_task(left).status == "completed"


def test_old_completed_tasks_are_deleted_but_failures_and_archives_are_kept(target: str) -> None:
    settings = Settings(worker_threads=0, task_retention_hours=24, task_attempts=1, close_seconds=60)
    engine = Engine(open_database(target, settings), settings)
    client = Client(LocalTransport(engine, Principal("default", "default", "root")))
    (failed,) = add_and_commit(client, "failed", 1, count=2)
    unreachable = {"model_provider": "openai", "model_name": "none", "model_base_url": "http://127.0.0.1:9/v1"}
    run_due_tasks(target, msgspec.structs.replace(settings, worker_threads=1, **unreachable))
    (cancelled,) = add_and_commit(client, "cancelled", 1, count=2)
    client.cancel_task(cancelled)
    (done,) = add_and_commit(client, "done", 1, count=2)
    run_due_tasks(target, msgspec.structs.replace(settings, worker_threads=1))
    (pending,) = add_and_commit(client, "pending", 1, count=2)
    all_tasks = {failed, cancelled, done, pending}
    advance_clock(engine.db, 23 * HOUR_MICROSECONDS)
    engine.delete_expired()
    assert {task.task_id for task in client.list_tasks()} == all_tasks
    advance_clock(engine.db, 2 * HOUR_MICROSECONDS)
    engine.delete_expired()
    assert {task.task_id for task in client.list_tasks()} == all_tasks - {done}
    with pytest.raises(NotFoundError):
        client.get_task(done)
    assert client.get_session_archive("done", "archive_001").overview
    assert client.retry_task(failed).status == "pending"
    client.close()


def run_due_tasks(target: str, settings: Settings) -> None:
    """Run all tasks that are due."""
    engine = Engine(open_database(target, settings), settings)
    engine.start_workers(polls=False)
    engine.close()


def has_failed_or_finished(disk: FaultSchedule, last_success: int, client: Client) -> bool:
    """Whether a write has failed, or both archives are done."""
    return disk.calls > last_success or client.get_session("s").commit_count == 2


def test_a_task_finishes_after_the_disk_was_full_at_any_of_its_writes(tmp_path: Path) -> None:
    origin, folder = tmp_path / "origin", tmp_path / "copy"
    with holdfast.connect(origin, settings=Settings(worker_threads=0)) as client:
        add_and_commit(client, "s", 2)
    settings = Settings(worker_threads=1, task_lease_seconds=0.02, task_backoff_seconds=0, worker_poll_seconds=0.01)
    with full_disk() as disk:
        run_due_tasks(str(shutil.copytree(origin, folder)), settings)
        writes = disk.calls
        shutil.rmtree(folder)
        assert writes > 20
        for number in range(0, writes, 3):
            shutil.copytree(origin, folder)
            engine = Engine(open_database(str(folder), settings), settings)
            client = Client(LocalTransport(engine, Principal("default", "default", "root")))
            last_success = disk.calls + number
            disk.start_failing(after=number)
            engine.start_workers(polls=False)
            wait_for(partial(has_failed_or_finished, disk, last_success, client))
            check_context_complete(client.get_session_context("s"), 2 * MESSAGES)
            disk.stop_failing()
            wait_for_archives(client, ["s"], 2)
            check_archived_once(client, "s", 2)
            client.close()
            shutil.rmtree(folder)


def test_workers_continue_after_the_database_was_down() -> None:
    with postgres_server() as server:
        settings = Settings(**SHORT_LEASE)
        with holdfast.connect(server.new_database(), settings=settings) as client:
            add_and_commit(client, "before", 1, count=2)
            wait_for_archives(client, ["before"], 1)
            server.kill()
            time.sleep(10 * settings.worker_poll_seconds)  # idle workers poll and fail
            server.restart()
            add_and_commit(client, "after", 2, count=2)
            wait_for_archives(client, ["after"], 2)


def test_deleting_a_session_while_its_task_runs_leaves_no_rows(target: str, model: KillingModel) -> None:
    settings = Settings(**SMALL_MODEL, **SHORT_LEASE, model_base_url=model.url)
    with holdfast.connect(target, settings=settings) as client:
        model.gate.clear()
        client.create_session("s", auto_commit_policy={"idle_timeout_seconds": 3_600})
        call = {"type": "tool", "tool_id": "x", "tool_name": "look", "tool_status": "running"}
        client.add_message("s", "assistant", parts=[call])
        add_and_commit(client, "s", 2)
        model.wait_for_calls(1)
        client.delete_session("s")
        model.gate.set()
        (task_id,) = add_and_commit(client, "next", 1)
        assert client.wait_for_task(task_id).status == "completed"
        client.delete_session("next")
    with closing(open_database(target, settings)) as database:
        for table in ("sessions", "messages", "archives", "tasks", "steps", "watches", "calls"):
            assert database.read("default", partial(count_rows, table=table)) == 0, table


def count_rows(tx: Tx, table: str) -> int:
    (rows,) = tx.one(f"SELECT COUNT(*) FROM {table} WHERE account_id = ?", (tx.account,)) or (None,)
    assert isinstance(rows, int)
    return rows


def test_a_task_that_is_cancelled_while_it_runs_leaves_no_partial_results(target: str, model: KillingModel) -> None:
    settings = Settings(**SMALL_MODEL, **SHORT_LEASE, model_base_url=model.url)
    with holdfast.connect(target, settings=settings) as client:
        model.gate.clear()
        (task_id,) = add_and_commit(client, "s", 1)
        model.wait_for_calls(1)
        cancelled = client.cancel_task(task_id)
        model.gate.set()
        (other,) = add_and_commit(client, "next", 1)
        assert client.wait_for_task(other).status == "completed"
        assert client.get_task(task_id) == cancelled
        check_context_complete(client.get_session_context("s"), MESSAGES)
        assert [archive.token_usage.total_tokens for archive in client.list_archives("s")] == [0]
        client.retry_task(task_id)
        assert client.wait_for_task(task_id).status == "completed"


def test_a_server_that_shuts_down_releases_its_tasks(tmp_path: Path, model: KillingModel) -> None:
    settings = {**SMALL_MODEL, **LONG_LEASE, "model_base_url": model.url, "close_seconds": 0.1}
    model.gate.clear()
    with running_server(tmp_path, **settings) as server, holdfast.connect(server.url) as client:
        (task_id,) = add_and_commit(client, "s", 1, count=2)
        model.wait_for_calls(1)
        assert server.stop() == 0
    model.gate.set()
    with running_server(tmp_path, **settings) as server, holdfast.connect(server.url) as client:
        task = client.wait_for_task(task_id, seconds=20)
        assert (task.status, task.attempts) == ("completed", 1)
