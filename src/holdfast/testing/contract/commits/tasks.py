"""The contract of background tasks: listing, cancelling and retrying them; and of deleted and forked sessions."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from holdfast.testing.contract.commits.commits import RunTasks, add_numbered_messages, archive_states, message_texts
from holdfast.testing.contract.commits.contexts import RULE, UNREACHABLE_MODEL, add_exchange


def commit(client: Any, session_id: str, *topics: str) -> list[str]:
    """Make a commit for each topic, and return the task ids."""
    task_ids = []
    for topic in topics:
        add_exchange(client, session_id, topic)
        task_ids.append(client.commit_session(session_id).task_id)
    return task_ids


def fail_tasks(run_tasks: RunTasks, **settings: Any) -> None:
    run_tasks(**UNREACHABLE_MODEL, task_attempts=1, **settings)


class TaskContract:
    """Needs the fixtures of `CommitContract`, and `connect_as`, as `ClientContract` describes it."""

    def test_a_task_reports_its_result(self, client: Any, run_tasks: RunTasks) -> None:
        client.session_used("s", ["viking://a", "viking://b"])
        (task_id,) = commit(client, "s", "parser")
        run_tasks()
        task = client.get_task(task_id)
        assert (task.status, task.error, task.attempts, task.stage) == ("completed", None, 1, None)
        assert task.progress.done == task.progress.total > 0
        assert task["created_at"] <= task["updated_at"]
        uri = "viking://user/alice/sessions/s/history/archive_001"
        result = dict(task.result)
        usage = result.pop("token_usage")
        assert result == {
            "session_id": "s",
            "archive_uri": uri,
            "memories_extracted": {},
            "active_count_updated": 2,
            "memory_diff_uri": f"{uri}/memory_diff.json",
            "summarised_by": "local",
            "notes": [],
        }
        assert (usage["llm"]["total_tokens"], usage["total"]) == (0, {"total_tokens": 0})

    def test_tasks_are_listed_newest_first_by_type_status_and_resource(self, client: Any, run_tasks: RunTasks) -> None:
        first, second = commit(client, "one", "parser", "cache")
        (other,) = commit(client, "two", "queue")
        client.cancel_task(second)
        run_tasks()

        def listed(**by: Any) -> list[str]:
            return [task.task_id for task in client.list_tasks(**by)]

        assert listed() == [other, second, first]
        assert listed(limit=2) == [other, second]
        assert listed(task_type="session_commit", status="completed") == [other, first]
        assert listed(status="cancelled") == listed(resource_id="one", limit=1) == [second]
        assert listed(resource_id="two", status="cancelled") == listed(resource_id="nope") == []
        assert listed(task_type="add_resource") == []
        for wrong in ({"status": "lost"}, {"limit": 0}):
            with pytest.raises(InvalidArgumentError, match=next(iter(wrong))):
                client.list_tasks(**wrong)

    def test_tasks_of_other_users_are_not_found(self, client: Any, connect_as: Callable[..., Any]) -> None:
        (task_id,) = commit(client, "s", "parser")
        for other_user in (connect_as("acme", "bob"), connect_as("rival", "alice")):
            other_user.create_session("s")
            for attempt in (other_user.get_task, other_user.cancel_task, other_user.retry_task):
                with pytest.raises(NotFoundError, match=f"Task {task_id} not found"):
                    attempt(task_id)
            with pytest.raises(NotFoundError):
                other_user.retry_archive("s", "archive_001")
            assert other_user.list_tasks() == []
        assert client.get_task(task_id).status == "pending"
        with pytest.raises(NotFoundError):
            client.get_task("task_nope")

    def test_a_cancelled_task_keeps_its_messages_and_does_not_block_later_commits(
        self, client: Any, run_tasks: RunTasks
    ) -> None:
        first, second = commit(client, "s", "parser", "cache")
        assert client.cancel_task(first).status == "cancelled"
        assert client.cancel_task(first).status == "cancelled"
        run_tasks()
        assert archive_states(client, "s") == ["cancelled", "done"]
        assert [message.seq for message in client.get_session_context("s").messages] == [1, 2]
        assert commit(client, "s", "queue")
        with pytest.raises(FailedPreconditionError, match="cannot be cancelled"):
            client.cancel_task(second)

    def test_a_cancelled_task_can_be_retried_and_its_rules_are_then_in_the_overview(
        self, client: Any, run_tasks: RunTasks
    ) -> None:
        client.add_message("s", "user", RULE)
        first, second = commit(client, "s", "parser", "cache")
        client.cancel_task(first)
        run_tasks()
        assert "never touch" not in client.get_session_context("s").latest_archive_overview
        assert client.retry_task(first).status == "pending"
        run_tasks()
        assert archive_states(client, "s") == ["done", "done"]
        context = client.get_session_context("s")
        assert (context.messages, context.receipt.included[0].archive_id) == ([], "archive_002")
        assert "never touch the production database" in context.latest_archive_overview
        for task_id in (first, second):
            with pytest.raises(FailedPreconditionError, match="nothing to retry"):
                client.retry_task(task_id)

    def test_a_failed_commit_is_visible_everywhere_and_does_not_block_appends(
        self, client: Any, run_tasks: RunTasks
    ) -> None:
        (task_id,) = commit(client, "s", "parser")
        fail_tasks(run_tasks)
        task = client.get_task(task_id)
        assert (task.status, task.result, task.attempts) == ("failed", None, 1)
        assert "127.0.0.1:9" in task.error
        assert [task.task_id for task in client.list_tasks(status="failed")] == [task_id]
        (archive,) = client.list_archives("s")
        assert (archive.state, archive.failure["task_id"]) == ("failed", task_id)
        assert archive.failure["error"] == task.error
        assert archive.failure["attempts"] == 1
        assert client.get_session("s").commit_count == 0
        assert client.get_session_context("s").stats.failed_archives == 1
        add_numbered_messages(client, "s", 1)
        assert len(client.get_session_context("s").messages) == 3

    def test_after_a_failed_commit_new_commits_are_rejected_and_accepted_ones_wait(
        self, client: Any, run_tasks: RunTasks
    ) -> None:
        first, second = commit(client, "s", "parser", "cache")
        fail_tasks(run_tasks)
        run_tasks()
        assert (archive_states(client, "s"), client.get_task(second).stage) == (["failed", "pending"], "waiting")
        add_exchange(client, "s", "queue")
        with pytest.raises(FailedPreconditionError, match="archive_001 of session s failed") as raised:
            client.commit_session("s")
        assert raised.value.details["task_id"] == first
        assert len(client.get_session_context("s").messages) == 6
        assert commit(client, "another", "parser")
        client.retry_archive("s", "archive_001")
        client.commit_session("s")
        run_tasks()
        assert archive_states(client, "s") == ["done", "done", "done"]
        assert client.get_session_context("s").stats.failed_archives == 0

    def test_a_failed_commit_can_be_cancelled(self, client: Any, run_tasks: RunTasks) -> None:
        first, second = commit(client, "s", "parser", "cache")
        fail_tasks(run_tasks)
        client.cancel_task(first)
        assert commit(client, "s", "queue")
        run_tasks()
        assert archive_states(client, "s") == ["cancelled", "done", "done"]
        assert [message.seq for message in client.get_session_context("s").messages] == [1, 2]
        assert client.get_task(second).status == "completed"

    def test_a_fork_has_the_finished_archives_and_all_other_messages_are_live(
        self, client: Any, run_tasks: RunTasks
    ) -> None:
        commit(client, "s", "parser", "cache")
        run_tasks()
        commit(client, "s", "queue")
        add_exchange(client, "s", "index")
        for at, archives, live in ((8, 2, [5, 6, 7, 8]), (5, 2, [5]), (4, 2, []), (3, 1, [3]), (1, 0, [1]), (0, 0, [])):
            child = client.fork_session("s", at).session_id
            assert archive_states(client, child) == ["done"] * archives
            context = client.get_session_context(child)
            assert [message.seq for message in context.messages] == live
            assert bool(context.latest_archive_overview) == bool(archives)
            assert [message.seq for message in client.get_messages(child).messages] == list(range(1, at + 1))
            assert client.get_session(child).message_count == len(live)
            if archives:
                assert message_texts(client.get_session_archive(child, "archive_001")) == message_texts(
                    client.get_session_archive("s", "archive_001")
                )

    def test_a_fork_can_be_committed_after_its_parent_is_deleted(self, client: Any, run_tasks: RunTasks) -> None:
        commit(client, "s", "parser")
        run_tasks()
        commit(client, "s", "cache")
        child = client.fork_session("s").session_id
        client.delete_session("s")
        client.commit_session(child)
        run_tasks()
        assert archive_states(client, child) == ["done", "done"]
        overview = client.get_session_context(child).latest_archive_overview
        assert "/srv/parser/main.py" in overview
        assert "/srv/cache/main.py" in overview
        assert [message.seq for message in client.expand(child, "1-4").messages] == [1, 2, 3, 4]

    def test_deleting_a_session_deletes_its_tasks(self, client: Any, run_tasks: RunTasks) -> None:
        tasks = commit(client, "s", "parser", "cache")
        client.delete_session("s")
        for task_id in tasks:
            with pytest.raises(NotFoundError):
                client.get_task(task_id)
        assert client.list_tasks() == []
        run_tasks()
        add_numbered_messages(client, "s", 1)
        assert (archive_states(client, "s"), message_texts(client.get_session_context("s"))) == ([], ["m1"])
        assert client.commit_session("s").archive_uri.endswith("archive_001")
