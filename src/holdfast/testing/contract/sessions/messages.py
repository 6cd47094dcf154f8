"""The contract of messages."""

from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.errors import ConflictError, InvalidArgumentError, NotFoundError
from holdfast.model.parts import ContextPart, ImagePart, TextPart, ToolPart

TIMES = {
    "2026-03-24": "2026-03-24T00:00:00Z",
    "20260324T091011": "2026-03-24T09:10:11Z",
    "2026-W13-2": "2026-03-24T00:00:00Z",
    "2026-03-24T09:10:11+0800": "2026-03-24T01:10:11Z",
    "2026-03-24 09:10": "2026-03-24T09:10:00Z",
    "2026-03-24T09:10:11.5Z": "2026-03-24T09:10:11.500000Z",
}
"""Times as callers give them, and as they are stored."""


def texts(client: Any, session_id: str = "chat_001", **where: Any) -> list[str]:
    return [message.text for message in client.get_messages(session_id, **where).messages]


class MessageContract:
    def test_an_append_returns_its_duration_if_it_is_asked_for(self, client: Any) -> None:
        session = client.session("chat_001")
        message = {"role": "user", "content": "hi"}
        measured = {
            "AddMessage": client.add_message("chat_001", "user", "hi", idempotency_key="k", telemetry=True),
            "AddMessages": client.batch_add_messages("chat_001", [message], telemetry={"summary": True}),
        }
        for operation, appended in measured.items():
            assert (appended.telemetry.summary.operation, appended.telemetry.summary.status) == (operation, "ok")
            assert appended.telemetry.summary.duration_ms > 0
        assert session.add_message("user", content="hi", telemetry=True).telemetry.id
        assert session.add_messages([message], telemetry=True).telemetry.id != measured["AddMessages"].telemetry.id
        again = client.add_message("chat_001", "user", "hi", idempotency_key="k", telemetry=False)
        assert (again.telemetry, again.seq) == (None, 1)

    def test_a_time_is_read_as_python_reads_it(self, client: Any) -> None:
        for number, (given, stored) in enumerate(TIMES.items()):
            session_id = f"chat_{number}"
            message = {"role": "user", "content": "hi", "created_at": given}
            client.create_session(session_id, created_at=given)
            client.add_message(session_id, **message)
            client.batch_add_messages(session_id, [message, {**message, "created_at": "2026-03-24"}, message])
            times = [message["created_at"] for message in client.get_messages(session_id).messages]
            assert times == [stored, stored, "2026-03-24T00:00:00Z", stored]
            assert client.get_session(session_id)["created_at"] == stored
            client.session_used(session_id, ["viking://a"], created_at=given)
            assert client.list_usage(session_id)[0]["created_at"] == stored
            assert client.admin.list_audit(until=given).records == []
            assert client.admin.list_audit(since=given).records != []
            assert client.search("hi", since=given, until="2026-W14-1").messages != []
        with pytest.raises(InvalidArgumentError, match=r"messages\[1\]\.created_at"):
            client.batch_add_messages("chat_0", [message, {**message, "created_at": "2026-W60"}])

    def test_messages_are_returned_in_order_with_gapless_numbers(self, client: Any) -> None:
        session = client.session("chat_001")
        session.add_message("user", [TextPart("How to configure embedding?")])
        session.add_message(
            "assistant", [TextPart("Here's how..."), ContextPart(uri="viking://user/memories/profile.md")]
        )
        assert [(m.seq, m.role, m.text) for m in session.messages] == [
            (1, "user", "How to configure embedding?"),
            (2, "assistant", "Here's how..."),
        ]
        assert session.messages[1].parts[1] == ContextPart("viking://user/memories/profile.md", "memory", "")

    def test_an_append_returns_the_id_and_the_sequence_number_of_the_message(self, client: Any) -> None:
        client.add_message("chat_001", "user", "one")
        added = client.add_message("chat_001", "user", "two two two two")
        (_, message) = client.get_messages("chat_001").messages
        assert (added.session_id, added.seq, added.added, added.message_count) == ("chat_001", 2, 1, 2)
        assert (added.message_id, added.message_ids) == (message.id, [message.id])
        assert added.pending_tokens == 1 + 4 == client.get_session("chat_001").pending_tokens

    def test_ids_sort_in_the_order_of_the_messages(self, client: Any) -> None:
        for number in range(20):
            client.add_message("chat_001", "user", str(number))
        ids = [message.id for message in client.get_messages("chat_001").messages]
        assert ids == sorted(ids)
        assert all(each.startswith("msg_") and len(each) == 36 for each in ids)

    @pytest.mark.parametrize("role", ["user", "assistant", "system", "tool"])
    def test_every_role_is_stored(self, client: Any, role: str) -> None:
        client.add_message("chat_001", role, "hello")
        assert client.get_messages("chat_001").messages[0].role == role

    @pytest.mark.parametrize(
        ("given", "stored"),
        [
            (TextPart("hi"), TextPart("hi")),
            ({"type": "text", "text": ""}, TextPart("")),
            ({"type": "context", "uri": "viking://r/a"}, ContextPart("viking://r/a", "memory", "")),
            (
                ContextPart("viking://r/a", context_type="skill", abstract="A"),
                ContextPart("viking://r/a", "skill", "A"),
            ),
            ({"type": "image", "url": "file:///a.png"}, ImagePart("file:///a.png")),
            (ImagePart(url="file:///a.png", description="A login page"), ImagePart("file:///a.png", "A login page")),
            (
                {"type": "image_url", "image_url": {"url": "https://a/b.png", "detail": "low"}},
                ImagePart("https://a/b.png", "", "low"),
            ),
            ({"type": "image_url", "image_url": "https://a/b.png"}, ImagePart("https://a/b.png")),
            ({"type": "image", "image_url": {"url": "https://a/b.png"}}, ImagePart("https://a/b.png")),
            (ImagePart(image_url="https://a/b.png", description="B"), ImagePart("https://a/b.png", "B")),
            ({"type": "tool", "tool_name": "long", "name": "short"}, ToolPart(tool_name="long")),
            ({"type": "tool", "success": 1}, ToolPart(tool_status="completed")),
            (
                ToolPart(tool_name="search-web", input={"query": "x"}, output={"results": [1]}, success=True),
                ToolPart(
                    "", "search-web", tool_input={"query": "x"}, tool_output={"results": [1]}, tool_status="completed"
                ),
            ),
            (
                {"type": "tool", "tool_name": "search", "input": {}, "output": "boom", "success": False},
                ToolPart(tool_name="search", tool_input={}, tool_output="boom", tool_status="error"),
            ),
            (
                ToolPart(
                    tool_id="call_123",
                    tool_name="search_web",
                    skill_uri="viking://user/skills/search-web/",
                    tool_input={"query": "OAuth best practices", "n": 12345678901234567890, "f": 1.5, "ok": None},
                    tool_output="",
                    tool_status="pending",
                    duration_ms=12.5,
                    prompt_tokens=3,
                    completion_tokens=4,
                ),
                ToolPart(
                    "call_123",
                    "search_web",
                    skill_uri="viking://user/skills/search-web/",
                    tool_input={"query": "OAuth best practices", "n": 12345678901234567890, "f": 1.5, "ok": None},
                    duration_ms=12.5,
                    prompt_tokens=3,
                    completion_tokens=4,
                ),
            ),
        ],
    )
    def test_every_accepted_spelling_of_a_part_is_stored_in_the_same_form(
        self, client: Any, given: Any, stored: Any
    ) -> None:
        client.add_message("chat_001", "assistant", parts=[given])
        assert client.get_messages("chat_001").messages[0].parts == [stored]

    def test_parts_can_be_read_and_added_as_dictionaries(self, client: Any) -> None:
        part = {"type": "tool", "tool_id": "c1", "tool_name": "t", "tool_input": {"a": [1]}, "tool_output": "o"}
        client.add_message("chat_001", "assistant", parts=[part])
        message = client.get_messages("chat_001")["messages"][0]
        assert message["parts"][0] == {**part, "tool_status": "pending"}
        stored = client.get_messages("chat_001").messages[0].parts[0]
        assert (stored.type, stored["type"], dict(stored)["tool_id"], stored.to_dict()) == (
            "tool",
            "tool",
            "c1",
            message["parts"][0],
        )
        client.add_message("chat_001", "assistant", parts=[dict(stored)])
        assert client.get_messages("chat_001").messages[1].parts == [stored]

    def test_a_session_handle_accepts_a_plain_text(self, client: Any) -> None:
        client.session("chat_001").add_message("user", "hello", turn_id="t1")
        (message,) = client.get_messages("chat_001").messages
        assert (message.text, message.turn_id) == ("hello", "t1")

    def test_parts_take_precedence_over_content(self, client: Any) -> None:
        client.add_message("chat_001", "user", content="no", parts=[TextPart("yes")])
        assert texts(client) == ["yes"]

    def test_the_optional_fields_of_a_message_are_stored(self, client: Any) -> None:
        fields = {"peer_id": "bob", "turn_id": "t1", "message_kind": "note", "source_message_ids": ["a", "b"]}
        client.add_message("chat_001", "user", "hi", **fields)
        message = client.get_messages("chat_001").messages[0]
        assert {name: getattr(message, name) for name in fields} == fields

    @pytest.mark.parametrize(
        ("given", "stored"),
        [
            ("2026-03-24T09:10:11Z", datetime(2026, 3, 24, 9, 10, 11, tzinfo=UTC)),
            ("2026-03-24T17:10:11.123456+08:00", datetime(2026, 3, 24, 9, 10, 11, 123456, tzinfo=UTC)),
            ("2026-03-24T09:10:11", datetime(2026, 3, 24, 9, 10, 11, tzinfo=UTC)),
            (datetime(1969, 7, 20, 20, 17, 40, tzinfo=UTC), datetime(1969, 7, 20, 20, 17, 40, tzinfo=UTC)),
        ],
    )
    def test_a_given_creation_time_is_stored_to_the_microsecond(
        self, client: Any, given: Any, stored: datetime
    ) -> None:
        client.add_message("chat_001", "user", "hi", created_at=given)
        assert client.get_messages("chat_001").messages[0].created_at == stored

    def test_text_of_any_script_is_stored_unchanged(self, client: Any) -> None:
        text = "naïve 日本語 🦊 \\u0000 \"quoted\" \t\n 'x' -- %s ? 𝔘"
        client.add_message("chat_001", "user", text)
        assert texts(client) == [text]

    def test_a_batch_is_added_in_order(self, client: Any) -> None:
        result = client.batch_add_messages(
            session_id="chat_001",
            messages=[
                {"role": "user", "content": "How do I authenticate users?"},
                {"role": "assistant", "parts": [TextPart("You can use OAuth 2.0.")]},
                {"role": "user", "content": "Any specific recommendations?", "created_at": "2026-03-24T09:10:11Z"},
            ],
        )
        assert (result["added"], result["message_count"], result.seq) == (3, 3, 3)
        assert [m.id for m in client.get_messages("chat_001").messages] == result.message_ids
        assert texts(client)[1] == "You can use OAuth 2.0."

    def test_a_batch_with_one_bad_message_adds_none(self, client: Any) -> None:
        messages = [{"role": "user", "content": "ok"}, {"role": "user", "parts": []}]
        with pytest.raises(Exception, match=r"messages\[1\]\.parts"):
            client.batch_add_messages("chat_001", messages)
        with pytest.raises(NotFoundError):
            client.get_session("chat_001")

    def test_a_range_of_messages_can_be_read(self, client: Any) -> None:
        client.batch_add_messages("chat_001", [{"role": "user", "content": str(n)} for n in range(1, 11)])
        assert texts(client, first=3, last=5) == ["3", "4", "5"]
        assert texts(client, first=9) == ["9", "10"]
        assert texts(client, first=0, last=2) == ["1", "2"]
        assert texts(client, first=11) == texts(client, first=5, last=4) == []

    def test_a_long_range_is_read_in_pages(self, client: Any) -> None:
        client.batch_add_messages("chat_001", [{"role": "user", "content": str(n)} for n in range(1, 11)])
        page = client.get_messages("chat_001", limit=4)
        assert (len(page.messages), page.next_seq) == (4, 5)
        page = client.get_messages("chat_001", page.next_seq, limit=6)
        assert ([m.seq for m in page.messages], page.next_seq) == ([5, 6, 7, 8, 9, 10], None)

    def test_reading_a_missing_session_is_rejected(self, client: Any) -> None:
        with pytest.raises(NotFoundError):
            client.get_messages("chat_001")

    @pytest.mark.parametrize(
        ("q", "found"),
        [
            ("embedding", [1]),
            ("EMBEDDINGS configure", [1]),
            ("embedding fox", []),
            ("fox", [2, 4]),
            ("the", [2]),
            ("狐狸", [3]),
            ('"fox" (* ^', [2, 4]),
            ("web_search", [4]),
            ("search", [4]),
            ("config.yaml", [5]),
            ("config", [5]),
            ("alice@example.com", [5]),
            ("example", [5]),
            ("/usr/local", [5]),
            ("3.11", [5]),
            ("https://a.example.org/x?y=1", [5]),
            ("engine.call(op)", [5]),
            ("cafe", [6]),
            ("CAFÉ", [6]),
            ("e\u0301tude", [6]),
            ("straße", [6]),
            ("!?", []),
            ("_", []),
        ],
    )
    def test_messages_can_be_searched_by_words_immediately(self, client: Any, q: str, found: list[int]) -> None:
        client.add_message("chat_001", "user", "How do I configure embedding?")
        client.add_message("chat_001", "assistant", "The quick brown fox.")
        client.add_message("chat_001", "user", "那只狐狸很快")
        client.add_message("chat_001", "assistant", parts=[ToolPart(tool_name="web_search", input={"q": "fox"})])
        technical = "config.yaml alice@example.com /usr/local/bin 3.11 https://a.example.org/x?y=1 engine.call(op)"
        client.add_message("chat_001", "user", technical)
        client.add_message("chat_001", "user", "Café, étude, Straße")
        client.add_message("other", "user", "fox embedding 狐狸 config cafe")
        assert [m.seq for m in client.get_messages("chat_001", q=q).messages] == found

    def test_an_append_can_be_made_conditional(self, client: Any) -> None:
        client.add_message("chat_001", "user", "one", expected_seq=0)
        client.add_message("chat_001", "user", "two", expected_seq=1)
        with pytest.raises(ConflictError, match="the last message is 2, not 1") as raised:
            client.add_message("chat_001", "user", "three", expected_seq=1)
        assert raised.value.details["current_seq"] == 2
        assert texts(client) == ["one", "two"]

    def test_tokens_are_estimated_per_message_and_in_sum(self, client: Any) -> None:
        client.add_message("chat_001", "user", "The quick brown fox jumps over the lazy dog.")
        client.add_message("chat_001", "user", "你好")
        client.add_message("chat_001", "user", parts=[ImagePart("file:///a.png", "a long description")])
        assert [m.tokens for m in client.get_messages("chat_001").messages] == [10, 2, 0]
        assert client.get_session("chat_001").pending_tokens == 12
