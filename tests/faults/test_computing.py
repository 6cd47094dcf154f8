"""Summaries that loop, allocate without end or lose their process: the server and all other tasks go on."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.client.sync.client import Client
from holdfast.testing.faults.watching import wait_for
from holdfast.testing.server import ServerProcess, running_server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

PROGRAM = str(Path(__file__).with_name("programs") / "hostile_holdfast.py")
FAST: dict[str, Any] = {
    "compute_seconds": 1,
    "compute_memory_mb": 256,
    "task_backoff_seconds": 0.05,
    "worker_poll_seconds": 0.05,
}
OTHERS = 6
COMPUTING_TICKS = 30
"""CPU time, in hundredths of a second, after which a child certainly runs its job and does not only start it."""


@contextmanager
def hostile_server(target: str, **settings: Any) -> Iterator[tuple[ServerProcess, Client]]:
    with (
        running_server(target, program=[PROGRAM], **{**FAST, **settings}) as server,
        holdfast.connect(server.url) as client,
    ):
        yield server, client


def commit(client: Client, session_id: str, text: str) -> str:
    client.add_message(session_id, "user", text)
    return str(client.commit_session(session_id).task_id)


def children(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            found += [int(child) for child in (task / "children").read_text("ascii").split()]
    return found


def has_ended(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text("utf-8").rsplit(")", 1)[1].split()[0]
    except OSError:
        return True
    return state == "Z"


def wait_for_computing(pid: int) -> int:
    """Wait until the only child of a process runs a job that uses the CPU, and return the child's process id."""
    wait_for(lambda: len(children(pid)) == 1)
    (child,) = children(pid)
    before = cpu_ticks(child)
    wait_for(lambda: cpu_ticks(child) - before > COMPUTING_TICKS)
    return child


def cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def test_hostile_summaries_fail_alone_and_everything_else_goes_on(target: str) -> None:
    limits = {"loop": "1 s of CPU time", "loop in C": "1 s of CPU time", "allocate": "256 MB of memory"}
    with hostile_server(target) as (server, client):
        hostile = {demand: commit(client, demand.replace(" ", "-"), demand) for demand in limits}
        others = [commit(client, f"s{number}", f"We chose port {number}.") for number in range(OTHERS)]
        slowest = 0.0
        while any(client.get_task(task).status in {"pending", "running"} for task in hostile.values()):
            started = time.monotonic()
            client.check_health()
            client.add_message("appended", "user", "still served")
            slowest = max(slowest, time.monotonic() - started)
            time.sleep(0.05)
        for demand, task_id in hostile.items():
            task = client.get_task(task_id)
            assert task.status == "failed"
            assert task.error
            assert limits[demand] in task.error
            assert client.get_session_context(task.resource_id).messages[0].text == demand  # nothing is lost
        assert [client.wait_for_task(other).status for other in others] == ["completed"] * OTHERS
        assert slowest < 5  # the limits are seconds apart; this is for a machine that is very busy
        assert server.stop() == 0


def test_a_summary_that_always_ends_its_process_fails_after_a_few_attempts(tmp_path: Path) -> None:
    with hostile_server(str(tmp_path / "x.db"), task_backoff_seconds=0.001) as (_, client):
        task = client.wait_for_task(commit(client, "hostile", "exit"))
        assert (task.status, task.attempts) == ("failed", 10)
        assert "exited with code 3" in str(task.error)
        assert client.wait_for_task(commit(client, "other", "We chose port 4.")).status == "completed"


@pytest.mark.rounds
def test_a_child_killed_at_many_moments_only_delays_the_summaries(target: str, *, is_soak: bool) -> None:
    delays = [0.05 * number for number in range(40)] if is_soak else [0.0, 0.1, 0.25, 0.45]
    with hostile_server(target) as (server, client):
        tasks: list[str] = []
        stop = threading.Event()

        def kill() -> None:
            for delay in delays:
                wait_for(lambda: stop.is_set() or bool(children(server.process.pid)))
                time.sleep(delay)  # while it starts, loads the vectors, summarises or waits
                for child in children(server.process.pid):
                    with suppress(ProcessLookupError):
                        os.kill(child, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        for number in range(4 * len(delays)):
            tasks.append(commit(client, f"s{number}", f"We chose port {number}. " * 50))
            time.sleep(0.05)
        killer.join()
        stop.set()
        ended = [client.wait_for_task(task, 120) for task in tasks]
        assert [task.status for task in ended] == ["completed"] * len(tasks)
        assert server.stop() == 0


def test_a_stopped_child_is_replaced_and_its_summary_is_retried(target: str) -> None:
    with hostile_server(target) as (server, client):
        assert client.wait_for_task(commit(client, "first", "We chose port 1.")).status == "completed"
        (child,) = children(server.process.pid)
        os.kill(child, signal.SIGSTOP)
        task = client.wait_for_task(commit(client, "second", "We chose port 2."), 120)
        assert task.status == "completed"
        assert task.attempts > 1
        assert has_ended(child)
        assert server.stop() == 0


@pytest.mark.parametrize(("demand", "way"), [("loop in C", "stop"), ("loop in C", "kill"), ("loop", "kill")])
def test_no_process_is_left_when_the_server_ends_during_a_summary(tmp_path: Path, demand: str, way: str) -> None:
    with hostile_server(str(tmp_path / "holdfast.db"), compute_seconds=600, close_seconds=0.1) as (server, client):
        commit(client, "s", demand)
        child = wait_for_computing(server.process.pid)
        if way == "stop":
            assert server.stop() == 0
        else:
            server.kill()
        wait_for(lambda: has_ended(child))


def test_no_process_is_left_when_a_worker_is_killed_during_a_summary(tmp_path: Path) -> None:
    target = str(tmp_path / "holdfast.db")
    with holdfast.connect(target, settings=holdfast.Settings(worker_threads=0)) as client:
        commit(client, "s", "loop in C")
    worker = subprocess.Popen(
        [sys.executable, PROGRAM, "worker", "--path", target],
        stdout=subprocess.DEVNULL,
        cwd=tmp_path,
    )
    try:
        child = wait_for_computing(worker.pid)
        worker.kill()
        wait_for(lambda: has_ended(child))
    finally:
        worker.kill()
        worker.wait(30)


def test_ctrl_c_does_not_reach_the_child_and_the_server_finishes_its_summary(tmp_path: Path) -> None:
    with hostile_server(str(tmp_path / "holdfast.db")) as (server, client):
        client.wait_for_task(commit(client, "s", "We chose port 1."))
        (child,) = children(server.process.pid)
        os.kill(child, signal.SIGINT)
        os.kill(child, signal.SIGTERM)
        assert client.wait_for_task(commit(client, "s", "We chose port 2.")).status == "completed"
        assert children(server.process.pid) == [child]
        assert os.getpgid(child) != os.getpgid(server.process.pid)
        assert server.stop() == 0
