"""The contract of messages in the formats of OpenAI and Anthropic."""

from typing import Any

import pytest

from holdfast.errors import ConflictError, InvalidArgumentError, NotFoundError
from holdfast.model.parts import ImagePart, ProviderPart, TextPart, ToolPart

ARGUMENTS = '{"day":  "Friday",\n "n": 1e0}'
CALL = {"id": "c1", "type": "function", "function": {"name": "book", "arguments": ARGUMENTS}}
THINKING = {"type": "thinking", "thinking": "The user wants a car.", "signature": "c2lnbmF0dXJl"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "Z2VoZWlt"}
CITED = {"type": "text", "text": "It opens at nine.", "citations": [{"type": "page_location", "cited_text": "09:00"}]}
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "fjord"}}
DEEP: list[Any] = []
for _ in range(200):
    DEEP = [DEEP]

BOOKED = ToolPart("c1", "book", tool_input=ARGUMENTS, tool_status="pending")
TRANSLATIONS: list[tuple[dict[str, Any], str, list[Any]]] = [
    ({"role": "assistant", "content": None, "tool_calls": [CALL]}, "assistant", [BOOKED]),
    ({"role": "assistant", "content": "", "tool_calls": [CALL], "refusal": None}, "assistant", [BOOKED]),
    ({"role": "assistant", "content": "Wait.", "tool_calls": [CALL]}, "assistant", [TextPart("Wait."), BOOKED]),
    (
        {"role": "assistant", "tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "sh", "input": "ls"}}]},
        "assistant",
        [ToolPart("c1", "sh", tool_input="ls", tool_status="pending", provider_fields={"type": "custom"})],
    ),
    (
        {"role": "assistant", "content": None, "function_call": {"name": "book", "arguments": ARGUMENTS}},
        "assistant",
        [ToolPart("", "book", tool_input=ARGUMENTS, tool_status="pending")],
    ),
    (
        {"role": "assistant", "tool_calls": [{"id": "c1", "odd": 1}]},
        "assistant",
        [ProviderPart("openai", {"tool_calls": [{"id": "c1", "odd": 1}]})],
    ),
    ({"role": "tool", "tool_call_id": "c1", "content": "done"}, "tool", [ToolPart("c1", output="done", success=True)]),
    (
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        },
        "tool",
        [ToolPart("c1", output="a\nb", success=True)],
    ),
    (
        {"role": "function", "name": "book", "content": "done"},
        "tool",
        [ToolPart("", "book", output="done", success=True)],
    ),
    ({"role": "tool", "content": "plain"}, "tool", [TextPart("plain")]),
    ({"role": "developer", "content": "Be brief."}, "system", [TextPart("Be brief.")]),
    (
        {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm."},
        "assistant",
        [ProviderPart("openai", {"reasoning_content": "Hm."}), TextPart("Yes.")],
    ),
    (
        {"role": "assistant", "content": None, "audio": {"id": "audio_1"}, "annotations": []},
        "assistant",
        [ProviderPart("openai", {"audio": {"id": "audio_1"}})],
    ),
    (
        {
            "role": "user",
            "content": ["See", {"type": "image_url", "image_url": {"url": "https://a/b.png", "detail": "low"}}],
        },
        "user",
        [TextPart("See"), ImagePart("https://a/b.png", detail="low")],
    ),
    (
        {"role": "user", "content": [{"type": "input_file", "file_id": "file_1", "filename": "a.pdf"}]},
        "user",
        [ProviderPart("openai", {"type": "input_file", "file_id": "file_1", "filename": "a.pdf"})],
    ),
    (
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi", "annotations": []}]},
        "assistant",
        [TextPart("Hi")],
    ),
    (
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "book", "arguments": ARGUMENTS},
        "assistant",
        [ToolPart("c1", "book", tool_input=ARGUMENTS, tool_status="pending", provider_fields={"id": "fc_1"})],
    ),
    (
        {"type": "function_call_output", "call_id": "c1", "output": "done"},
        "tool",
        [ToolPart("c1", output="done", success=True)],
    ),
    (
        {"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls"]}, "status": "completed"},
        "assistant",
        [
            ToolPart(
                "c1",
                "shell",
                tool_input={"action": {"commands": ["ls"]}},
                tool_status="pending",
                provider_fields={"type": "shell_call", "status": "completed"},
            )
        ],
    ),
    (
        {"type": "apply_patch_call_output", "call_id": "c1", "status": "failed", "output": "no such file"},
        "tool",
        [
            ToolPart(
                "c1",
                "apply_patch",
                output="no such file",
                success=False,
                provider_fields={"type": "apply_patch_call_output", "status": "failed"},
            )
        ],
    ),
    (REASONING, "assistant", [ProviderPart("openai", REASONING)]),
    (SEARCH, "assistant", [ProviderPart("openai", SEARCH)]),
    (
        {
            "role": "assistant",
            "content": [THINKING, CITED, {"type": "tool_use", "id": "t1", "name": "book", "input": {"day": "Friday"}}],
        },
        "assistant",
        [
            ProviderPart("anthropic", THINKING),
            ProviderPart("anthropic", CITED),
            ToolPart("t1", "book", tool_input={"day": "Friday"}, tool_status="pending"),
        ],
    ),
    (
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "full", "is_error": True}],
        },
        "tool",
        [ToolPart("t1", output="full", success=False)],
    ),
    (
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}, {"type": "text", "text": "And?"}]},
        "user",
        [ToolPart("t1", success=True), TextPart("And?")],
    ),
    (
        {"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}]},
        "user",
        [TextPart("Hi")],
    ),
    (
        {
            "role": "user",
            "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}],
        },
        "user",
        [ImagePart("data:image/png;base64,AA==")],
    ),
]

