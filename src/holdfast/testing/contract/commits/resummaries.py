"""The contract of regenerated summaries."""

from typing import Any

import pytest

from holdfast.errors import NotFoundError
from holdfast.testing.contract.commits.commits import RunTasks, add_numbered_messages, archive_states
from holdfast.testing.contract.commits.contexts import RULE
from holdfast.testing.contract.commits.tasks import commit, fail_tasks

FEW_TOKENS = {"rules_tokens": 100}
"""Settings under which summaries with many rules are shorter."""
PLACES = ("kitchen", "garden", "office", "harbour", "library", "museum", "station", "theatre", "market", "castle")


def overviews(client: Any, session_id: str) -> list[str]:
    archives = [archive.archive_id for archive in client.list_archives(session_id)]
    own = [client.get_session_archive(session_id, archive).overview for archive in archives]
    return [*own, client.get_session_context(session_id).latest_archive_overview]


def add_rules(client: Any, session_id: str) -> None:
    """Two archives with more rules than `FEW_TOKENS` allows."""
    for action in ("enter", "photograph"):
        for place in PLACES:
            client.add_message(session_id, "user", f"Never {action} the {place} without the permission of its owner.")
        client.commit_session(session_id)


class ResummaryContract:
    """Needs the fixtures of `CommitContract`."""

    def test_summaries_are_regenerated_with_the_current_settings(self, client: Any, run_tasks: RunTasks) -> None:
        add_rules(client, "s")
        run_tasks()
        before = overviews(client, "s")
        (started,) = client.resummarise("s")
        assert (started.status, started.archives) == ("accepted", 2)
        assert overviews(client, "s") == before
        run_tasks(**FEW_TOKENS)
        task = client.get_task(started.task_id)
        assert (task.status, task.task_type, task.archive_uri) == ("completed", "resummarise", None)
        assert (task.subject, task.resource_id) == ("viking://user/alice/sessions/s", "s")
        assert (task.progress.done, task.progress.total) == (2, 2)
        assert dict(task.result) == {"session_id": "s", "archives": 2, "summarised_by": ["local"], "notes": []}
        after = overviews(client, "s")
        assert all(len(new) < len(old) for new, old in zip(after, before, strict=True))
        assert all("## " in overview for overview in after)
        changes = [event.change.kind for event in client.read_events("s", limit=100).events if event.change]
        assert changes[-1] == "resummarised"

    def test_regenerating_summaries_with_the_same_settings_changes_nothing(
        self, client: Any, run_tasks: RunTasks
    ) -> None:
        client.add_message("s", "user", RULE)
        commit(client, "s", "parser", "cache", "queue")
        run_tasks()
        before = overviews(client, "s")
        client.resummarise("s")
        run_tasks()
        assert overviews(client, "s") == before

    def test_a_failure_leaves_the_old_summaries_and_does_not_block_commits(
        self, client: Any, run_tasks: RunTasks
    ) -> None:
        commit(client, "s", "parser")
        run_tasks()
        before = overviews(client, "s")
        (started,) = client.resummarise("s")
        fail_tasks(run_tasks)
        assert client.get_task(started.task_id).status == "failed"
        assert overviews(client, "s") == before
        commit(client, "s", "cache")
        run_tasks()
        assert archive_states(client, "s") == ["done", "done"]
        client.retry_task(started.task_id)
        run_tasks()
        assert client.get_task(started.task_id).result["archives"] == 2

    def test_all_sessions_are_summarised_again_and_those_without_archives_are_skipped(
        self, client: Any, run_tasks: RunTasks
    ) -> None:
        commit(client, "one", "parser")
        commit(client, "two", "cache")
        run_tasks()
        add_numbered_messages(client, "three", 1)
        started = {each.session_id: each for each in client.resummarise()}
        assert {name: each.status for name, each in started.items()} == {
            "one": "accepted",
            "two": "accepted",
            "three": "skipped",
        }
        again = {each.session_id: each.task_id for each in client.resummarise()}
        assert again == {name: each.task_id for name, each in started.items()}
        run_tasks()
        assert {task.status for task in client.list_tasks(task_type="resummarise")} == {"completed"}

    def test_a_commit_waits_for_the_summaries_before_it(self, client: Any, run_tasks: RunTasks) -> None:
        commit(client, "s", "parser")
        run_tasks()
        client.resummarise("s")
        (second,) = commit(client, "s", "cache")
        assert client.get_task(second).stage == "waiting"
        run_tasks()
        assert client.get_task(second).status == "completed"

    def test_a_cancelled_task_leaves_the_old_summaries(self, client: Any, run_tasks: RunTasks) -> None:
        commit(client, "s", "parser")
        run_tasks()
        before = overviews(client, "s")
        (started,) = client.resummarise("s")
        assert client.cancel_task(started.task_id).status == "cancelled"
        run_tasks(**FEW_TOKENS)
        assert overviews(client, "s") == before

    def test_a_missing_session_is_not_found(self, client: Any) -> None:
        with pytest.raises(NotFoundError, match="Session nope not found"):
            client.resummarise("nope")
