"""`holdfast worker`: a process that does what others left to be done."""

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
PATIENCE = 60
IDLE = holdfast.Settings(worker_threads=0)
"""Of a client that leaves the work to others."""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a worker and waits until it says that it is ready."""
    started: list[subprocess.Popen[str]] = []

    def begin(*args: str, **env: str) -> "subprocess.Popen[str]":
        ours = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        process = subprocess.Popen(
            [*PROGRAM, "worker", *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=ours | env,
        )
        started.append(process)
        assert process.stdout
        assert process.stdout.readline().startswith("Holdfast works on ")
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=PATIENCE)


def commit(client: holdfast.Client, session_id: str = "chat") -> str:
    client.add_message(session_id, "user", "Deploy the billing service, never on Fridays.")
    return str(client.commit_session(session_id).task_id)


def test_a_worker_does_what_other_processes_leave_until_it_is_told_to_stop(target: str, start: Start) -> None:
    with holdfast.connect(target, settings=IDLE) as client:
        before = commit(client)
        worker = start("--path", target)
        assert client.wait_for_task(before, PATIENCE).status == "completed"
        after = commit(client)
        assert client.wait_for_task(after, PATIENCE).status == "completed"
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(PATIENCE) == 0
        assert client.get_task(commit(client)).status == "pending"


def test_a_worker_that_drains_ends_when_nothing_is_left(target: str, start: Start) -> None:
    with holdfast.connect(target, settings=IDLE) as client:
        tasks = [commit(client, f"chat_{number}") for number in range(5)]
        tasks += [commit(client, "chat_0")]
        at_once = {"HOLDFAST_CLOSE_SECONDS": "0"}  # what is not done when it ends is not done
        assert start("--path", target, "--drain", "--threads", "3", **at_once).wait(PATIENCE) == 0
        assert {client.get_task(task_id).status for task_id in tasks} == {"completed"}
        assert start("--path", target, "--drain").wait(PATIENCE) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_that_is_told_to_stop_finishes_what_it_has_in_hand(
    tmp_path: Path, start: Start, number: signal.Signals
) -> None:
    with running_model() as model, holdfast.connect(tmp_path, settings=IDLE) as client:
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
        assert worker.wait(PATIENCE) == 0
        assert client.get_task(task_id).status == "completed"


def test_a_worker_says_in_one_line_where_it_works(tmp_path: Path) -> None:
    done = subprocess.run(
        [*PROGRAM, "worker", "--path", str(tmp_path), "--threads", "1", "--drain"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stdout == f"Holdfast works on {tmp_path / 'holdfast.db'} with 1 thread; Ctrl-C stops it\n"
    assert done.stderr == ""


@pytest.mark.parametrize("args", [("--url", "http://127.0.0.1:9"), ("--threads", "0"), ("--threads", "many")])
def test_a_worker_wants_a_database_and_a_thread(anywhere: Callable[..., Any], args: tuple[str, ...]) -> None:
    done = anywhere("worker", *args)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)


def test_a_worker_does_not_guess_when_the_settings_name_a_server(
    anywhere: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_URL", "http://127.0.0.1:9")
    done = anywhere("worker")
    assert (done.code, done.out) == (2, "")
    assert "http://127.0.0.1:9 is a server, which does its own work; name a database with --path" in done.err
