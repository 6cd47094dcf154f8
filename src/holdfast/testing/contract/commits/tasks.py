"""What a client must be able to do about background work: see it, end it, begin it again; and what outlives what."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from holdfast.testing.contract.commits.commits import Work, states, talk, texts
from holdfast.testing.contract.commits.contexts import DEAD, RULE, converse


def commit(client: Any, session_id: str, *topics: str) -> list[str]:
    """A commit for each topic; their tasks."""
    found = []
    for topic in topics:
        converse(client, session_id, topic)
        found.append(client.commit_session(session_id).task_id)
    return found


def fail(work: Work, **settings: Any) -> None:
    work(**DEAD, task_attempts=1, **settings)


class TaskContract:
    """Needs what `CommitContract` needs, and `connect_as`, as `ClientContract` does."""

    def test_a_task_tells_what_it_did(self, client: Any, work: Work) -> None:
        client.session_used("s", ["viking://a", "viking://b"])
        (task_id,) = commit(client, "s", "parser")
        work()
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

    def test_tasks_are_listed_newest_first_by_type_status_and_resource(self, client: Any, work: Work) -> None:
        first, second = commit(client, "one", "parser", "cache")
        (other,) = commit(client, "two", "queue")
        client.cancel_task(second)
        work()

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

    def test_the_tasks_of_others_cannot_be_seen_or_touched(self, client: Any, connect_as: Callable[..., Any]) -> None:
        (task_id,) = commit(client, "s", "parser")
        for stranger in (connect_as("acme", "bob"), connect_as("rival", "alice")):
            stranger.create_session("s")
            for attempt in (stranger.get_task, stranger.cancel_task, stranger.retry_task):
                with pytest.raises(NotFoundError, match=f"Task {task_id} not found"):
                    attempt(task_id)
            with pytest.raises(NotFoundError):
                stranger.retry_archive("s", "archive_001")
            assert stranger.list_tasks() == []
        assert client.get_task(task_id).status == "pending"
        with pytest.raises(NotFoundError):
            client.get_task("task_nope")

    def test_a_cancelled_task_keeps_its_messages_and_lets_later_commits_go_on(self, client: Any, work: Work) -> None:
        first, second = commit(client, "s", "parser", "cache")
        assert client.cancel_task(first).status == "cancelled"
        assert client.cancel_task(first).status == "cancelled"
        work()
        assert states(client, "s") == ["cancelled", "done"]
        assert [message.seq for message in client.get_session_context("s").messages] == [1, 2]
        assert commit(client, "s", "queue")
        with pytest.raises(FailedPreconditionError, match="cannot be cancelled"):
            client.cancel_task(second)

    def test_a_cancelled_task_can_be_begun_again_and_its_rules_are_told_after_all(
        self, client: Any, work: Work
    ) -> None:
        client.add_message("s", "user", RULE)
        first, second = commit(client, "s", "parser", "cache")
        client.cancel_task(first)
        work()
        assert "never touch" not in client.get_session_context("s").latest_archive_overview
        assert client.retry_task(first).status == "pending"
        work()
        assert states(client, "s") == ["done", "done"]
        context = client.get_session_context("s")
        assert (context.messages, context.receipt.included[0].archive_id) == ([], "archive_002")
        assert "never touch the production database" in context.latest_archive_overview
        for done in (first, second):
            with pytest.raises(FailedPreconditionError, match="nothing to retry"):
                client.retry_task(done)

    def test_a_failed_commit_is_visible_everywhere_and_holds_up_no_append(self, client: Any, work: Work) -> None:
        (task_id,) = commit(client, "s", "parser")
        fail(work)
        task = client.get_task(task_id)
        assert (task.status, task.result, task.attempts) == ("failed", None, 1)
        assert "127.0.0.1:9" in task.error
        assert [it.task_id for it in client.list_tasks(status="failed")] == [task_id]
        (archive,) = client.list_archives("s")
        assert (archive.state, archive.failure["task_id"]) == ("failed", task_id)
        assert archive.failure["error"] == task.error
        assert archive.failure["attempts"] == 1
        assert client.get_session("s").commit_count == 0
        assert client.get_session_context("s").stats.failed_archives == 1
        talk(client, "s", 1)
        assert len(client.get_session_context("s").messages) == 3

    def test_while_a_commit_is_failed_new_ones_are_refused_and_accepted_ones_wait(
        self, client: Any, work: Work
    ) -> None:
        first, second = commit(client, "s", "parser", "cache")
        fail(work)
        work()
        assert (states(client, "s"), client.get_task(second).stage) == (["failed", "pending"], "waiting")
        converse(client, "s", "queue")
        with pytest.raises(FailedPreconditionError, match="archive_001 of session s failed") as refused:
            client.commit_session("s")
        assert refused.value.details["task_id"] == first
        assert len(client.get_session_context("s").messages) == 6
        assert commit(client, "another", "parser")
        client.retry_archive("s", "archive_001")
        client.commit_session("s")
        work()
        assert states(client, "s") == ["done", "done", "done"]
        assert client.get_session_context("s").stats.failed_archives == 0

    def test_a_failed_commit_can_be_cancelled_instead(self, client: Any, work: Work) -> None:
        first, second = commit(client, "s", "parser", "cache")
        fail(work)
        client.cancel_task(first)
        assert commit(client, "s", "queue")
        work()
        assert states(client, "s") == ["cancelled", "done", "done"]
        assert [message.seq for message in client.get_session_context("s").messages] == [1, 2]
        assert client.get_task(second).status == "completed"

    def test_a_fork_has_the_finished_archives_and_all_other_messages_live(self, client: Any, work: Work) -> None:
        commit(client, "s", "parser", "cache")
        work()
        commit(client, "s", "queue")
        converse(client, "s", "index")
        for at, archives, live in ((8, 2, [5, 6, 7, 8]), (5, 2, [5]), (4, 2, []), (3, 1, [3]), (1, 0, [1]), (0, 0, [])):
            child = client.fork_session("s", at).session_id
            assert states(client, child) == ["done"] * archives
            context = client.get_session_context(child)
            assert [message.seq for message in context.messages] == live
            assert bool(context.latest_archive_overview) == bool(archives)
            assert [message.seq for message in client.get_messages(child).messages] == list(range(1, at + 1))
            assert client.get_session(child).message_count == len(live)
            if archives:
                assert texts(client.get_session_archive(child, "archive_001")) == texts(
                    client.get_session_archive("s", "archive_001")
                )

    def test_a_fork_goes_on_committing_after_its_parent_is_gone(self, client: Any, work: Work) -> None:
        commit(client, "s", "parser")
        work()
        commit(client, "s", "cache")
        child = client.fork_session("s").session_id
        client.delete_session("s")
        client.commit_session(child)
        work()
        assert states(client, child) == ["done", "done"]
        overview = client.get_session_context(child).latest_archive_overview
        assert "/srv/parser/main.py" in overview
        assert "/srv/cache/main.py" in overview
        assert [message.seq for message in client.expand(child, "1-4").messages] == [1, 2, 3, 4]

    def test_a_deleted_session_leaves_no_work_behind(self, client: Any, work: Work) -> None:
        tasks = commit(client, "s", "parser", "cache")
        client.delete_session("s")
        for task_id in tasks:
            with pytest.raises(NotFoundError):
                client.get_task(task_id)
        assert client.list_tasks() == []
        work()
        talk(client, "s", 1)
        assert (states(client, "s"), texts(client.get_session_context("s"))) == ([], ["m1"])
        assert client.commit_session("s").archive_uri.endswith("archive_001")
