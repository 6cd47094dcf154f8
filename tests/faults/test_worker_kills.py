"""Workers killed with SIGKILL at every boundary and inside every step: other workers resume their tasks."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.client.sync.client import Client
from holdfast.composition import open_database
from holdfast.config import Settings
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
    wait_for_archives,
)
from holdfast.testing.faults.workers.program import WorkerOptions

ARCHIVES = 2
PIECES = (1, 2, 3)
STEPS = ("plan", *(f"summarise {piece}" for piece in PIECES))
BOUNDARIES = (
    "claimed",
    *(f"{step} {position}" for step in STEPS for position in ("begins", "is done", "is checkpointed")),
    "finish begins",
    "finish is written",
    "finish is committed",
)
LOCAL_BOUNDARIES = (
    "claimed",
    "summarise begins",
    "inside summarise",
    "summarise is done",
    "summarise is checkpointed",
    "finish begins",
    "finish is written",
    "finish is committed",
)
WORKER_SETTINGS = {"task_lease_seconds": 1.0, "worker_poll_seconds": 0.02, "task_attempts": 100}


def session_of(kill_point: str) -> str:
    return kill_point.replace(" ", "-")


@pytest.fixture
def client(target: str) -> Iterator[Client]:
    """A client that commits and runs no tasks itself."""
    with holdfast.connect(target, settings=Settings(worker_threads=0)) as client:
        yield client


@pytest.mark.parametrize(
    ("target", "workers"),
    [
        ("sqlite", 1),
        ("postgres", 4),
        pytest.param("sqlite", 4, marks=pytest.mark.soak),
        pytest.param("postgres", 1, marks=pytest.mark.soak),
    ],
    indirect=["target"],
)
def test_after_any_kill_each_archive_is_done_once_and_no_finished_step_calls_the_model_again(
    client: Client, target: str, tmp_path: Path, workers: int
) -> None:
    inside = {session_of(f"inside summarise {piece}"): piece for piece in PIECES}
    kill_points = {session_of(boundary): boundary for boundary in BOUNDARIES}
    sessions = [*kill_points, *inside]
    with stopping(KillingModel(inside)) as model:
        options = WorkerOptions(
            target=target,
            settings={**SMALL_MODEL, **WORKER_SETTINGS, "model_base_url": model.url, "worker_threads": 1},
            processes=workers,
            kill_points=kill_points,
            kill_folder=str(tmp_path / "killed"),
        )
        for session_id in sessions:
            add_and_commit(client, session_id, ARCHIVES)
        with ContextWatcher(client, sessions, ARCHIVES * MESSAGES), run_workers(options) as supervisor:
            wait_for_archives(client, sessions, ARCHIVES)
            assert supervisor.killed_sessions() == set(kill_points)
        repeated = {session_id: repeated_calls(client, model, session_id) for session_id in sessions}
    # A call is repeated only if its worker was killed after the call began and before its result was checkpointed.
    interrupted = {session_of(f"summarise {piece} is done") for piece in PIECES} | set(inside)
    assert repeated == {session_id: int(session_id in interrupted) for session_id in sessions}


def repeated_calls(client: Client, model: object, session_id: str) -> int:
    """Check that the archives of a session are correct, and count the model calls that were repeated."""
    assert isinstance(model, KillingModel)
    check_archived_once(client, session_id, ARCHIVES)
    check_context_complete(client.get_session_context(session_id), ARCHIVES * MESSAGES)
    repeated = 0
    for number in range(1, ARCHIVES + 1):
        requests = model.count_requests(session_id, number)
        assert len(requests) >= len(PIECES), session_id
        repeated += requests.total() - len(requests)
    return repeated


def test_after_a_kill_of_a_worker_with_several_threads_each_archive_is_done_once(
    client: Client, target: str, tmp_path: Path
) -> None:
    kill_points = {session_of(boundary): boundary for boundary in LOCAL_BOUNDARIES}
    last = "last-session"
    options = WorkerOptions(
        target=target,
        settings={**WORKER_SETTINGS, "task_lease_seconds": 0.5, "worker_threads": 4},
        kill_points={**kill_points, last: "finish is committed"},
        kill_folder=str(tmp_path / "killed"),
    )
    for session_id in kill_points:
        add_and_commit(client, session_id, ARCHIVES)
    with ContextWatcher(client, list(kill_points), ARCHIVES * MESSAGES), run_workers(options) as supervisor:
        wait_for_archives(client, list(kill_points), ARCHIVES)
        # A step may end before the kill inside it. The kill of another thread may come right after the last commit.
        certain = set(kill_points) - {"inside-summarise", "finish-is-committed"}
        wait_for(lambda: supervisor.killed_sessions() >= certain)
        # Now no other thread kills, so the kill after the last commit is certain, too.
        add_and_commit(client, last, ARCHIVES)
        wait_for_archives(client, [last], ARCHIVES)
        wait_for(lambda: last in supervisor.killed_sessions())
    for session_id in (*kill_points, last):
        check_archived_once(client, session_id, ARCHIVES)


def test_a_task_that_kills_every_worker_fails_after_its_attempts_and_does_not_block_others(
    client: Client, target: str, tmp_path: Path
) -> None:
    options = WorkerOptions(
        target=target,
        settings={**WORKER_SETTINGS, "task_lease_seconds": 0.3, "task_attempts": 3, "worker_threads": 1},
        kill_points={"deadly": "summarise begins"},
        kill_folder=str(tmp_path / "killed"),
        kill_every_time=True,
    )
    (task_id,) = add_and_commit(client, "deadly", 1)
    add_and_commit(client, "harmless", 1)
    with ContextWatcher(client, ["deadly", "harmless"], MESSAGES), run_workers(options):
        wait_for(lambda: client.get_task(task_id).status == "failed")
        wait_for_archives(client, ["harmless"], 1)
    task = client.get_task(task_id)
    assert task.error
    assert "3 workers died" in task.error
    assert [archive.state for archive in client.list_archives("deadly")] == ["failed"]


SLICE_BOUNDARIES = ("claimed", "slice begins", "slice is written", "finish begins", "finish is written")


def test_after_any_kill_the_deletion_of_a_large_session_continues(client: Client, target: str, tmp_path: Path) -> None:
    kill_points = {session_of(boundary): boundary for boundary in SLICE_BOUNDARIES}
    for session_id in (*kill_points, "kept"):
        for _ in range(13):
            client.batch_add_messages(session_id, [{"role": "user", "content": "limpet"}] * 100)
    for session_id in kill_points:
        client.delete_session(session_id)
    options = WorkerOptions(
        target=target,
        settings={**WORKER_SETTINGS, "worker_threads": 1},
        processes=2,
        kill_points=kill_points,
        kill_folder=str(tmp_path),
    )

    def statuses() -> set[str]:
        return {task.status for task in client.list_tasks(task_type="session_delete")}

    with run_workers(options):
        wait_for(lambda: statuses() == {"completed"})
    assert {file.name for file in tmp_path.iterdir()} >= set(kill_points)
    for task in client.list_tasks(task_type="session_delete"):
        assert (task.attempts, task.result) == (2, {"session_id": task.resource_id, "messages": 300})
    database = open_database(target, Settings())
    assert database.read("*", lambda tx: tx.one("SELECT COUNT(*) FROM messages")) == (1_300,)
    database.close()
