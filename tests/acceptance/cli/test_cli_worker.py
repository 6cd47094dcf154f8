"""`holdfast worker`: a process that runs the background tasks of a database."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.testing.model import running_model

PROGRAM = [sys.executable, "-W", "error", "-m", "holdfast"]
TIMEOUT_SECONDS = 60
NO_WORKERS = holdfast.Settings(worker_threads=0)
"""Settings of a client that runs no tasks itself."""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a worker and waits until it prints that it is ready."""
    started: list[subprocess.Popen[str]] = []

    def start_worker(*args: str, **env: str) -> "subprocess.Popen[str]":
        own_env = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        process = subprocess.Popen(
            [*PROGRAM, "worker", *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=own_env | env,
        )
        started.append(process)
        assert process.stdout
        assert process.stdout.readline().startswith("Holdfast works on ")
        return process

    yield start_worker
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=TIMEOUT_SECONDS)


def commit(client: holdfast.Client, session_id: str = "chat") -> str:
    client.add_message(session_id, "user", "Deploy the billing service, never on Fridays.")
    return str(client.commit_session(session_id).task_id)


def test_a_worker_runs_the_tasks_of_other_processes_until_it_is_stopped(target: str, start: Start) -> None:
    with holdfast.connect(target, settings=NO_WORKERS) as client:
        before = commit(client)
        worker = start("--path", target)
        assert client.wait_for_task(before, TIMEOUT_SECONDS).status == "completed"
        after = commit(client)
        assert client.wait_for_task(after, TIMEOUT_SECONDS).status == "completed"
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(TIMEOUT_SECONDS) == 0
        assert client.get_task(commit(client)).status == "pending"


def test_a_draining_worker_exits_when_no_tasks_are_left(target: str, start: Start) -> None:
    with holdfast.connect(target, settings=NO_WORKERS) as client:
        tasks = [commit(client, f"chat_{number}") for number in range(5)]
        tasks += [commit(client, "chat_0")]
        no_wait = {"HOLDFAST_CLOSE_SECONDS": "0"}  # closing must not finish tasks that draining missed
        assert start("--path", target, "--drain", "--threads", "3", **no_wait).wait(TIMEOUT_SECONDS) == 0
        assert {client.get_task(task_id).status for task_id in tasks} == {"completed"}
        assert start("--path", target, "--drain").wait(TIMEOUT_SECONDS) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_worker_finishes_its_current_tasks(tmp_path: Path, start: Start, number: signal.Signals) -> None:
    with running_model() as model, holdfast.connect(tmp_path, settings=NO_WORKERS) as client:
        model.gate.clear()
        task_id = commit(client)
        env = {
            "HOLDFAST_MODEL_PROVIDER": "openai",
            "HOLDFAST_MODEL_NAME": "test",
            "HOLDFAST_MODEL_API_KEY": "key",
            "HOLDFAST_MODEL_BASE_URL": model.url,
        }
        worker = start("--path", str(tmp_path), "--threads", "1", **env)
        model.wait_for_calls(1)
        worker.send_signal(number)
        with pytest.raises(subprocess.TimeoutExpired):
            worker.wait(0.5)
        model.gate.set()
        assert worker.wait(TIMEOUT_SECONDS) == 0
        assert client.get_task(task_id).status == "completed"


def test_a_worker_prints_its_database_in_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [*PROGRAM, "worker", "--path", str(tmp_path), "--threads", "1", "--drain"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    assert done.stdout == f"Holdfast works on {tmp_path / 'holdfast.db'} with 1 thread; Ctrl-C stops it\n"
    assert done.stderr == ""


@pytest.mark.parametrize("args", [("--url", "http://127.0.0.1:9"), ("--threads", "0"), ("--threads", "many")])
def test_a_worker_needs_a_database_and_at_least_one_thread(run_cli: Callable[..., Any], args: tuple[str, ...]) -> None:
    done = run_cli("worker", *args)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)


def test_a_worker_rejects_settings_that_name_a_server(
    run_cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_URL", "http://127.0.0.1:9")
    done = run_cli("worker")
    assert (done.code, done.out) == (2, "")
    assert "http://127.0.0.1:9 is a server, which runs its own tasks; give a database with --path" in done.err
