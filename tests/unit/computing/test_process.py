"""Jobs in a child process: limits, errors, replacement of the child, and what the child can reach."""

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from holdfast.computing import process
from holdfast.computing.job import no_vectors
from holdfast.computing.process import ProcessRunner
from holdfast.config import Settings
from holdfast.errors import HoldfastError, ResourceExhaustedError, UnavailableError
from holdfast.testing.faults.watching import wait_for
from hostile_jobs import OBEY, Demand

MODULES = ["hostile_jobs"]
LIMITS: dict[str, Any] = {"compute_seconds": 1.0, "compute_memory_mb": 128}


@pytest.fixture
def runner() -> Iterator[ProcessRunner]:
    runner = ProcessRunner(Settings(**LIMITS), MODULES)
    yield runner
    runner.close()


def ask(runner: ProcessRunner, text: str) -> dict[str, Any]:
    return runner.run(OBEY, Demand(text), no_vectors)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_jobs_run_in_one_child_process(runner: ProcessRunner) -> None:
    first, second = ask(runner, "one"), ask(runner, "two")
    assert (first["text"], second["text"]) == ("one", "two")
    assert first["process"] == second["process"] != os.getpid()


def test_jobs_of_several_threads_run_one_after_the_other(runner: ProcessRunner) -> None:
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda number: ask(runner, str(number)), range(40)))
    assert [answer["text"] for answer in answers] == [str(number) for number in range(40)]
    assert len({answer["process"] for answer in answers}) == 1


def test_a_large_input_and_output_arrive_unchanged(runner: ProcessRunner) -> None:
    text = "ä\n" * 1_000_000
    assert ask(runner, text)["text"] == text


@pytest.mark.parametrize("demand", ["loop", "loop in C"])
def test_a_job_that_loops_is_ended_and_the_next_job_gets_another_child(runner: ProcessRunner, demand: str) -> None:
    before = ask(runner, "hello")["process"]
    with pytest.raises(ResourceExhaustedError, match=r"'obey' took more than 1 s of CPU time.*compute_seconds"):
        ask(runner, demand)
    assert ask(runner, "hello")["process"] != before
    assert not is_alive(before)


def test_a_job_that_allocates_without_end_is_ended(runner: ProcessRunner) -> None:
    before = ask(runner, "hello")["process"]
    with pytest.raises(ResourceExhaustedError, match=r"'obey' needed more than 128 MB of memory.*compute_memory_mb"):
        ask(runner, "allocate")
    assert ask(runner, "hello")["process"] != before
    assert not is_alive(before)


def test_an_input_that_does_not_fit_in_memory_is_reported_as_that(runner: ProcessRunner) -> None:
    with pytest.raises(ResourceExhaustedError, match="128 MB"):
        ask(runner, "a" * 130_000_000)
    assert ask(runner, "hello")["text"] == "hello"


@pytest.mark.parametrize("demand", ["sleep", "stop"])
def test_a_job_that_does_not_go_on_is_ended_and_may_be_retried(
    runner: ProcessRunner, demand: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = ask(runner, "hello")["process"]
    monkeypatch.setattr(process, "STALL_SECONDS", 1.0)
    with pytest.raises(UnavailableError, match="used no CPU time for 1 s"):
        ask(runner, demand)
    monkeypatch.undo()
    assert not is_alive(before)
    assert ask(runner, "hello")["text"] == "hello"


@pytest.mark.parametrize(("demand", "ending"), [("die", "was ended by SIGKILL"), ("exit", "exited with code 3")])
def test_a_child_that_dies_during_a_job_is_a_temporary_error(runner: ProcessRunner, demand: str, ending: str) -> None:
    with pytest.raises(UnavailableError, match=ending):
        ask(runner, demand)
    assert ask(runner, "hello")["text"] == "hello"


def test_a_child_that_was_killed_between_two_jobs_is_replaced_without_an_error(runner: ProcessRunner) -> None:
    before = ask(runner, "hello")["process"]
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: _has_exited(before))
    assert ask(runner, "hello")["process"] != before


