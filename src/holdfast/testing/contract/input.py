"""The contract of invalid input: an error names the field, and nothing is changed."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from holdfast.errors import InvalidArgumentError, NotFoundError
from holdfast.model.parts import TextPart, ToolPart

DEEP: list[Any] = []
for _ in range(200):
    DEEP = [DEEP]

BAD_MESSAGES = [
    ("role", {"role": "robot", "content": "x"}),
    ("role", {"role": None, "content": "x"}),
    ("parts", {"role": "user"}),
    ("parts", {"role": "user", "parts": []}),
    ("content", {"role": "user", "content": 7}),
    ("content", {"role": "user", "content": "half a \ud83e fox"}),
    ("content", {"role": "user", "content": "nul \0 inside"}),
    ("parts[0]", {"role": "user", "parts": ["text"]}),
    ("parts[0].type", {"role": "user", "parts": [{"type": "video", "url": "x"}]}),
    ("parts[0].type", {"role": "user", "parts": [{"text": "x"}]}),
    ("parts[0].type", {"role": "user", "parts": [{"type": ["text"], "text": "x"}]}),
    ("parts[1].text", {"role": "user", "parts": [TextPart("x"), TextPart(3)]}),  # type: ignore[arg-type]
    ("parts[0].text", {"role": "user", "parts": [{"type": "text", "text": "\udc00"}]}),
    ("parts[0]", {"role": "user", "parts": [{"type": "text"}]}),
    ("parts[0]", {"role": "user", "parts": [{"type": "context"}]}),
    ("parts[0].context_type", {"role": "user", "parts": [{"type": "context", "uri": "x", "context_type": "song"}]}),
    ("parts[0]", {"role": "user", "parts": [{"type": "image"}]}),
    ("parts[0].image_url", {"role": "user", "parts": [{"type": "image_url"}]}),
    ("parts[0].tool_status", {"role": "user", "parts": [{"type": "tool", "tool_status": "done"}]}),
    ("parts[0].tool_input.a[1]", {"role": "user", "parts": [ToolPart(input={"a": [1, float("nan")]})]}),
    ("parts[0].tool_input", {"role": "user", "parts": [ToolPart(input={1: 2})]}),
    ("parts[0].tool_input.a", {"role": "user", "parts": [ToolPart(input={"a": object()})]}),
    ("parts[0].tool_input.a", {"role": "user", "parts": [ToolPart(input={"a": "x\0"})]}),
    ("parts[0].tool_output", {"role": "user", "parts": [ToolPart(output="\ud800")]}),
    ("parts[0].tool_input", {"role": "user", "parts": [ToolPart(input=DEEP)]}),
    ("parts[0].tool_input", {"role": "user", "parts": [ToolPart(input=float("nan"))]}),
    ("parts[0].tool_input[1]", {"role": "user", "parts": [ToolPart(input=(1, float("inf")))]}),
    ("parts[0].tool_output", {"role": "user", "parts": [ToolPart(output=object())]}),
    ("parts[0].tool_output", {"role": "user", "parts": [ToolPart(output=b"bytes")]}),
    ("parts[0].tool_output", {"role": "user", "parts": [ToolPart(output={"a", "set"})]}),
    ("parts[0].tool_output", {"role": "user", "parts": [ToolPart(output=TextPart("x"))]}),
    ("parts[0].tool_output", {"role": "user", "parts": [ToolPart(output=msgspec.Raw(b"]"))]}),
    ("parts[0].duration_ms", {"role": "user", "parts": [ToolPart(duration_ms=float("inf"))]}),
    ("parts[0].duration_ms", {"role": "user", "parts": [ToolPart(duration_ms=-1)]}),
    ("parts[0].prompt_tokens", {"role": "user", "parts": [ToolPart(prompt_tokens=-3)]}),
    ("parts", {"role": "user", "parts": 5}),
    ("parts[0].duration_ms", {"role": "user", "parts": [{"type": "tool", "duration_ms": "long"}]}),
    ("created_at", {"role": "user", "content": "x", "created_at": "yesterday"}),
    ("created_at", {"role": "user", "content": "x", "created_at": "2026-02-30T00:00:00Z"}),
    ("created_at", {"role": "user", "content": "x", "created_at": "0001-01-01T00:00:00+14:00"}),
    ("created_at", {"role": "user", "content": "x", "created_at": 12}),
    ("id", {"role": "user", "content": "x", "id": "a/b"}),
    ("id", {"role": "user", "content": "x", "id": ""}),
    ("peer_id", {"role": "user", "content": "x", "peer_id": "\0"}),
    ("peer_id", {"role": "user", "content": "x", "peer_id": "../bob"}),
    ("peer_id", {"role": "user", "content": "x", "peer_id": "bob smith"}),
    ("peer_id", {"role": "user", "content": "x", "peer_id": ""}),
    ("source_message_ids", {"role": "user", "content": "x", "source_message_ids": "m1"}),
]
UNSAFE_NAMES = ["../x", "", ".", "..", "a/b", "a\\b", ".hidden", "x\n", "x y", "x\0", "é", "-x", "x" * 129, "\ud800"]


class InputContract:
    @pytest.mark.parametrize(("field", "message"), BAD_MESSAGES, ids=lambda value: str(value)[:40])
    def test_an_invalid_message_is_rejected_with_its_field_and_changes_nothing(
        self, client: Any, field: str, message: dict[str, Any]
    ) -> None:
        with pytest.raises(InvalidArgumentError) as raised:
            client.add_message("chat_001", **message)
        error_field = raised.value.details["field"]
        assert error_field == field or error_field.startswith((f"{field}.", f"{field}["))
        assert len(raised.value.message) < 300
        with pytest.raises(InvalidArgumentError) as raised:
            client.batch_add_messages("chat_001", [{"role": "user", "content": "good"}, message])
        assert raised.value.details["field"].startswith(f"messages[1].{field}")
        with pytest.raises(NotFoundError):
            client.get_session("chat_001")

    @pytest.mark.parametrize("name", UNSAFE_NAMES, ids=ascii)
    def test_an_invalid_session_id_is_rejected_by_every_operation(self, client: Any, name: str) -> None:
        attempts: list[Callable[[], Any]] = [
            lambda: client.create_session(name),
            lambda: client.get_session(name, auto_create=True),
            lambda: client.add_message(name, "user", "x"),
            lambda: client.session(name).add_message("user", content="x"),
            lambda: client.delete_session(name),
            lambda: client.session_used(name, ["viking://x"]),
        ]
        for attempt in attempts:
            with pytest.raises(InvalidArgumentError) as raised:
                attempt()
            assert raised.value.details["field"] == "session_id"
        assert list(client.list_sessions()) == []

    @pytest.mark.parametrize("size", [0, 101])
    def test_a_batch_holds_1_to_100_messages(self, client: Any, size: int) -> None:
        with pytest.raises(InvalidArgumentError, match="messages"):
            client.batch_add_messages("chat_001", [{"role": "user", "content": "x"}] * size)
        assert client.batch_add_messages("chat_001", [{"role": "user", "content": "x"}] * 100).added == 100

    def test_a_repeated_message_id_in_a_batch_is_rejected(self, client: Any) -> None:
        with pytest.raises(InvalidArgumentError, match=r"messages\[1\]\.id: 'm1' occurs twice"):
            client.batch_add_messages("chat_001", [{"role": "user", "content": "x", "id": "m1"}] * 2)

    @pytest.mark.parametrize("cursor", ["page two", "-ff", "1_0", "", "f" * 17, "\0"])
    def test_an_invalid_cursor_is_rejected(self, client: Any, cursor: str) -> None:
        with pytest.raises(InvalidArgumentError, match="cursor"):
            client.list_sessions(cursor=cursor)

    @pytest.mark.parametrize("cursor", ["a b", "\0", "\ud800"])
    def test_an_invalid_audit_cursor_is_rejected(self, client: Any, cursor: str) -> None:
        with pytest.raises(InvalidArgumentError, match="cursor"):
            client.admin.list_audit(cursor=cursor)

    def test_size_limits_are_in_bytes(self, client: Any) -> None:
        with pytest.raises(InvalidArgumentError, match=r"parts: are \d+ bytes"):
            client.add_message("chat_001", "tool", parts=[ToolPart(output="🦊" * 5_000_000)])
        with pytest.raises(InvalidArgumentError, match="metadata"):
            client.create_session("chat_001", metadata={"k": "🦊" * 20_000})

    def test_a_number_too_large_for_json_is_rejected(self, client: Any) -> None:
        with pytest.raises(InvalidArgumentError, match=r"parts\[0\]\.tool_output"):
            client.add_message("chat_001", "tool", parts=[ToolPart(output=10**5000)])

    def test_the_error_for_a_huge_value_is_short(self, client: Any) -> None:
        huge = "x" * 1_000_000
        for part in ({"type": huge}, ToolPart(output=huge.encode()), ToolPart(input={1: huge})):
            with pytest.raises(InvalidArgumentError) as raised:
                client.add_message("chat_001", "user", parts=[part])
            assert len(raised.value.message) < 300
        with pytest.raises(InvalidArgumentError) as raised:
            client.add_message(huge, "user", "hi")
        assert len(raised.value.message) < 300

    def test_subclasses_of_str_are_stored_as_strings(self, client: Any) -> None:
        class Label(str):
            __slots__ = ()

        client.add_message("chat_001", "user", parts=[TextPart(Label("one")), {"type": "text", "text": Label("two")}])
        client.add_message("chat_001", "user", Label("three"))
        assert [message.text for message in client.get_messages("chat_001").messages] == ["one\ntwo", "three"]

    def test_a_message_over_the_size_limit_is_rejected(self, client: Any) -> None:
        with pytest.raises(InvalidArgumentError, match=r"parts: are \d+ bytes; a message may have at most \d+"):
            client.add_message("chat_001", "user", "x" * 17_000_000)
        with pytest.raises(InvalidArgumentError, match=r"parts: are \d+ bytes; a message may have at most \d+"):
            client.add_message("chat_001", "tool", parts=[ToolPart(output="x" * 17_000_000)])
        assert list(client.list_sessions()) == []

    @pytest.mark.parametrize(
        ("field", "details"),
        [
            ("title", {"title": "x" * 501}),
            ("title", {"title": "a\0b"}),
            ("title", {"title": 5}),
            ("metadata", {"metadata": {"k": "x" * 70_000}}),
            ("metadata.k", {"metadata": {"k": float("inf")}}),
            ("metadata", {"metadata": {"\0": 1}}),
            ("metadata", {"metadata": [1]}),
        ],
        ids=lambda value: str(value)[:40],
    )
    def test_invalid_fields_of_a_session_are_rejected(self, client: Any, field: str, details: dict[str, Any]) -> None:
        with pytest.raises(InvalidArgumentError) as raised:
            client.create_session("chat_001", **details)
        assert raised.value.details["field"] == field
        client.create_session("chat_001", title="kept")
        with pytest.raises(InvalidArgumentError):
            client.update_session("chat_001", **details)
        assert client.get_session("chat_001").title == "kept"

    @pytest.mark.parametrize(
        ("method", "arguments", "field"),
        [
            ("get_messages", {"limit": 0}, "limit"),
            ("get_messages", {"first": -1}, "first"),
            ("get_messages", {"q": ""}, "q"),
            ("get_messages", {"q": "\0"}, "q"),
            ("add_message", {"role": "user", "content": "x", "expected_seq": -1}, "expected_seq"),
            ("add_message", {"role": "user", "content": "x", "idempotency_key": ""}, "idempotency_key"),
            ("add_message", {"role": "user", "content": "x", "idempotency_key": "\0"}, "idempotency_key"),
            ("session_used", {"contexts": [""]}, "contexts[0]"),
            ("session_used", {"contexts": ["\0"]}, "contexts[0]"),
            ("session_used", {"skill": "search"}, "skill"),
            ("session_used", {"skill": {"uri": 5}}, "skill.uri"),
            ("fork_session", {"at": -1}, "at"),
            ("fork_session", {"new_session_id": "../x"}, "new_session_id"),
            ("list_tool_results", {"limit": 10_000}, "limit"),
            ("list_tool_results", {"tool_name": "a\0b"}, "tool_name"),
            ("list_tool_results", {"tool_name": "\ud800"}, "tool_name"),
            ("read_tool_result", {"tool_result_id": "tr_1", "offset": 2**31}, "offset"),
            ("list_usage", {"after": "a b"}, "after"),
            ("batch_add_messages", {"messages": None}, "messages"),
            ("read_tool_result", {"tool_result_id": "tr_1", "offset": -1}, "offset"),
            ("search_tool_result", {"tool_result_id": "tr_1", "q": ""}, "q"),
        ],
        ids=lambda value: str(value)[:40],
    )
    def test_invalid_arguments_are_rejected_with_their_name(
        self, client: Any, method: str, arguments: dict[str, Any], field: str
    ) -> None:
        client.add_message("chat_001", "user", "x")
        with pytest.raises(InvalidArgumentError) as raised:
            getattr(client, method)("chat_001", **arguments)
        assert raised.value.details["field"].startswith(field)
        assert client.get_session("chat_001").total_message_count == 1
