"""Workers that die by SIGKILL at every boundary and inside every step: their successors go on where they ended."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.client.sync.client import Client
from holdfast.config import Settings
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
    running,
    wait_until_done,
    working,
)

ARCHIVES = 2
PIECES = (1, 2, 3)
STEPS = ("plan", *(f"summarise {piece}" for piece in PIECES))
BOUNDARIES = (
    "claimed",
    *(f"{step} {moment}" for step in STEPS for moment in ("begins", "is done", "is kept")),
    "finish begins",
    "finish is written",
    "finish is kept",
)
LOCAL_BOUNDARIES = (
    "claimed",
    "summarise begins",
    "inside summarise",
    "summarise is done",
    "summarise is kept",
    "finish begins",
    "finish is written",
    "finish is kept",
)
LEASE = {"task_lease_seconds": 1.0, "worker_poll_seconds": 0.02, "task_attempts": 100}


def session_of(fate: str) -> str:
    return fate.replace(" ", "-")


@pytest.fixture
def client(target: str) -> Iterator[Client]:
    """Somebody who commits and leaves the work to others."""
    with holdfast.connect(target, settings=Settings(worker_threads=0)) as client:
        yield client


@pytest.mark.parametrize("workers", [1, 4])
def test_whenever_a_worker_with_a_model_is_killed_each_archive_is_done_once_and_no_finished_step_is_paid_twice(
    client: Client, target: str, tmp_path: Path, workers: int
) -> None:
    inside = {session_of(f"inside summarise {piece}"): piece for piece in PIECES}
    fates = {session_of(boundary): boundary for boundary in BOUNDARIES}
    sessions = [*fates, *inside]
    with running(FatalModel(inside)) as model:
        orders = Orders(
            target=target,
            settings={**READS_LITTLE, **LEASE, "model_base_url": model.url, "worker_threads": 1},
            processes=workers,
            fates=fates,
            marks=str(tmp_path / "marks"),
        )
        for session_id in sessions:
            commit(client, session_id, ARCHIVES)
        with Watch(client, sessions, ARCHIVES * MESSAGES), working(orders) as foreman:
            wait_until_done(client, sessions, ARCHIVES)
            assert foreman.killed() == set(fates)
        again = {session_id: asked_again(client, model, session_id) for session_id in sessions}
    lost = {session_of(f"summarise {piece} is done") for piece in PIECES} | set(inside)
    assert again == {session_id: int(session_id in lost) for session_id in sessions}


def asked_again(client: Client, model: object, session_id: str) -> int:
    """How many calls for a session were made that would not have been needed; all else is as if nobody had died."""
    assert isinstance(model, FatalModel)
    check_done_once(client, session_id, ARCHIVES)
    check_whole(client.get_session_context(session_id), ARCHIVES * MESSAGES)
    more = 0
    for number in range(1, ARCHIVES + 1):
        asked = model.asked_for(session_id, number)
        assert len(asked) >= len(PIECES), session_id
        more += asked.total() - len(asked)
    return more


def test_whenever_a_worker_is_killed_with_all_that_its_threads_have_in_hand_each_archive_is_done_once(
    client: Client, target: str, tmp_path: Path
) -> None:
    fates = {session_of(boundary): boundary for boundary in LOCAL_BOUNDARIES}
    orders = Orders(
        target=target,
        settings={**LEASE, "task_lease_seconds": 0.5, "worker_threads": 4},
        fates=fates,
        marks=str(tmp_path / "marks"),
    )
    for session_id in fates:
        commit(client, session_id, ARCHIVES)
    with Watch(client, list(fates), ARCHIVES * MESSAGES), working(orders) as foreman:
        wait_until_done(client, list(fates), ARCHIVES)
        assert foreman.killed() >= set(fates) - {"inside-summarise"}
    for session_id in fates:
        check_done_once(client, session_id, ARCHIVES)


def test_a_task_that_kills_every_worker_fails_visibly_after_its_attempts_and_holds_nobody_else_up(
    client: Client, target: str, tmp_path: Path
) -> None:
    orders = Orders(
        target=target,
        settings={**LEASE, "task_lease_seconds": 0.3, "task_attempts": 3, "worker_threads": 1},
        fates={"deadly": "summarise begins"},
        marks=str(tmp_path / "marks"),
        again=True,
    )
    (task_id,) = commit(client, "deadly", 1)
    commit(client, "harmless", 1)
    with Watch(client, ["deadly", "harmless"], MESSAGES), working(orders):
        wait_for(lambda: client.get_task(task_id).status == "failed")
        wait_until_done(client, ["harmless"], 1)
    task = client.get_task(task_id)
    assert task.error
    assert "3 workers began this task" in task.error
    assert [archive.state for archive in client.list_archives("deadly")] == ["failed"]
