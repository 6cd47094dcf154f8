"""Conversations of other programs: how they are converted, and the errors for invalid ones."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast import Client, ImagePart, ProviderPart, TextPart, ToolPart
from holdfast.engine.sessions import drafts
from holdfast.errors import InvalidArgumentError
from holdfast.exchange import export_sessions, import_path
from holdfast.model.base import safe_name
from holdfast.model.messages import NewMessage

LOCOMO = Path(__file__).parents[4] / "shared/data/locomo_dev.json"
AT = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
CHAT: list[dict[str, Any]] = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "name": "ann", "content": [{"type": "text", "text": "Where?"}], "created_at": 1683554160},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": '{"q": "fjord"}'}},
            {"id": "call_2", "type": "function", "function": {"name": "search", "arguments": "{not json"}},
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "Geirangerfjord"},
    {
        "role": "tool",
        "tool_call_id": "call_2",
        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
    },
    {"role": "assistant", "content": "In Geiranger.", "id": "msg-7", "timestamp": "2023-05-08T13:56:01.5+00:00"},
]


@pytest.fixture
def client() -> Iterator[Client]:
    with holdfast.connect(":memory:") as client:
        yield client


def as_json(rows: Any) -> str:
    return json.dumps(rows, ensure_ascii=False)


def as_json_lines(rows: list[Any]) -> str:
    return "".join(as_json(row) + "\n" for row in rows)


def import_chat(client: Client, rows: Any) -> list[Any]:
    """Import a chat and return its messages."""
    report = import_path(client, None, text=as_json(rows), session_id="chat")
    assert report.failed == []
    return client.session("chat").messages


def test_a_chat_becomes_a_session(client: Client) -> None:
    messages = import_chat(client, CHAT)
    assert [(message.role, message.parts) for message in messages] == [
        ("system", [TextPart("Be brief.")]),
        ("user", [TextPart("Where?")]),
        (
            "assistant",
            [
                ToolPart(tool_id="call_1", tool_name="search", tool_input='{"q": "fjord"}', tool_status="pending"),
                ToolPart(tool_id="call_2", tool_name="search", tool_input="{not json", tool_status="pending"),
            ],
        ),
        ("tool", [ToolPart(tool_id="call_1", tool_name="search", tool_output="Geirangerfjord", success=True)]),
        ("tool", [ToolPart(tool_id="call_2", tool_name="search", tool_output="a\nb", success=True)]),
        ("assistant", [TextPart("In Geiranger.")]),
    ]
    assert (messages[1].peer_id, messages[1].created_at) == ("ann", AT)
    assert (messages[5].id, messages[5].created_at.microsecond) == ("msg-7", 500_000)


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("", [TextPart("")]),
        (None, [TextPart("")]),
        (["a", {"type": "input_text", "text": "b"}], [TextPart("a"), TextPart("b")]),
        ([{"type": "text", "text": {"value": "a", "annotations": []}}], [TextPart("a")]),
        ([{"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "no"}], [TextPart("a"), TextPart("no")]),
        (
            [{"type": "image_url", "image_url": {"url": "https://x/a.png", "detail": "low"}}],
            [ImagePart("https://x/a.png", detail="low")],
        ),
        (
            [{"type": "input_image", "image_url": "data:image/png;base64,AA=="}],
            [ImagePart("data:image/png;base64,AA==")],
        ),
        (
            [{"type": "input_audio", "input_audio": {"data": "AA=="}}],
            [ProviderPart("openai", {"type": "input_audio", "input_audio": {"data": "AA=="}})],
        ),
    ],
)
def test_content_is_accepted_in_every_form(client: Client, content: Any, parts: list[Any]) -> None:
    assert import_chat(client, [{"role": "user", "content": content}])[0].parts == parts


@pytest.mark.parametrize(
    ("rows", "role", "part"),
    [
        (
            [{"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "[1]"}}],
            "assistant",
            ToolPart(tool_name="f", tool_input="[1]"),
        ),
        (
            [{"role": "function", "name": "f", "content": "2"}],
            "tool",
            ToolPart(tool_name="f", output="2", success=True),
        ),
        (
            [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}],
            "assistant",
            ToolPart(tool_id="c", tool_name="f", tool_input="{}"),
        ),
        (
            [
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "2"},
            ],
            "tool",
            ToolPart(tool_id="c", tool_name="f", output="2", success=True),
        ),
        (
            [{"role": "tool", "tool_call_id": "c", "content": {"rows": [1]}}],
            "tool",
            ToolPart(tool_id="c", output={"rows": [1]}, success=True),
        ),
        ([{"role": "tool", "parts": [{"type": "tool", "tool_id": "c"}]}], "tool", ToolPart(tool_id="c")),
    ],
)
def test_tool_calls_and_results_are_accepted_in_every_form(
    client: Client, rows: list[Any], role: str, part: ToolPart
) -> None:
    last = import_chat(client, rows)[-1]
    assert (last.role, last.parts) == (role, [part])


def test_a_refusal_has_its_own_message_kind(client: Client) -> None:
    (message,) = import_chat(client, [{"role": "assistant", "content": None, "refusal": "I will not."}])
    assert (message.text, message.message_kind) == ("I will not.", "refusal")


@pytest.mark.parametrize("time", [1683554160, 1683554160.0, 1683554160000, "1683554160", "2023-05-08T15:56:00+02:00"])
@pytest.mark.parametrize("key", ["created", "created_at", "create_time", "timestamp"])
def test_times_are_accepted_in_every_form(client: Client, key: str, time: Any) -> None:
    assert import_chat(client, [{"role": "user", "content": "hi", key: time}])[0].created_at == AT
    assert client.get_session("chat").created_at == AT


@pytest.mark.parametrize("shape", ["array", "object", "lines", "indented", "marked"])
def test_a_chat_is_imported_from_every_kind_of_file(client: Client, tmp_path: Path, shape: str) -> None:
    content = {
        "array": as_json(CHAT),
        "object": as_json({"messages": CHAT, "model": "m"}),
        "lines": as_json_lines(CHAT).replace("\n", "\n\n"),
        "indented": json.dumps(CHAT, indent=2),
        "marked": "\ufeff" + as_json_lines(CHAT),
    }[shape]
    file = tmp_path / "my chat.json"
    file.write_text(content, "utf-8")
    report = import_path(client, file)
    assert [(row.session_id, row.messages, row.state) for row in report.sessions] == [("my-chat", 6, "imported")]
    assert report.format == "openai"
    assert [row.state for row in import_path(client, file).sessions] == ["already there"]
    assert client.get_session("my-chat").total_message_count == 6


def test_messages_appended_to_a_file_are_imported_later(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    for count in (2, 5, 6):
        file.write_text(as_json_lines(CHAT[:count]), "utf-8")
        import_path(client, file)
    assert client.get_session("chat").total_message_count == 6
    file.write_text(as_json_lines(CHAT[:3]), "utf-8")
    assert "it has more messages than the 3 of the import" in import_path(client, file).sessions[0].reason


def test_each_conversation_of_a_file_becomes_a_session(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "tuning.jsonl"
    rows = [
        {"messages": CHAT[:2], "title": "One", "metadata": {"k": 1}},
        {"messages": CHAT, "id": "thread_9"},
        {"messages": CHAT[:1], "id": "not a safe name"},
    ]
    file.write_text(as_json_lines(rows), "utf-8")
    assert [row.session_id for row in import_path(client, file).sessions] == ["tuning-1", "thread_9", "tuning-3"]
    info = client.get_session("tuning-1")
    assert (info.title, info.metadata) == ("One", {"k": 1})
    file.write_text(as_json(rows), "utf-8")
    assert {row.state for row in import_path(client, file).sessions} == {"already there"}


def test_repeated_and_invalid_message_ids_are_replaced(client: Client) -> None:
    rows = [{"role": "user", "content": "hi", "id": id} for id in ("m1", "m1", "a/b", 5)]  # noqa: A001
    messages = import_chat(client, rows)
    assert [message.id.startswith("import-") for message in messages] == [False, True, True, True]
    assert len({message.id for message in messages}) == 4
    assert import_path(client, None, text=as_json(rows), session_id="chat").sessions[0].state == "already there"


def test_a_name_that_is_no_peer_id_is_replaced_and_kept(client: Client) -> None:
    names = ["ann", "Bob Smith", "\u738b\u4f1f", "\u738b\u82b3", "../etc", "-" * 200]
    rows = [{"role": "user", "name": name, "content": "hi"} for name in names]
    messages = import_chat(client, [*rows, {"role": "user", "peer_id": "Bob Smith", "content": "hi"}])
    peers = [message.peer_id for message in messages]
    assert peers[:2] == ["ann", "Bob_Smith"]
    assert peers[6] == "Bob_Smith"
    assert len(set(peers)) == 6
    assert [message.metadata for message in messages[1:3]] == [
        {"provider_fields": {"name": name}} for name in names[1:3]
    ]
    again = import_path(client, None, text=as_json([*rows, {"role": "user", "peer_id": "Bob Smith", "content": "hi"}]))
    assert again.failed == []


def test_messages_with_any_peer_id_of_an_earlier_version_are_read_exported_and_imported(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def encode_earlier(message: NewMessage, prefix: str) -> str | None:
        return encode_extra(msgspec.structs.replace(message, peer_id="Bob / Smith"), prefix)

    encode_extra = drafts._encode_extra
    with monkeypatch.context() as patched:
        patched.setattr(drafts, "_encode_extra", encode_earlier)
        client.batch_add_messages("old", [{"role": "user", "content": f"hi {number}"} for number in range(3)])
    assert {message.peer_id for message in client.session("old").messages} == {"Bob / Smith"}
    export_sessions(client, tmp_path / "export")
    assert [row.state for row in import_path(client, tmp_path / "export").sessions] == ["already there"]
    with holdfast.connect(":memory:") as other:
        assert import_path(other, tmp_path / "export").failed == []
        (peer,) = {message.peer_id for message in other.session("old").messages}
        assert peer == safe_name("Bob / Smith")
        assert other.session("old").messages[2].metadata == {"provider_fields": {"name": "Bob / Smith"}}
        assert [row.state for row in import_path(other, tmp_path / "export").sessions] == ["already there"]


def test_the_session_id_of_a_text_is_derived_from_its_content(client: Client) -> None:
    first, again = (import_path(client, None, text=as_json(CHAT)).sessions[0] for _ in range(2))
    assert (first.state, again.state, again.session_id) == ("imported", "already there", first.session_id)


def test_a_large_tool_result_is_compared_in_full(client: Client) -> None:
    rows = [{"role": "tool", "tool_call_id": "c", "content": "x" * 20_000, "id": "m1"}]
    import_chat(client, rows)
    assert import_path(client, None, text=as_json(rows), session_id="chat").sessions[0].state == "already there"
    rows[0]["content"] = "x" * 19_999 + "y"
    assert import_path(client, None, text=as_json(rows), session_id="chat").failed


CHATGPT = {
    "title": "Fjords",
    "create_time": 1683554160.0,
    "conversation_id": "8f3a2b1c-0000",
    "current_node": "n4",
    "mapping": {
        "n0": {"parent": None, "message": None},
        "n1": {"parent": "n0", "message": {"id": "s", "author": {"role": "system"}, "content": {"parts": [""]}}},
        "n2": {
            "parent": "n1",
            "message": {
                "id": "u1",
                "author": {"role": "user"},
                "create_time": 1683554160.5,
                "content": {
                    "content_type": "multimodal_text",
                    "parts": [{"asset_pointer": "file-service://file-1"}, "What is this?"],
                },
            },
        },
        "edited": {"parent": "n1", "message": {"author": {"role": "user"}, "content": {"parts": ["An earlier try"]}}},
        "n3": {
            "parent": "n2",
            "message": {
                "author": {"role": "assistant"},
                "recipient": "python",
                "content": {"content_type": "code", "text": "1 + 1"},
            },
        },
        "n3b": {
            "parent": "n3",
            "message": {
                "author": {"role": "tool", "name": "python"},
                "content": {"content_type": "execution_output", "text": "2"},
            },
        },
        "n4": {"parent": "n3b", "message": {"author": {"role": "assistant"}, "content": {"parts": ["A fjord."]}}},
    },
}


def test_the_current_branch_of_a_chatgpt_conversation_is_imported(client: Client) -> None:
    report = import_path(client, None, text=as_json([CHATGPT]))
    assert (report.format, [row.session_id for row in report.sessions]) == ("chatgpt", ["8f3a2b1c-0000"])
    messages = client.session("8f3a2b1c-0000").messages
    assert [(message.role, message.parts) for message in messages] == [
        ("user", [ImagePart("file-service://file-1"), TextPart("What is this?")]),
        ("assistant", [ToolPart(tool_name="python", tool_input="1 + 1")]),
        ("tool", [ToolPart(tool_name="python", output="2", success=True)]),
        ("assistant", [TextPart("A fjord.")]),
    ]
    assert (messages[0].id, messages[0].created_at.microsecond) == ("u1", 500_000)
    info = client.get_session("8f3a2b1c-0000")
    assert (info.title, info.created_at) == ("Fjords", AT)


SAMPLE = {
    "sample_id": "conv-1",
    "qa": [{"question": "?", "answer": "!"}],
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Bob",
        "session_10_date_time": "12:09 am on 13 September, 2023",
        "session_10": [{"speaker": "Bob", "dia_id": "D10:1", "text": "Hi", "blip_caption": "a cat"}],
        "session_2_date_time": "1:56 pm on 8 May, 2023",
        "session_2": [
            {"speaker": "Ann", "dia_id": "D2:1", "text": "Hello"},
            {"speaker": "Bob", "dia_id": "D2:2", "text": "Look", "img_url": ["https://x/a"], "blip_caption": "a dog"},
        ],
        "session_3_date_time": "1:56 pm on 9 May, 2023",
    },
}


def test_each_session_of_a_locomo_sample_becomes_a_session(client: Client) -> None:
    report = import_path(client, None, text=as_json([SAMPLE]))
    assert report.format == "locomo"
    assert [row.session_id for row in report.sessions] == ["conv-1-session_2", "conv-1-session_10"]
    info, messages = client.get_session("conv-1-session_2"), client.session("conv-1-session_2").messages
    assert (info.created_at, info.title) == (AT, "conv-1, session 2")
    assert info.metadata == {
        "sample_id": "conv-1",
        "session": 2,
        "speakers": ["Ann", "Bob"],
        "date": "1:56 pm on 8 May, 2023",
    }
    assert [(m.id, m.role, m.peer_id, m.created_at) for m in messages] == [
        ("D2:1", "user", "Ann", AT),
        ("D2:2", "user", "Bob", AT),
    ]
    assert messages[1].parts == [TextPart("Look"), ImagePart("https://x/a", "a dog")]
    (other,) = client.session("conv-1-session_10").messages
    assert (other.created_at.hour, other.parts) == (0, [TextPart("Hi"), TextPart("[Image: a cat]")])


@pytest.mark.skipif(
    not LOCOMO.exists(), reason="the LoCoMo data is not available; its licence does not allow its distribution"
)
def test_the_locomo_dataset_is_imported_with_the_ids_of_its_evidence(client: Client) -> None:
    report = import_path(client, LOCOMO)
    assert (report.format, report.failed) == ("locomo", [])
    assert (len(report.sessions), sum(row.added for row in report.sessions)) == (136, 2_960)
    samples = json.loads(LOCOMO.read_text("utf-8"))
    evidence = next(question["evidence"][0] for question in samples[0]["qa"] if question["evidence"])
    session = f"{samples[0]['sample_id']}-session_{evidence.partition(':')[0][1:]}"
    assert evidence in {message.id for message in client.session(session).messages}
    assert import_path(client, LOCOMO, dry_run=True).sessions[-1].state == "already there"


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("a.json", "", "a.json is empty"),
        ("a.json", "[]", "is in no known format: expected OpenAI-style .* LoCoMo .* found an empty array"),
        ("a.json", '[{"text": "hi"}]', r"a.json, \[0\] is in no known format: .*found an object with 'text'"),
        ("a.json", "5", "found a int"),
        ("a.json", '[\n{"role": "user"},\n{"role" "user"}]', "a.json, line 3 is not JSON"),
        ("a.jsonl", "nonsense\n{}\n", "a.jsonl, line 1 is not JSON"),
        ("a.jsonl", as_json_lines(CHAT[:2]) + '{"role": "user"\n', "a.jsonl, line 3 is not JSON"),
        ("a.jsonl", as_json_lines([*CHAT[:2], {"text": "hi"}]), "a.jsonl, line 3: {'text': 'hi'} is not a message"),
        (
            "a.jsonl",
            as_json_lines([*CHAT[:2], {"role": "robot"}]),
            "a.jsonl, line 3: the role 'robot' is not one of user",
        ),
        ("a.jsonl", as_json_lines([{"messages": CHAT[:1]}, {"x": 1}]), "a.jsonl, line 2: .* is not a conversation"),
        ("a.json", as_json({"messages": [{"role": "user", "content": 5}]}), r"a.json, messages\[0\].content: Expected"),
        ("a.json", as_json([{"role": "user", "content": "hi", "created": "soon"}]), "created: 'soon' is not a time"),
        ("a.json", as_json([{"role": "user", "content": "a\0b"}]), "a.json, .0., content: has a NUL character"),
        ("a.json", "[" * 5_000, "line 1 is not JSON"),
    ],
)
def test_an_invalid_file_is_rejected_with_its_line_and_nothing_is_imported(
    client: Client, tmp_path: Path, name: str, content: str, error: str
) -> None:
    (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(InvalidArgumentError, match=error):
        import_path(client, tmp_path / name)
    assert client.list_sessions() == []


def test_an_invalid_source_is_rejected(client: Client, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="there is no file or folder"):
        import_path(client, tmp_path / "nope.json")
    with pytest.raises(InvalidArgumentError, match=r"is not an export: it has neither a \.export\.json nor"):
        import_path(client, tmp_path)
    with pytest.raises(InvalidArgumentError, match="is a folder; openai is read from a file"):
        import_path(client, tmp_path, format="openai")
    with pytest.raises(InvalidArgumentError, match="source: is missing"):
        import_path(client, None)
    with pytest.raises(InvalidArgumentError, match="format: 'csv' is not one of auto, holdfast, openai"):
        import_path(client, None, text="x", format="csv")
    with pytest.raises(InvalidArgumentError, match="session_id"):
        import_path(client, None, text=as_json(CHAT), session_id="a/b")
    with pytest.raises(InvalidArgumentError, match="expected the format locomo; found an object with 'role'"):
        import_path(client, None, text=as_json(CHAT), format="locomo")