BAD = [
    ("role", {"content": "x"}),
    ("role", {"role": "robot", "content": [{"type": "text", "text": "x"}]}),
    ("role", {"type": "text", "text": "x"}),
    ("role", {"type": "message", "content": "x"}),
    ("content[0]", {"role": "user", "content": [7]}),
    ("content[0].text", {"role": "user", "content": [{"type": "text", "text": "nul \0"}]}),
    ("content", {"role": "user", "content": [{"type": "document", "source": DEEP}]}),
    ("tool_calls", {"role": "assistant", "tool_calls": "book"}),
    ("tool_calls[0]", {"role": "assistant", "tool_calls": ["book"]}),
    ("tool_calls[0].function.arguments", {"role": "assistant", "tool_calls": [{"function": {"arguments": "\0"}}]}),
    ("tool_calls", {"role": "assistant", "parts": [TextPart("x")], "tool_calls": [CALL]}),
    ("content", {"role": "assistant", "parts": [TextPart("x")], "content": [CITED]}),
    ("tool_call_id", {"role": "tool", "content": "x", "tool_call_id": 5}),
    ("parts", {"role": "assistant", "content": [], "tool_calls": []}),
    ("parts", {"role": "assistant", "content": None}),
    ("parts[0].type", {"role": "assistant", "parts": [THINKING]}),
    ("parts[0].block", {"role": "user", "parts": [{"type": "provider", "provider": "x"}]}),
    ("parts[0].block.a", {"role": "user", "parts": [ProviderPart("x", {"a": float("nan")})]}),
    ("parts[0].mood", {"role": "user", "parts": [{"type": "provider", "provider": "x", "block": {}, "mood": 1}]}),
    ("metadata", {"role": "user", "content": "x", "metadata": [1]}),
    ("metadata.a", {"role": "user", "content": "x", "metadata": {"a": "\0"}}),
    ("metadata.provider_fields", {"role": "user", "content": "x", "mood": 1, "metadata": {"provider_fields": 1}}),
    ("summary", {"type": "reasoning", "summary": "\0"}),
]


class Dumped:
    """Stands in for an object of a provider's library."""

    def model_dump(self) -> dict[str, Any]:
        return {}


