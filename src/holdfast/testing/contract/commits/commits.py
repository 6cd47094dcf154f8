"""What a client must do with commits: what is sealed, what is not, and where an archive may end."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.errors import NotFoundError
from holdfast.model.parts import TextPart, ToolPart

Work = Callable[..., None]

BORDERS = {
    "behind-the-result": ("u c:x r:x u", 1, 3),
    "the-result-is-next": ("u c:x r:x u", 2, 1),
    "the-result-is-far": ("u c:x a a a r:x u", 2, 1),
    "calls-side-by-side-one-answered": ("u c:x,y r:x r:y u", 2, 1),
    "calls-side-by-side-all-answered": ("u c:x,y r:x r:y u", 1, 4),
    "a-call-within-a-call": ("u c:x c:y r:y r:x u", 2, 1),
    "a-call-behind-a-call": ("u c:x r:x c:y r:y u", 2, 3),
    "calls-that-overlap-in-a-row": ("u c:x c:y r:x c:z r:y r:z u", 2, 1),
    "from-the-first-message-on": ("c:x c:y r:x r:y u", 2, 0),
    "made-and-answered-in-one-message": ("u d:x u", 1, 2),
    "still-running": ("u c:x", 0, 1),
    "one-of-two-still-running": ("u c:x,y r:x", 0, 1),
    "the-second-still-running": ("u c:x r:x c:y", 0, 3),
    "still-running-within-what-is-kept": ("u c:x", 1, 1),
    "never-answered": ("u c:x u", 0, 3),
    "never-answered-and-one-still-running": ("u c:x u c:y", 0, 3),
    "never-answered-and-one-answered-later": ("u c:x u c:y r:y", 1, 3),
    "an-id-used-again": ("u c:x r:x u c:x r:x u", 2, 4),
    "an-id-used-again-and-running": ("u c:x r:x c:x", 0, 3),
    "an-id-used-again-after-it-was-given-up": ("u c:x u c:x r:x u", 1, 5),
}
"""Conversations (see `act`), how many messages are to be kept, and how many can be sealed."""


def talk(client: Any, session_id: str, count: int, first: int = 1) -> None:
    """So many messages, `m1` and on."""
    roles = ("assistant", "user")
    messages = [{"role": roles[n % 2], "content": f"m{n}"} for n in range(first, first + count)]
    client.batch_add_messages(session_id, messages)


def texts(holder: Any) -> list[str]:
    """What is said in a context, an archive or a page."""
    return [message.text for message in holder.messages]


def states(client: Any, session_id: str) -> list[str]:
    return [archive.state for archive in client.list_archives(session_id)]


def changes(client: Any, session_id: str) -> list[tuple[str, str]]:
    """What happened to which archive."""
    told = [event.change for event in client.read_events(session_id, limit=1_000).events if event.change]
    return [(change.kind, change.data["archive_id"]) for change in told if "archive_id" in change.data]


def act(client: Any, session_id: str, script: str) -> None:
    """A conversation in short: `u` the user speaks, `a` the agent, `c:x,y` it makes calls, `r:x` one is answered,
    `d:x` it tells of a call with its answer.
    """
    for step in script.split():
        what, _, ids = step.partition(":")
        calls = [_call(tool_id, is_answered=what != "c") for tool_id in ids.split(",") if tool_id]
        role = {"u": "user", "r": "tool"}.get(what, "assistant")
        client.add_message(session_id, role, parts=[TextPart(step), *calls])


def _call(tool_id: str, *, is_answered: bool) -> ToolPart:
    if is_answered:
        return ToolPart(tool_name="look", tool_id=tool_id, output="found", tool_status="completed")
    return ToolPart(tool_name="look", tool_id=tool_id, input={"at": 1}, tool_status="running")


class CommitContract:
    """Needs a `client` of a Holdfast in which nobody works in the background, and `work`, which does all that is due
    with the settings that it is given.
    """

    def test_a_commit_answers_at_once_with_its_task_and_its_archive(self, client: Any, work: Work) -> None:
        talk(client, "s", 3)
        done = client.commit_session("s")
        assert (done.session_id, done.status, done.archived, done.reason) == ("s", "accepted", True, None)
        assert done.archive_uri == "viking://user/alice/sessions/s/history/archive_001"
        task = client.get_task(done.task_id)
        assert (task.status, task.task_type, task.resource_id) == ("pending", "session_commit", "s")
        assert task.archive_uri == done.archive_uri
        assert client.get_messages("s", live=True).messages == []
        assert len(client.get_messages("s").messages) == 3
        work()
        assert client.get_task(done.task_id).status == "completed"

    def test_rapid_commits_are_all_accepted_and_finish_in_order(self, client: Any, work: Work) -> None:
        tasks = []
        for number in range(1, 6):
            talk(client, "s", 2, first=2 * number)
            tasks.append(client.commit_session("s").task_id)
        assert len(set(tasks)) == 5
        assert [client.get_task(task_id).stage for task_id in tasks] == [None, *["waiting"] * 4]
        work()
        archives = client.list_archives("s")
        assert [(it.state, it.task_id, it.message_count) for it in archives] == [("done", it, 2) for it in tasks]
        assert [it.ended_at for it in archives] == sorted(it.ended_at for it in archives)
        names = [f"archive_{number:03d}" for number in range(1, 6)]
        assert [name for kind, name in changes(client, "s") if kind == "archived"] == names

    def test_nothing_to_do_is_skipped_and_says_why(self, client: Any) -> None:
        client.create_session("s")
        nothing = client.commit_session("s")
        assert (nothing.status, nothing.task_id, nothing.archive_uri) == ("skipped", None, None)
        assert (nothing.archived, nothing.reason) == (False, "no_messages")
        talk(client, "s", 2)
        assert client.commit_session("s", keep_recent_count=2).reason == "all_within_keep_window"
        assert client.commit_session("s", 3).reason == "all_within_keep_window"
        assert client.commit_session("s").status == "accepted"
        assert client.commit_session("s").reason == "no_messages"
        assert (len(client.list_archives("s")), len(client.list_tasks())) == (1, 1)

    def test_a_session_that_is_not_there_cannot_be_committed(self, client: Any) -> None:
        for attempt in (client.commit_session, client.get_session_context, client.list_archives):
            with pytest.raises(NotFoundError, match="Session nope not found"):
                attempt("nope")

    def test_the_most_recent_messages_stay_live_if_so_asked(self, client: Any, work: Work) -> None:
        said = [f"m{n}" for n in range(1, 6)]
        for keep in (0, 1, 4):
            talk(client, f"keeps-{keep}", 5)
            client.commit_session(f"keeps-{keep}", keep_recent_count=keep)
            assert texts(client.get_messages(f"keeps-{keep}", live=True)) == said[5 - keep :]
        work()
        for keep in (0, 1, 4):
            session = client.session(f"keeps-{keep}")
            assert texts(session.context()) == said[5 - keep :]
            assert texts(session.archive("archive_001")) == said[: 5 - keep]

    def test_a_call_is_never_separated_from_its_result(self, client: Any) -> None:
        for name, (script, keep, sealed) in BORDERS.items():
            act(client, name, script)
            done = client.commit_session(name, keep_recent_count=keep)
            steps = script.split()
            assert texts(client.get_session_context(name)) == steps
            assert texts(client.get_messages(name, live=True)) == steps[sealed:], name
            assert done.status == ("accepted" if sealed else "skipped"), name

    def test_a_call_that_ran_on_is_sealed_with_its_result_later(self, client: Any, work: Work) -> None:
        act(client, "s", "u c:x")
        client.commit_session("s")
        assert client.commit_session("s").reason == "all_within_keep_window"
        act(client, "s", "r:x a")
        client.commit_session("s")
        work()
        assert texts(client.get_session_archive("s", "archive_002")) == ["c:x", "r:x", "a"]

    def test_a_session_tells_of_its_commits(self, client: Any, work: Work) -> None:
        client.create_session("s", auto_commit_policy={"keep_recent_count": 7})
        talk(client, "s", 4)
        before = client.get_session("s")
        assert (before.commit_count, before.last_commit_at, before.keep_recent_count) == (0, None, 7)
        client.commit_session("s", keep_recent_count=1)
        accepted = client.get_session("s")
        assert (accepted.commit_count, accepted.message_count, accepted.total_message_count) == (0, 1, 4)
        assert accepted.last_commit_at is not None
        assert 0 < accepted.pending_tokens < before.pending_tokens
        work()
        after = client.get_session("s")
        assert (after.commit_count, after.last_commit_at) == (1, accepted.last_commit_at)
        assert (after.llm_token_usage.total_tokens, after.embedding_token_usage.total_tokens) == (0, 0)

    def test_events_tell_of_commits_and_of_what_became_of_them(self, client: Any, work: Work) -> None:
        for number in (1, 2):
            talk(client, "s", 1, first=number)
            task_id = client.commit_session("s").task_id
        client.cancel_task(task_id)
        work()
        client.retry_task(task_id)
        work()
        first, second = "archive_001", "archive_002"
        assert changes(client, "s") == [
            ("committed", first),
            ("committed", second),
            ("commit_cancelled", second),
            ("archived", first),
            ("commit_retried", second),
            ("archived", second),
        ]
        told = [event.change.data for event in client.read_events("s").events if event.change][-1]
        assert told["task_id"] == task_id
        assert told["abstract"] == client.get_session_archive("s", second).abstract
