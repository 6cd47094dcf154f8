"""The contract of sessions."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.errors import AlreadyExistsError, FailedPreconditionError, NotFoundError


class SessionContract:
    def test_a_new_session_is_empty(self, client: Any) -> None:
        info = client.create_session("chat_001", title="First", metadata={"topic": "setup", "tags": [1, 2]})
        assert (info.session_id, info.title, info.metadata) == ("chat_001", "First", {"topic": "setup", "tags": [1, 2]})
        assert (info.message_count, info.total_message_count, info.pending_tokens) == (0, 0, 0)
        assert (info.state, info.last_message_at, info.forked_from) == ("active", None, None)

    def test_a_session_gets_an_id_if_none_is_given(self, client: Any) -> None:
        first, second = client.create_session(), client.create_session()
        assert first.session_id != second.session_id
        assert client.get_session(first.session_id).session_id == first.session_id

    def test_results_can_be_read_as_dictionaries(self, client: Any) -> None:
        info = client.create_session("chat_001")
        assert info["session_id"] == "chat_001"
        assert info["user"] == {"account_id": "acme", "user_id": "alice"}
        assert info["uri"] == "viking://user/alice/sessions/chat_001"
        assert info.get("no_such_field", "n/a") == "n/a"
        assert datetime.fromisoformat(info["created_at"]) == info.created_at
        assert dict(info)["message_count"] == 0
        with pytest.raises(KeyError):
            info["no_such_field"]

    def test_times_have_a_time_zone_and_are_current(self, client: Any) -> None:
        created = client.create_session("chat_001").created_at
        assert abs(datetime.now(UTC) - created) < timedelta(minutes=1)

    def test_creating_a_session_with_an_existing_id_is_rejected_and_changes_nothing(self, client: Any) -> None:
        client.create_session("chat_001", title="First")
        with pytest.raises(AlreadyExistsError, match="chat_001") as raised:
            client.create_session("chat_001", title="Second")
        assert raised.value.details == {"resource": "chat_001", "type": "session"}
        assert client.get_session("chat_001").title == "First"

    def test_getting_a_missing_session_does_not_create_it(self, client: Any) -> None:
        with pytest.raises(NotFoundError, match="Session chat_001 not found") as missing:
            client.get_session("chat_001")
        assert missing.value.details == {"type": "session", "resource": "chat_001"}
        assert list(client.list_sessions()) == []

    def test_getting_a_missing_session_with_auto_create_creates_it_once(self, client: Any) -> None:
        created = client.get_session("chat_001", auto_create=True)
        assert client.get_session("chat_001", auto_create=True) == created

    def test_a_listing_is_newest_first_and_pages_without_gaps_or_repeats(self, client: Any) -> None:
        for number in range(7):
            client.create_session(f"s{number}")
        seen: list[str] = []
        cursor = None
        for _ in range(4):
            page = client.list_sessions(limit=2, cursor=cursor)
            seen += [row["session_id"] for row in page]
            cursor = page.next_cursor
        assert seen == ["s6", "s5", "s4", "s3", "s2", "s1", "s0"]
        assert cursor is None

    def test_a_listing_does_not_shift_when_sessions_are_added_between_pages(self, client: Any) -> None:
        for number in range(4):
            client.create_session(f"s{number}")
        first = client.list_sessions(limit=2)
        client.create_session("later")
        client.add_message("s0", "user", "hello")
        second = client.list_sessions(limit=2, cursor=first.next_cursor)
        assert [row.session_id for row in [*first, *second]] == ["s3", "s2", "s1", "s0"]

    def test_a_listing_has_the_main_fields_of_each_session(self, client: Any) -> None:
        client.create_session("chat_001", title="First")
        client.add_message("chat_001", "user", "hello")
        (row,) = client.list_sessions()
        assert (row["session_id"], row["is_dir"], row["title"]) == ("chat_001", True, "First")
        assert (row.uri, row.message_count) == ("viking://user/alice/sessions/chat_001", 1)

    @pytest.mark.parametrize(
        ("q", "found"),
        [("ALPHA", ["s1"]), ("s", ["s3", "s2", "s1"]), ("50%", ["s2"]), ("_", ["s3"]), ("ÄRGER", ["s3"]), ("x'y", [])],
    )
    def test_a_listing_can_be_searched_by_id_and_title(self, client: Any, q: str, found: list[str]) -> None:
        for session_id, title in (("s1", "Project Alpha"), ("s2", "50% done!"), ("s3", "My_Ärger")):
            client.create_session(session_id, title=title)
        assert [row.session_id for row in client.list_sessions(q=q)] == found

    def test_a_listing_can_be_filtered_by_state(self, client: Any) -> None:
        client.create_session("open")
        client.create_session("closed")
        client.update_session("closed", state="archived")
        assert [row.session_id for row in client.list_sessions(state="archived")] == ["closed"]
        assert [row.session_id for row in client.list_sessions(state="active")] == ["open"]

    def test_an_update_changes_only_the_given_fields(self, client: Any) -> None:
        client.create_session("chat_001", title="First", metadata={"a": 1, "b": 2})
        client.update_session("chat_001", metadata={"b": None, "c": 3})
        info = client.update_session("chat_001", title="Second")
        assert (info.title, info.metadata, info.state) == ("Second", {"a": 1, "c": 3}, "active")
        assert client.get_session("chat_001") == info

    def test_an_update_keeps_metadata_keys_that_were_null_before(self, client: Any) -> None:
        client.create_session("chat_001", metadata={"a": None, "b": 1})
        assert client.update_session("chat_001", title="x").metadata == {"a": None, "b": 1}

    def test_updating_a_missing_session_is_rejected(self, client: Any) -> None:
        with pytest.raises(NotFoundError):
            client.update_session("chat_001", title="x")

    def test_an_archived_session_rejects_messages_until_it_is_active_again(self, client: Any) -> None:
        client.add_message("chat_001", "user", "one")
        client.update_session("chat_001", state="archived")
        with pytest.raises(FailedPreconditionError, match="archived"):
            client.add_message("chat_001", "user", "two")
        client.update_session("chat_001", state="active")
        assert client.add_message("chat_001", "user", "two").seq == 2

    def test_a_deleted_session_and_its_messages_are_not_found(self, client: Any) -> None:
        client.add_message("chat_001", "user", "the secret word is xylophone")
        assert client.delete_session("chat_001")["session_id"] == "chat_001"
        for call in (client.get_session, client.get_messages, client.delete_session):
            with pytest.raises(NotFoundError):
                call("chat_001")

    def test_a_name_can_be_used_again_after_a_delete(self, client: Any) -> None:
        client.add_message("chat_001", "user", "old")
        client.delete_session("chat_001")
        assert client.add_message("chat_001", "user", "new").seq == 1
        assert [message.text for message in client.get_messages("chat_001").messages] == ["new"]
        assert client.get_messages("chat_001", q="old").messages == []

    def test_used_contexts_and_skills_are_recorded(self, client: Any) -> None:
        session = client.session("chat_001")
        recorded = session.used(contexts=["viking://user/memories/profile.md", "viking://resources/docs/"])
        assert (recorded["contexts_used"], recorded["skills_used"]) == (2, 0)
        skill = {
            "uri": "viking://agent/skills/code-search",
            "input": {"q": "config"},
            "output": "3 files",
            "success": False,
        }
        recorded = session.used(skill=skill)
        assert (recorded["contexts_used"], recorded["skills_used"]) == (0, 1)
        assert [use.uri for use in session.usage_records] == [
            "viking://user/memories/profile.md",
            "viking://resources/docs/",
            "viking://agent/skills/code-search",
        ]
        last = session.usage_records[-1]
        assert (last.kind, last.input, last.output, last.success) == ("skill", {"q": "config"}, "3 files", False)
        assert (session.stats.contexts_used, session.stats.skills_used) == (2, 1)

    def test_usage_records_are_read_across_pages(self, client: Any) -> None:
        session = client.session("chat_001")
        for batch in range(2):
            session.used(contexts=[f"viking://{batch}/{number}" for number in range(800)])
        assert len(session.usage_records) == 1_600
        assert [use.uri for use in client.list_usage("chat_001", after=session.usage_records[-2].id)] == [
            "viking://1/799"
        ]

    def test_an_empty_list_of_contexts_records_nothing(self, client: Any) -> None:
        assert client.session_used("chat_001", contexts=[]).contexts_used == 0

    def test_contexts_the_skill_and_the_address_of_a_skill_are_optional(self, client: Any) -> None:
        nothing = client.session_used("chat_001")
        assert (nothing.contexts_used, nothing.skills_used) == (0, 0)
        assert len(client.read_events("chat_001").events) == 1  # that the session was created
        recorded = client.session_used("chat_001", skill={"output": [1], "success": False})
        assert (recorded.contexts_used, recorded.skills_used) == (0, 1)
        (use,) = client.list_usage("chat_001")
        assert (use.kind, use.uri, use.output, use.success) == ("skill", "", [1], False)
        client.add_message("chat_001", "user", "hello")
        task = client.wait_for_task(client.commit_session("chat_001").task_id)
        assert task.result["active_count_updated"] == 0

    def test_a_handle_of_a_missing_session_is_empty(self, client: Any) -> None:
        session = client.session("chat_001")
        assert (session.messages, session.usage_records) == ([], [])
        assert session.uri == "viking://user/alice/sessions/chat_001"
        assert session.stats.message_count == 0

    def test_a_handle_without_an_id_generates_one(self, client: Any) -> None:
        session = client.session()
        session.add_message("user", [{"type": "text", "text": "hi"}])
        assert [row.session_id for row in client.list_sessions()] == [session.session_id]
