"""What a client must be able to leave to a session: when it is committed without being asked."""

import time
from typing import Any

import pytest

from holdfast.errors import NotFoundError
from holdfast.testing.contract.commits.commits import Work, states, talk
from holdfast.testing.contract.commits.tasks import fail

PATIENCE = 30.0
SOON = 0.05
NEVER = 3_600


def sealed(client: Any, session_id: str) -> list[int]:
    """The last message of each archive."""
    return [archive.last_seq for archive in client.list_archives(session_id)]


def work_until(work: Work, client: Any, session_id: str, expected: list[int]) -> None:
    deadline = time.monotonic() + PATIENCE
    while sealed(client, session_id) != expected:
        assert time.monotonic() < deadline, f"{session_id} is sealed at {sealed(client, session_id)}, not {expected}"
        work()


class AutoCommitContract:
    """Needs what `CommitContract` needs."""

    def test_a_session_is_committed_when_it_has_so_many_messages(self, client: Any, work: Work) -> None:
        client.create_session("s", auto_commit_policy={"message_count_threshold": 3, "keep_recent_count": 1})
        talk(client, "s", 1)
        talk(client, "s", 1)
        assert sealed(client, "s") == []
        talk(client, "s", 1)
        assert sealed(client, "s") == [2]
        talk(client, "s", 5)
        assert sealed(client, "s") == [2, 7]
        work()
        assert states(client, "s") == ["done", "done"]
        assert [message.seq for message in client.get_session_context("s").messages] == [8]

    def test_a_session_is_committed_when_its_live_messages_have_so_many_tokens(self, client: Any) -> None:
        client.create_session("s", auto_commit_policy={"pending_token_threshold": 100})
        for _ in range(5):
            client.add_message("s", "user", "four " * 24)
        assert sealed(client, "s") == [5]
        client.add_message("s", "user", "four " * 99)
        assert sealed(client, "s") == [5]
        client.add_message("s", "user", "four " * 24)
        assert sealed(client, "s") == [5, 7]

    def test_a_session_is_committed_when_nothing_was_added_for_so_long(self, client: Any, work: Work) -> None:
        client.create_session("s", auto_commit_policy={"idle_timeout_seconds": SOON, "keep_recent_count": 1})
        client.create_session("slow", auto_commit_policy={"idle_timeout_seconds": NEVER})
        talk(client, "s", 3)
        talk(client, "slow", 3)
        assert sealed(client, "s") == []
        work_until(work, client, "s", [2])
        talk(client, "s", 1)
        work_until(work, client, "s", [2, 3])
        assert sealed(client, "slow") == []

    def test_commits_keep_the_interval_that_they_are_to_have(self, client: Any, work: Work) -> None:
        rare = {"message_count_threshold": 2, "min_commit_interval_seconds": NEVER}
        often = {"message_count_threshold": 2, "min_commit_interval_seconds": 4 * SOON}
        for name, policy in (("rare", rare), ("often", often)):
            client.create_session(name, auto_commit_policy=policy)
            talk(client, name, 2)
            assert sealed(client, name) == [2]
        talk(client, "often", 2)
        talk(client, "rare", 2)
        work_until(work, client, "often", [2, 4])
        first, second = client.list_archives("often")
        assert (second.created_at - first.created_at).total_seconds() >= 4 * SOON
        assert sealed(client, "rare") == [2]
        client.commit_session("rare")
        assert sealed(client, "rare") == [2, 4]

    def test_a_policy_that_comes_later_holds_for_what_is_there(self, client: Any, work: Work) -> None:
        talk(client, "s", 4)
        client.update_session_config("s", auto_commit_policy={"message_count_threshold": 3})
        work_until(work, client, "s", [4])
        client.update_session_config("s", auto_commit_policy={"idle_timeout_seconds": SOON})
        talk(client, "s", 1)
        work_until(work, client, "s", [4, 5])

    def test_a_policy_that_was_taken_back_does_nothing_more(self, client: Any, work: Work) -> None:
        client.create_session("s", auto_commit_policy={"idle_timeout_seconds": SOON})
        client.create_session("witness", auto_commit_policy={"idle_timeout_seconds": 2 * SOON})
        talk(client, "s", 2)
        client.update_session_config("s", auto_commit_policy=None)
        talk(client, "witness", 2)
        work_until(work, client, "witness", [2])
        assert sealed(client, "s") == []

    def test_a_call_that_runs_is_not_cut_off_by_a_policy(self, client: Any) -> None:
        client.create_session("s", auto_commit_policy={"message_count_threshold": 2})
        running = {"type": "tool", "tool_id": "x", "tool_name": "look", "tool_status": "running"}
        client.add_message("s", "assistant", parts=[running])
        client.add_message("s", "assistant", "wait")
        assert sealed(client, "s") == []
        client.add_message("s", "tool", parts=[{**running, "tool_status": "completed", "tool_output": "found"}])
        assert sealed(client, "s") == [3]

    def test_a_failed_archive_stops_the_policy_but_no_message(self, client: Any, work: Work) -> None:
        client.create_session("s", auto_commit_policy={"message_count_threshold": 2})
        talk(client, "s", 2)
        fail(work)
        talk(client, "s", 1)
        talk(client, "s", 1)
        assert sealed(client, "s") == [2]
        assert [message.seq for message in client.get_session_context("s").messages] == [1, 2, 3, 4]
        client.retry_archive("s", "archive_001")
        talk(client, "s", 1)
        work()
        assert (sealed(client, "s"), states(client, "s")) == ([2, 5], ["done", "done"])

    def test_the_audit_tells_of_commits_that_nobody_asked_for(self, client: Any) -> None:
        client.create_session("s", auto_commit_policy={"message_count_threshold": 2})
        talk(client, "s", 2)
        talk(client, "s", 1)
        client.commit_session("s")
        told = [entry.action for entry in client.admin.list_audit().records if "Commit" in entry.action]
        assert sorted(told) == ["AutoCommit", "CommitSession"]

    def test_a_deleted_session_is_not_looked_at_any_more(self, client: Any, work: Work) -> None:
        client.create_session("s", auto_commit_policy={"idle_timeout_seconds": SOON})
        client.create_session("witness", auto_commit_policy={"idle_timeout_seconds": 2 * SOON})
        talk(client, "s", 2)
        client.delete_session("s")
        talk(client, "witness", 2)
        work_until(work, client, "witness", [2])
        with pytest.raises(NotFoundError):
            client.list_archives("s")
