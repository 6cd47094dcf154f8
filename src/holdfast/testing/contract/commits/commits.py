"""The contract of commits: which messages are sealed, and where an archive may end."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from holdfast.errors import NotFoundError
from holdfast.model.parts import TextPart, ToolPart

RunTasks = Callable[..., None]

SEAL_CASES = {
    "after-the-result": ("u c:x r:x u", 1, 3),
    "the-result-is-next": ("u c:x r:x u", 2, 1),
    "the-result-is-far": ("u c:x a a a r:x u", 2, 1),
    "parallel-calls-cut-between-their-results": ("u c:x,y r:x r:y u", 2, 1),
    "after-the-results-of-parallel-calls": ("u c:x,y r:x r:y u", 1, 4),
    "a-call-within-a-call": ("u c:x c:y r:y r:x u", 2, 1),
    "a-call-after-a-call": ("u c:x r:x c:y r:y u", 2, 3),
    "overlapping-calls": ("u c:x c:y r:x c:z r:y r:z u", 2, 1),
    "calls-from-the-first-message": ("c:x c:y r:x r:y u", 2, 0),
    "call-and-result-in-one-message": ("u d:x u", 1, 2),
    "still-running": ("u c:x", 0, 1),
    "one-of-two-still-running": ("u c:x,y r:x", 0, 1),
    "the-second-still-running": ("u c:x r:x c:y", 0, 3),
    "still-running-within-the-kept-messages": ("u c:x", 1, 1),
    "never-answered": ("u c:x u", 0, 3),
    "never-answered-and-one-still-running": ("u c:x u c:y", 0, 3),
    "never-answered-and-one-answered-later": ("u c:x u c:y r:y", 1, 3),
    "an-id-used-again": ("u c:x r:x u c:x r:x u", 2, 4),
    "an-id-used-again-and-running": ("u c:x r:x c:x", 0, 3),
    "an-id-used-again-after-an-unanswered-call": ("u c:x u c:x r:x u", 1, 5),
}
"""A script (see `play_script`), the number of messages to keep live, and the number of messages that are sealed."""


def add_numbered_messages(client: Any, session_id: str, count: int, first: int = 1) -> None:
    """Add `count` messages with the texts `m1`, `m2` and so on, from number `first`."""
    roles = ("assistant", "user")
    messages = [{"role": roles[n % 2], "content": f"m{n}"} for n in range(first, first + count)]
    client.batch_add_messages(session_id, messages)


def message_texts(result: Any) -> list[str]:
    """Return the texts of the messages of a context, an archive or a page."""
    return [message.text for message in result.messages]


def archive_states(client: Any, session_id: str) -> list[str]:
    return [archive.state for archive in client.list_archives(session_id)]


def archive_changes(client: Any, session_id: str) -> list[tuple[str, str]]:
    """Return the kind and the archive of each change of an archive."""
    changes = [event.change for event in client.read_events(session_id, limit=1_000).events if event.change]
    return [(change.kind, change.data["archive_id"]) for change in changes if "archive_id" in change.data]


def play_script(client: Any, session_id: str, script: str) -> None:
    """Add a message for each step of a script.

    The steps are `u`, a message of the user; `a`, a message of the assistant; `c:x,y`, tool calls with the ids x and
    y; `r:x`, the result of call x; `d:x`, a message with both the call x and its result.
    """
    for step in script.split():
        kind, _, ids = step.partition(":")
        calls = [_call(tool_id, is_answered=kind != "c") for tool_id in ids.split(",") if tool_id]
        role = {"u": "user", "r": "tool"}.get(kind, "assistant")
        client.add_message(session_id, role, parts=[TextPart(step), *calls])


def _call(tool_id: str, *, is_answered: bool) -> ToolPart:
    if is_answered:
        return ToolPart(tool_name="look", tool_id=tool_id, output="found", tool_status="completed")
    return ToolPart(tool_name="look", tool_id=tool_id, input={"at": 1}, tool_status="running")


class CommitContract:
    """Needs the fixtures `client` and `run_tasks`, as `ClientCommitContract` describes them."""

    def test_a_commit_returns_at_once_with_its_task_and_its_archive(self, client: Any, run_tasks: RunTasks) -> None:
        add_numbered_messages(client, "s", 3)
        commit = client.commit_session("s")
        assert (commit.session_id, commit.status, commit.archived, commit.reason) == ("s", "accepted", True, None)
        assert commit.archive_uri == "viking://user/alice/sessions/s/history/archive_001"
        task = client.get_task(commit.task_id)
        assert (task.status, task.task_type, task.resource_id) == ("pending", "session_commit", "s")
        assert task.archive_uri == commit.archive_uri
        assert client.get_messages("s", live=True).messages == []
        assert len(client.get_messages("s").messages) == 3
        run_tasks()
        assert client.get_task(commit.task_id).status == "completed"

    def test_rapid_commits_are_all_accepted_and_finish_in_order(self, client: Any, run_tasks: RunTasks) -> None:
        tasks = []
        for number in range(1, 6):
            add_numbered_messages(client, "s", 2, first=2 * number)
            tasks.append(client.commit_session("s").task_id)
        assert len(set(tasks)) == 5
        assert [client.get_task(task_id).stage for task_id in tasks] == [None, *["waiting"] * 4]
        run_tasks()
        archives = client.list_archives("s")
        assert [(archive.state, archive.task_id, archive.message_count) for archive in archives] == [
            ("done", task_id, 2) for task_id in tasks
        ]
        assert [archive.ended_at for archive in archives] == sorted(archive.ended_at for archive in archives)
        names = [f"archive_{number:03d}" for number in range(1, 6)]
        assert [name for kind, name in archive_changes(client, "s") if kind == "archived"] == names

    def test_a_commit_with_nothing_to_seal_is_skipped_with_a_reason(self, client: Any) -> None:
        client.create_session("s")
        skipped = client.commit_session("s")
        assert (skipped.status, skipped.task_id, skipped.archive_uri) == ("skipped", None, None)
        assert (skipped.archived, skipped.reason) == (False, "no_messages")
        add_numbered_messages(client, "s", 2)
        assert client.commit_session("s", keep_recent_count=2).reason == "all_within_keep_window"
        assert client.commit_session("s", 3).reason == "all_within_keep_window"
        assert client.commit_session("s").status == "accepted"
        assert client.commit_session("s").reason == "no_messages"
        assert (len(client.list_archives("s")), len(client.list_tasks())) == (1, 1)

    def test_commits_contexts_and_archives_of_a_missing_session_are_rejected(self, client: Any) -> None:
        for attempt in (client.commit_session, client.get_session_context, client.list_archives):
            with pytest.raises(NotFoundError, match="Session nope not found"):
                attempt("nope")

    def test_keep_recent_count_keeps_the_last_messages_live(self, client: Any, run_tasks: RunTasks) -> None:
        all_texts = [f"m{n}" for n in range(1, 6)]
        for keep in (0, 1, 4):
            add_numbered_messages(client, f"keeps-{keep}", 5)
            client.commit_session(f"keeps-{keep}", keep_recent_count=keep)
            assert message_texts(client.get_messages(f"keeps-{keep}", live=True)) == all_texts[5 - keep :]
        run_tasks()
        for keep in (0, 1, 4):
            session = client.session(f"keeps-{keep}")
            assert message_texts(session.context()) == all_texts[5 - keep :]
            assert message_texts(session.archive("archive_001")) == all_texts[: 5 - keep]

    def test_a_call_is_never_separated_from_its_result(self, client: Any) -> None:
        for name, (script, keep, sealed) in SEAL_CASES.items():
            play_script(client, name, script)
            commit = client.commit_session(name, keep_recent_count=keep)
            steps = script.split()
            assert message_texts(client.get_session_context(name)) == steps
            assert message_texts(client.get_messages(name, live=True)) == steps[sealed:], name
            assert commit.status == ("accepted" if sealed else "skipped"), name

    def test_a_running_call_is_sealed_together_with_its_result_later(self, client: Any, run_tasks: RunTasks) -> None:
        play_script(client, "s", "u c:x")
        client.commit_session("s")
        assert client.commit_session("s").reason == "all_within_keep_window"
        play_script(client, "s", "r:x a")
        client.commit_session("s")
        run_tasks()
        assert message_texts(client.get_session_archive("s", "archive_002")) == ["c:x", "r:x", "a"]

    def test_a_session_counts_its_commits(self, client: Any, run_tasks: RunTasks) -> None:
        client.create_session("s", auto_commit_policy={"keep_recent_count": 7})
        add_numbered_messages(client, "s", 4)
        before = client.get_session("s")
        assert (before.commit_count, before.last_commit_at, before.keep_recent_count) == (0, None, 7)
        assert before["last_commit_at"] == ""
        client.commit_session("s", keep_recent_count=1)
        accepted = client.get_session("s")
        assert (accepted.commit_count, accepted.message_count, accepted.total_message_count) == (0, 1, 4)
        assert abs(accepted.last_commit_at - accepted.updated_at) < timedelta(minutes=1)
        assert accepted["last_commit_at"].endswith("Z")
        assert 0 < accepted.pending_tokens < before.pending_tokens
        run_tasks()
        after = client.get_session("s")
        assert (after.commit_count, after.last_commit_at) == (1, accepted.last_commit_at)
        assert (after.llm_token_usage.total_tokens, after.embedding_token_usage.total_tokens) == (0, 0)

    def test_events_report_commits_and_their_outcome(self, client: Any, run_tasks: RunTasks) -> None:
        for number in (1, 2):
            add_numbered_messages(client, "s", 1, first=number)
            task_id = client.commit_session("s").task_id
        client.cancel_task(task_id)
        run_tasks()
        client.retry_task(task_id)
        run_tasks()
        first, second = "archive_001", "archive_002"
        assert archive_changes(client, "s") == [
            ("committed", first),
            ("committed", second),
            ("commit_cancelled", second),
            ("archived", first),
            ("commit_retried", second),
            ("archived", second),
        ]
        last = [event.change.data for event in client.read_events("s").events if event.change][-1]
        assert last["task_id"] == task_id
        assert last["abstract"] == client.get_session_archive("s", second).abstract
