"""Work that one process left and another finds, also under other settings."""

from typing import Any

import pytest

import holdfast
from holdfast.config import Settings
from holdfast.errors import DeadlineExceededError, FailedPreconditionError
from holdfast.testing.faults.watching import wait_for

QUIET = Settings(worker_threads=0)
DEAD: dict[str, Any] = {
    "model_provider": "openai",
    "model_name": "none",
    "model_base_url": "http://127.0.0.1:9/v1",
    "task_attempts": 1,
}


def commit(client: holdfast.Client, session_id: str) -> str:
    client.add_message(session_id, "user", "Deploy it to staging, never to production.")
    return str(client.commit_session(session_id).task_id)


def states(client: holdfast.Client, session_id: str) -> list[str]:
    return [archive.state for archive in client.list_archives(session_id)]


def test_a_client_in_use_takes_up_what_another_process_leaves_meanwhile(target: str) -> None:
    with holdfast.connect(target, settings=Settings(task_lease_seconds=0.1)) as client:
        with holdfast.connect(target, settings=QUIET) as other:
            commit(other, "left")
        wait_for(lambda: client.get_session("left").commit_count == 1)


def test_what_waits_for_a_failed_archive_goes_on_once_the_policy_lets_it(target: str) -> None:
    with holdfast.connect(target, settings=Settings(**DEAD, after_failed_archive="wait")) as client:
        assert client.wait_for_task(commit(client, "s")).status == "failed"
        commit(client, "s")
        assert states(client, "s") == ["failed", "pending"]
    with holdfast.connect(target, settings=Settings(after_failed_archive="proceed")) as client:
        assert client.wait_for_task(commit(client, "s")).status == "completed"
        assert states(client, "s") == ["failed", "done", "done"]
        assert client.wait_for_task(client.retry_archive("s", "archive_001").task_id).status == "completed"
        assert states(client, "s") == ["done"] * 3
        assert client.get_session_context("s").messages == []


def test_a_policy_of_the_session_goes_on_behind_a_commit_that_was_refused(target: str) -> None:
    policy = {"message_count_threshold": 1}
    with holdfast.connect(target, settings=Settings(**DEAD)) as client:
        client.create_session("s", auto_commit_policy=policy)
        client.add_message("s", "user", "one")
        wait_for(lambda: states(client, "s") == ["failed"])
        client.add_message("s", "user", "two")
        assert states(client, "s") == ["failed"]
        with pytest.raises(FailedPreconditionError):
            client.commit_session("s")
        assert [message.text for message in client.get_session_context("s").messages] == ["one", "two"]


def test_a_fork_keeps_to_the_policy_of_its_parent(target: str) -> None:
    with holdfast.connect(target) as client:
        client.create_session("s", auto_commit_policy={"idle_timeout_seconds": 0.2, "keep_recent_count": 1})
        client.batch_add_messages("s", [{"role": "user", "content": text} for text in ("one", "two")])
        client.fork_session("s", new_session_id="child")
        wait_for(lambda: [client.get_session(name).commit_count for name in ("s", "child")] == [1, 1])


def test_to_wait_for_work_that_nobody_does_ends_in_time_and_says_what_is_left(target: str) -> None:
    with holdfast.connect(target, settings=QUIET) as client:
        commit(client, "s")
        with pytest.raises(DeadlineExceededError, match="1 tasks are not done"):
            client.wait_until_idle(0.2)
