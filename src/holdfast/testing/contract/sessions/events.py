"""The contract of the events of a session."""

from typing import Any

import pytest

from holdfast.errors import InvalidArgumentError, NotFoundError


def event_labels(page: Any) -> list[Any]:
    """Return the text of each message and the kind of each change."""
    return [event.message.text if event.event == "message" else event.change.kind for event in page.events]


class EventContract:
    def test_messages_and_changes_are_read_in_the_order_of_their_occurrence(self, client: Any) -> None:
        client.create_session("s", title="first")
        client.add_message("s", "user", "one")
        client.update_session("s", title="second")
        client.batch_add_messages("s", [{"role": "user", "content": text} for text in ("two", "three")])
        client.session_used("s", ["viking://a"])
        client.update_session_config("s", auto_commit_policy={"keep_recent_count": 2})
        client.fork_session("s", new_session_id="child")
        client.add_message("s", "user", "four")
        page = client.read_events("s")
        assert event_labels(page) == [
            "created",
            "one",
            "updated",
            "two",
            "three",
            "used",
            "configured",
            "forked",
            "four",
        ]
        changes = {event.change.kind: event.change.data for event in page.events if event.change}
        assert changes["updated"] == {"title": "second"}
        assert changes["used"] == {"contexts": ["viking://a"]}
        assert changes["configured"] == {"auto_commit_policy": {"keep_recent_count": 2}}
        assert changes["forked"] == {"session_id": "child", "seq": 3}
        assert {event.change.user_id for event in page.events if event.change} == {"alice"}

    @pytest.mark.parametrize("limit", [1, 2, 3, 100])
    def test_reading_after_any_event_skips_nothing_and_repeats_nothing(self, client: Any, limit: int) -> None:
        for number in range(4):
            client.add_message("s", "user", f"m{number}")
            client.update_session("s", title=f"t{number}")
        all_events = client.read_events("s").events
        assert len({event.id for event in all_events}) == len(all_events) == 9
        seen, after = [], None
        for _ in range(20):
            page = client.read_events("s", after=after, limit=limit)
            seen += page.events
            after = page.cursor
        assert seen == all_events
        for index, event in enumerate(all_events):
            assert client.read_events("s", after=event.id).events == all_events[index + 1 :]

    def test_there_are_no_events_after_the_last_one(self, client: Any) -> None:
        client.add_message("s", "user", "one")
        end = client.read_events("s").cursor
        assert client.read_events("s", after=end).events == []
        assert client.read_events("s", after="now").cursor == end
        client.add_message("s", "user", "two")
        assert event_labels(client.read_events("s", after=end)) == ["two"]
        assert event_labels(client.read_events("s", after="now")) == []

    def test_the_events_of_a_fork_are_its_shared_messages_and_then_its_creation(self, client: Any) -> None:
        client.add_message("s", "user", "one")
        client.add_message("s", "user", "two")
        client.fork_session("s", 1, new_session_id="child")
        client.add_message("child", "user", "mine")
        page = client.read_events("child")
        assert event_labels(page) == ["one", "created", "mine"]
        assert page.events[1].change.data["forked_from"] == "s"

    def test_a_new_session_with_the_id_of_a_deleted_one_is_read_from_its_first_event(self, client: Any) -> None:
        client.add_message("s", "user", "old")
        after = client.read_events("s").cursor
        client.delete_session("s")
        with pytest.raises(NotFoundError):
            client.read_events("s", after=after)
        client.add_message("s", "user", "new")
        assert event_labels(client.read_events("s", after=after)) == ["created", "new"]

    def test_a_future_event_id_reads_from_the_first_event(self, client: Any) -> None:
        client.add_message("s", "user", "one")
        log = client.read_events("s").cursor.partition("-")[0]
        assert event_labels(client.read_events("s", after=f"{log}-99-99")) == ["created", "one"]

    @pytest.mark.parametrize("after", ["", "yesterday", "1-2", "x-1-1", "1-1-1-1", "1--1-1", "now\n"])
    def test_an_invalid_event_id_is_rejected(self, client: Any, after: str) -> None:
        client.create_session("s")
        with pytest.raises(InvalidArgumentError, match="after"):
            client.read_events("s", after=after)