class ProviderContract:
    @pytest.mark.parametrize(("message", "role", "parts"), TRANSLATIONS, ids=lambda value: str(value)[:50])
    def test_a_providers_message_is_translated_alone_and_in_a_batch(
        self, client: Any, message: dict[str, Any], role: str, parts: list[Any]
    ) -> None:
        client.add_message("alone", **message)
        client.batch_add_messages("batch", [message])
        for session_id in ("alone", "batch"):
            (stored,) = client.get_messages(session_id).messages
            assert (stored.role, stored.parts) == (role, parts)

    @pytest.mark.parametrize(("field", "message"), BAD, ids=lambda value: str(value)[:40])
    def test_invalid_provider_messages_are_rejected_with_the_name_of_the_field(
        self, client: Any, field: str, message: dict[str, Any]
    ) -> None:
        with pytest.raises(InvalidArgumentError) as raised:
            client.add_message("chat_001", **message)
        assert raised.value.details["field"].startswith(field)
        assert len(raised.value.message) < 300
        with pytest.raises(InvalidArgumentError) as raised:
            client.batch_add_messages("chat_001", [message])
        assert raised.value.details["field"].startswith(f"messages[0].{field}")
        with pytest.raises(NotFoundError):
            client.get_session("chat_001")

    def test_an_object_of_a_providers_library_is_rejected_with_a_hint(self, client: Any) -> None:
        with pytest.raises(InvalidArgumentError, match=r"messages\[0\]: is a Dumped; .* model_dump\(\)"):
            client.batch_add_messages("chat_001", [Dumped()])
        with pytest.raises(InvalidArgumentError, match=r"content\[0\]"):
            client.add_message("chat_001", "assistant", [Dumped()])

    def test_a_result_gets_the_tool_name_of_its_call_in_the_same_batch(self, client: Any) -> None:
        client.batch_add_messages(
            "chat_001",
            [
                {"role": "assistant", "content": None, "tool_calls": [CALL]},
                {"role": "tool", "tool_call_id": "c1", "content": "done"},
            ],
        )
        _, result = client.get_messages("chat_001").messages
        assert result.parts == [ToolPart("c1", "book", output="done", success=True)]

    def test_name_becomes_the_peer_id_unless_one_is_given(self, client: Any) -> None:
        client.add_message("chat_001", role="user", content="Hi", name="ann")
        client.add_message("chat_001", role="user", content="Hi", name="ann", peer_id="peer_1")
        alone, both = client.get_messages("chat_001").messages
        assert (alone.peer_id, alone.metadata) == ("ann", None)
        assert (both.peer_id, both.metadata) == ("peer_1", {"provider_fields": {"name": "ann"}})

    def test_unknown_fields_of_a_providers_message_are_stored_in_its_metadata(self, client: Any) -> None:
        answer = {
            "id": "msg_01",
            "type": "message",
            "role": "assistant",
            "model": "claude",
            "content": [{"type": "text", "text": "Hi", "citations": None}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"output_tokens": 7},
        }
        client.add_message("chat_001", **answer, metadata={"run": 5})
        (stored,) = client.get_messages("chat_001").messages
        assert (stored.id, stored.text) == ("msg_01", "Hi")
        about = {"model": "claude", "stop_reason": "end_turn", "usage": {"output_tokens": 7}}
        assert stored.metadata == {"run": 5, "provider_fields": about}

    def test_a_refusal_is_stored_as_text_and_marked_by_message_kind(self, client: Any) -> None:
        client.add_message("chat_001", role="assistant", content=None, refusal="I will not.")
        (stored,) = client.get_messages("chat_001").messages
        assert (stored.text, stored.message_kind) == ("I will not.", "refusal")

    def test_metadata_is_stored_and_is_part_of_the_body_of_a_retry(self, client: Any) -> None:
        metadata = {"b": [1, {"c": None}], "a": "é"}
        first = client.add_message("chat_001", "user", "hi", metadata=metadata, id="m1", idempotency_key="k1")
        again = dict(reversed(metadata.items()))
        assert client.add_message("chat_001", "user", "hi", metadata=again, id="m1", idempotency_key="k1") == first
        assert client.add_message("chat_001", "user", "hi", metadata=again, id="m1") == first
        for handle in ({"id": "m1"}, {"idempotency_key": "k1"}):
            with pytest.raises(ConflictError):
                client.add_message("chat_001", "user", "hi", metadata={"a": 1}, **handle)
        (stored,) = client.get_messages("chat_001").messages
        assert stored.metadata == metadata

    def test_a_message_that_was_read_can_be_added_to_another_session(self, client: Any) -> None:
        client.batch_add_messages("one", [message for message, _, _ in TRANSLATIONS])
        read = client.get_messages("one").messages
        client.batch_add_messages("two", [message.to_dict() for message in read])
        copied = client.get_messages("two").messages
        assert [(m.role, m.parts, m.metadata) for m in copied] == [(m.role, m.parts, m.metadata) for m in read]

    def test_readable_text_of_a_provider_part_is_searchable_and_counted(self, client: Any) -> None:
        data = "QUJD" * 10_000
        document = {"type": "document", "source": {"type": "base64", "data": data}, "title": "Timetable"}
        client.add_message("chat_001", role="assistant", content=[THINKING, CITED, document])
        (found,) = client.get_messages("chat_001", q="timetable car nine").messages
        assert found.text == "It opens at nine."
        assert 50 < found.tokens < 150
        assert client.get_messages("chat_001", q="c2lnbmF0dXJl").messages == []

    def test_parts_with_unknown_fields_are_stored_completely(self, client: Any) -> None:
        text = {"type": "text", "text": "Hi", "mood": "sunny"}
        tool = {"type": "tool", "tool_id": "c1", "tool_name": "t", "mood": "sunny"}
        client.add_message("chat_001", "assistant", parts=[text, tool])
        (stored,) = client.get_messages("chat_001").messages
        assert stored.parts == [ProviderPart("other", text), ToolPart("c1", "t", provider_fields={"mood": "sunny"})]
        assert stored.text == "Hi"

    def test_the_limits_of_parts_apply_to_provider_blocks(self, client: Any) -> None:
        with pytest.raises(InvalidArgumentError, match=r"parts: are \d+ bytes; a message may have at most \d+"):
            client.add_message("chat_001", role="user", content=[{"type": "document", "data": "x" * 17_000_000}])
        with pytest.raises(InvalidArgumentError, match="parts: has 1001 parts"):
            client.add_message("chat_001", role="user", content=[THINKING] * 1_001)
