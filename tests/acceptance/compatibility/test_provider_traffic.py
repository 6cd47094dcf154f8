"""Provider messages, sent unchanged: over HTTP, on the command line, and from a hundred recorded trajectories."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

import holdfast
from conversations import recorded
from holdfast.exchange import export_sessions, import_path
from holdfast.model.parts import ProviderPart, TextPart, ToolPart
from holdfast.testing.server import running_server

ARGUMENTS = '{"user_id":  "mia_li_3668"}'
CHAT: list[dict[str, Any]] = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": [{"type": "input_text", "text": "Who am I?"}]},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "Z2VoZWlt"},
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "get_user", "arguments": ARGUMENTS},
    {"type": "function_call_output", "call_id": "c1", "output": "Mia Li"},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "Mia.", "signature": "cw=="}], "model": "m"},
]


def assert_stored_without_loss(messages: list[Any]) -> None:
    assert [message.role for message in messages] == ["system", "user", "assistant", "assistant", "tool", "assistant"]
    assert messages[1].parts == [TextPart("Who am I?")]
    assert messages[2].parts == [ProviderPart("openai", CHAT[2])]
    assert messages[3].parts == [ToolPart("c1", "get_user", tool_input=ARGUMENTS, provider_fields={"id": "fc_1"})]
    assert messages[4].parts == [ToolPart("c1", "get_user", output="Mia Li", success=True)]
    assert messages[5].parts == [ProviderPart("anthropic", CHAT[5]["content"][0])]
    assert messages[5].metadata == {"provider_fields": {"model": "m"}}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_server(tmp_path_factory.mktemp("traffic")) as server:
        yield server.url


def test_http_requests_accept_provider_messages(url: str) -> None:
    sessions = f"{url}/api/v1/sessions"
    response = httpx2.post(f"{sessions}/batch/messages/batch", json={"messages": CHAT})
    assert response.json()["result"]["added"] == len(CHAT)
    for message in [*CHAT[:4], {**CHAT[4], "name": "get_user"}, CHAT[5]]:
        assert httpx2.post(f"{sessions}/single/messages", json=message).status_code == 200
    with holdfast.connect(url) as client:
        assert_stored_without_loss(client.get_messages("batch").messages)
        assert_stored_without_loss(client.get_messages("single").messages)


def test_a_field_that_cannot_be_stored_is_rejected_by_name(url: str) -> None:
    message = {"role": "assistant", "parts": [{"type": "text", "text": "x"}], "tool_calls": [{"id": "c1"}]}
    response = httpx2.post(f"{url}/api/v1/sessions/chat/messages", json=message)
    assert (response.status_code, response.json()["error"]["details"]["field"]) == (400, "tool_calls")


def test_the_command_line_accepts_provider_messages(
    cli_ok: Callable[..., Any], client: holdfast.Client, tmp_path: Path
) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_text("".join(json.dumps(message) + "\n" for message in CHAT), "utf-8")
    cli_ok("session", "add-messages", "lines", f"@{file}")
    cli_ok("session", "add-messages", "array", json.dumps(CHAT))
    assert_stored_without_loss(client.get_messages("lines").messages)
    assert_stored_without_loss(client.get_messages("array").messages)
    output = cli_ok("session", "messages", "lines").out
    assert "[openai reasoning]" in output
    assert "[anthropic thinking]" in output


def test_import_accepts_the_same_messages_as_an_append_and_export_keeps_them(tmp_path: Path) -> None:
    with holdfast.connect(":memory:") as client, holdfast.connect(":memory:") as other:
        client.session("added").add_messages(CHAT)
        import_path(client, None, text=json.dumps(CHAT), session_id="imported")
        assert_stored_without_loss(client.session("imported").messages)
        export_sessions(client, tmp_path / "export")
        assert import_path(other, tmp_path / "export").failed == []
        for session_id in ("added", "imported"):
            assert other.session(session_id).messages == client.session(session_id).messages


def test_recorded_traffic_is_stored_without_loss() -> None:
    file = recorded.find_data_file()
    if file is None:
        pytest.skip(f"{recorded.FILE} is not in HOLDFAST_DATA")
    trajectories = list(recorded.load_trajectories(file))
    assert all(row.messages for row in trajectories)
    assert trajectories
    with holdfast.connect(":memory:") as client:
        for row in trajectories:
            session = client.session(row.id)
            for start in range(0, len(row.messages), 100):
                session.add_messages(row.messages[start : start + 100])
            for sent, stored in zip(row.messages, session.messages, strict=True):
                assert_same_message(client, row.id, sent, stored)


def assert_same_message(
    client: holdfast.Client, session_id: str, sent: dict[str, Any], stored: holdfast.Message
) -> None:
    tools = [part for part in stored.parts if isinstance(part, ToolPart)]
    if sent["role"] == "tool":
        (part,) = tools
        output = part.tool_output
        if part.tool_result_id:
            output = client.read_tool_result(session_id, part.tool_result_id, limit=1_000_000).content
        assert (part.tool_id, part.tool_name, output) == (sent["tool_call_id"], sent["name"], sent["content"])
        return
    sent_calls = [(call["id"], *call["function"].values()) for call in sent.get("tool_calls") or []]
    stored_calls = [{part.tool_id, part.tool_name, part.tool_input} for part in tools]
    assert (stored.text, stored_calls) == (sent["content"] or "", [set(call) for call in sent_calls])