def _has_exited(pid: int) -> bool:
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:  # noqa: PTH123 - not a path of ours
        return stat.read().rsplit(")", 1)[1].split()[0] == "Z"


def test_an_error_of_a_job_has_no_text_of_the_input_and_is_permanent(runner: ProcessRunner) -> None:
    with pytest.raises(HoldfastError, match=r"'obey' failed: ValueError in holdfast\.text\.tokens") as e:
        ask(runner, "fail")
    assert not isinstance(e.value, UnavailableError)
    assert "a text of the user" not in e.value.message


def test_what_a_library_prints_does_not_disturb_the_replies(runner: ProcessRunner) -> None:
    assert ask(runner, "print")["text"] == "print"


def test_the_child_has_no_database_network_settings_or_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_ROOT_API_KEY", "secret")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    runner = ProcessRunner(Settings(embedder="static", **LIMITS), MODULES)
    try:
        child = runner.run(OBEY, Demand("embed a text"), no_vectors)  # loads the vectors, as summaries do
    finally:
        runner.close()
    assert len(child["vectors"][0]) == 256
    forbidden = {"apsw", "sqlite3", "psycopg", "httpx2", "socket", "ssl", "asyncio", "holdfast.store.database"}
    assert forbidden.isdisjoint(child["modules"])
    assert not [name for name in child["environment"] if name.startswith("HOLDFAST_") or name.endswith("_KEY")]
    assert len([target for target in child["files"] if target.startswith("socket:")]) <= 2  # to its parent
    assert child["nice"] > os.nice(0)


def test_a_remote_embedder_is_asked_by_the_parent_while_the_child_serves_others() -> None:
    runner = ProcessRunner(Settings(embedder="openai", embedding_model="m", **LIMITS), MODULES)
    asked: list[list[str]] = []

    def embed(texts: Sequence[str], _yield_cpu: object) -> Any:
        asked.append(list(texts))
        assert ask(runner, "meanwhile")["text"] == "meanwhile"
        return np.eye(len(texts), 4)

    try:
        answer = runner.run(OBEY, Demand("embed two words"), embed)
    finally:
        runner.close()
    assert asked == [["embed", "two", "words"]]
    assert answer["vectors"] == np.eye(3, 4).tolist()


def test_close_ends_the_child_and_a_running_job(runner: ProcessRunner) -> None:
    child = ask(runner, "hello")["process"]
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(ask, runner, "sleep")
        time.sleep(0.2)
        started = time.monotonic()
        runner.close()
        assert time.monotonic() - started < 5
        with pytest.raises(UnavailableError):
            running.result(10)
    assert not is_alive(child)
    with pytest.raises(UnavailableError, match="closed"):
        ask(runner, "hello")


def test_a_forked_process_starts_its_own_child(runner: ProcessRunner) -> None:
    before = ask(runner, "hello")["process"]
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            own = ask(runner, "hello")["process"]
            runner.close()
            os.write(write, str(own).encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    own = int(os.read(read, 100))
    os.close(read)
    assert own != before
    assert not is_alive(own)
    assert ask(runner, "hello")["process"] == before


def test_the_child_survives_the_thread_that_ran_the_first_job(runner: ProcessRunner) -> None:
    answers: list[dict[str, Any]] = []
    thread = threading.Thread(target=lambda: answers.append(ask(runner, "hello")))
    thread.start()
    thread.join()
    time.sleep(0.2)
    assert ask(runner, "hello")["process"] == answers[0]["process"]


def test_a_child_that_cannot_start_is_a_clear_error() -> None:
    runner = ProcessRunner(Settings(**LIMITS), ["holdfast.no_such_module"])
    with pytest.raises(UnavailableError, match=r"did not start: it exited with code 1.*compute = thread"):
        ask(runner, "hello")
    runner.close()
