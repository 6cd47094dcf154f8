"""The contract of automatic commits."""

import time
from typing import Any

import pytest

from holdfast.errors import NotFoundError
from holdfast.testing.contract.commits.commits import RunTasks, add_numbered_messages, archive_states
from holdfast.testing.contract.commits.tasks import fail_tasks

TIMEOUT_SECONDS = 30.0
SHORT_SECONDS = 0.05
LONG_SECONDS = 3_600
"""Longer than any test."""
ONE_TOKEN = "four "


def sealed_seqs(client: Any, session_id: str) -> list[int]:
    """Return the last seq of each archive: [2, 7] if one seals messages 1 and 2, and the next one 3 to 7."""
    return [archive.last_seq for archive in client.list_archives(session_id)]


def run_tasks_until(run_tasks: RunTasks, client: Any, session_id: str, expected: list[int]) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while sealed_seqs(client, session_id) != expected:
        assert time.monotonic() < deadline, (
            f"{session_id} is sealed at {sealed_seqs(client, session_id)}, not {expected}"
        )
        run_tasks()


class AutoCommitContract:
    """Needs the fixtures of `CommitContract`."""

    def test_a_session_is_committed_at_the_message_count_threshold(self, client: Any, run_tasks: RunTasks) -> None:
        client.create_session("s", auto_commit_policy={"message_count_threshold": 3, "keep_recent_count": 1})
        add_numbered_messages(client, "s", 1)
        add_numbered_messages(client, "s", 1)
        assert sealed_seqs(client, "s") == []
        add_numbered_messages(client, "s", 1)
        assert sealed_seqs(client, "s") == [2]
        add_numbered_messages(client, "s", 5)
        assert sealed_seqs(client, "s") == [2, 7]
        run_tasks()
        assert archive_states(client, "s") == ["done", "done"]
        assert [message.seq for message in client.get_session_context("s").messages] == [8]

    def test_a_session_is_committed_at_the_pending_token_threshold(self, client: Any) -> None:
        client.create_session("s", auto_commit_policy={"pending_token_threshold": 100})
        for _ in range(5):
            client.add_message("s", "user", ONE_TOKEN * 24)
        assert sealed_seqs(client, "s") == [5]  # four messages have 96 tokens, five have 120
        client.add_message("s", "user", ONE_TOKEN * 99)
        assert sealed_seqs(client, "s") == [5]
        client.add_message("s", "user", ONE_TOKEN * 24)
        assert sealed_seqs(client, "s") == [5, 7]

    def test_a_session_is_committed_after_its_idle_timeout(self, client: Any, run_tasks: RunTasks) -> None:
        client.create_session("s", auto_commit_policy={"idle_timeout_seconds": SHORT_SECONDS, "keep_recent_count": 1})
        client.create_session("slow", auto_commit_policy={"idle_timeout_seconds": LONG_SECONDS})
        add_numbered_messages(client, "s", 3)
        add_numbered_messages(client, "slow", 3)
        assert sealed_seqs(client, "s") == []
        run_tasks_until(run_tasks, client, "s", [2])
        add_numbered_messages(client, "s", 1)
        run_tasks_until(run_tasks, client, "s", [2, 3])
        assert sealed_seqs(client, "slow") == []

    def test_automatic_commits_keep_the_minimum_interval(self, client: Any, run_tasks: RunTasks) -> None:
        often_seconds = 4 * SHORT_SECONDS
        rare = {"message_count_threshold": 2, "min_commit_interval_seconds": LONG_SECONDS}
        often = {"message_count_threshold": 2, "min_commit_interval_seconds": often_seconds}
        for name, policy in (("rare", rare), ("often", often)):
            client.create_session(name, auto_commit_policy=policy)
            add_numbered_messages(client, name, 2)
            assert sealed_seqs(client, name) == [2]
        add_numbered_messages(client, "often", 2)
        add_numbered_messages(client, "rare", 2)
        run_tasks_until(run_tasks, client, "often", [2, 4])
        first, second = client.list_archives("often")
        # The interval is measured by the database's clock; `created_at` is the time when a call began.
        assert (second.created_at - first.created_at).total_seconds() >= often_seconds / 2
        assert sealed_seqs(client, "rare") == [2]
        client.commit_session("rare")
        assert sealed_seqs(client, "rare") == [2, 4]

    def test_a_new_policy_applies_to_existing_messages(self, client: Any, run_tasks: RunTasks) -> None:
        add_numbered_messages(client, "s", 4)
        client.update_session_config("s", auto_commit_policy={"message_count_threshold": 3})
        run_tasks_until(run_tasks, client, "s", [4])
        client.update_session_config("s", auto_commit_policy={"idle_timeout_seconds": SHORT_SECONDS})
        add_numbered_messages(client, "s", 1)
        run_tasks_until(run_tasks, client, "s", [4, 5])

    def test_a_removed_policy_has_no_effect(self, client: Any, run_tasks: RunTasks) -> None:
        client.create_session("s", auto_commit_policy={"idle_timeout_seconds": SHORT_SECONDS})
        client.create_session("other", auto_commit_policy={"idle_timeout_seconds": 2 * SHORT_SECONDS})
        add_numbered_messages(client, "s", 2)
        client.update_session_config("s", auto_commit_policy=None)
        add_numbered_messages(client, "other", 2)
        run_tasks_until(run_tasks, client, "other", [2])
        assert sealed_seqs(client, "s") == []

    def test_an_automatic_commit_does_not_separate_a_running_call_from_its_result(self, client: Any) -> None:
        client.create_session("s", auto_commit_policy={"message_count_threshold": 2})
        running = {"type": "tool", "tool_id": "x", "tool_name": "look", "tool_status": "running"}
        client.add_message("s", "assistant", parts=[running])
        client.add_message("s", "assistant", "wait")
        assert sealed_seqs(client, "s") == []
        client.add_message("s", "tool", parts=[{**running, "tool_status": "completed", "tool_output": "found"}])
        assert sealed_seqs(client, "s") == [3]

    def test_a_failed_archive_stops_automatic_commits_but_not_appends(self, client: Any, run_tasks: RunTasks) -> None:
        client.create_session("s", auto_commit_policy={"message_count_threshold": 2})
        add_numbered_messages(client, "s", 2)
        fail_tasks(run_tasks)
        add_numbered_messages(client, "s", 1)
        add_numbered_messages(client, "s", 1)
        assert sealed_seqs(client, "s") == [2]
        assert [message.seq for message in client.get_session_context("s").messages] == [1, 2, 3, 4]
        client.retry_archive("s", "archive_001")
        add_numbered_messages(client, "s", 1)
        run_tasks()
        assert (sealed_seqs(client, "s"), archive_states(client, "s")) == ([2, 5], ["done", "done"])

    def test_automatic_commits_are_audited(self, client: Any) -> None:
        client.create_session("s", auto_commit_policy={"message_count_threshold": 2})
        add_numbered_messages(client, "s", 2)
        add_numbered_messages(client, "s", 1)
        client.commit_session("s")
        actions = [entry.action for entry in client.admin.list_audit().records if "Commit" in entry.action]
        assert sorted(actions) == ["AutoCommit", "CommitSession"]

    def test_a_deleted_session_is_not_committed_automatically(self, client: Any, run_tasks: RunTasks) -> None:
        client.create_session("s", auto_commit_policy={"idle_timeout_seconds": SHORT_SECONDS})
        client.create_session("other", auto_commit_policy={"idle_timeout_seconds": 2 * SHORT_SECONDS})
        add_numbered_messages(client, "s", 2)
        client.delete_session("s")
        add_numbered_messages(client, "other", 2)
        run_tasks_until(run_tasks, client, "other", [2])
        with pytest.raises(NotFoundError):
            client.list_archives("s")
