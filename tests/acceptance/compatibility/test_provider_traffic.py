"""Messages of providers, sent as they are: over HTTP by hand, by the command line, and a hundred real trajectories."""

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


def require_whole(messages: list[Any]) -> None:
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


def test_raw_requests_bring_messages_of_providers(url: str) -> None:
    sessions = f"{url}/api/v1/sessions"
    answer = httpx2.post(f"{sessions}/batch/messages/batch", json={"messages": CHAT})
    assert answer.json()["result"]["added"] == len(CHAT)
    for message in [*CHAT[:4], {**CHAT[4], "name": "get_user"}, CHAT[5]]:
        assert httpx2.post(f"{sessions}/single/messages", json=message).status_code == 200
    with holdfast.connect(url) as client:
        require_whole(client.get_messages("batch").messages)
        require_whole(client.get_messages("single").messages)


def test_a_raw_request_that_cannot_be_kept_is_refused_by_name(url: str) -> None:
    message = {"role": "assistant", "parts": [{"type": "text", "text": "x"}], "tool_calls": [{"id": "c1"}]}
    answer = httpx2.post(f"{url}/api/v1/sessions/chat/messages", json=message)
    assert (answer.status_code, answer.json()["error"]["details"]["field"]) == (400, "tool_calls")


def test_the_command_line_takes_messages_of_providers(
    ok: Callable[..., Any], client: holdfast.Client, tmp_path: Path
) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_text("".join(json.dumps(message) + "\n" for message in CHAT), "utf-8")
    ok("session", "add-messages", "lines", f"@{file}")
    ok("session", "add-messages", "array", json.dumps(CHAT))
    require_whole(client.get_messages("lines").messages)
    require_whole(client.get_messages("array").messages)
    shown = ok("session", "messages", "lines").out
    assert "[openai reasoning]" in shown
    assert "[anthropic thinking]" in shown


def test_an_import_understands_what_an_append_does_and_an_export_keeps_it(tmp_path: Path) -> None:
    with holdfast.connect(":memory:") as client, holdfast.connect(":memory:") as other:
        client.session("added").add_messages(CHAT)
        import_path(client, None, text=json.dumps(CHAT), session_id="imported")
        require_whole(client.session("imported").messages)
        export_sessions(client, tmp_path / "export")
        assert import_path(other, tmp_path / "export").failed == []
        for session_id in ("added", "imported"):
            assert other.session(session_id).messages == client.session(session_id).messages


def test_real_traffic_goes_in_as_it_is_and_nothing_of_it_is_lost() -> None:
    file = recorded.data_file()
    if file is None:
        pytest.skip(f"{recorded.FILE} is not in HOLDFAST_DATA")
    with holdfast.connect(":memory:") as client:
        for row in recorded.trajectories(file):
            session = client.session(row.id)
            for start in range(0, len(row.messages), 100):
                session.add_messages(row.messages[start : start + 100])
            for given, stored in zip(row.messages, session.messages, strict=True):
                require_same(client, row.id, given, stored)


def require_same(client: holdfast.Client, session_id: str, given: dict[str, Any], stored: holdfast.Message) -> None:
    tools = [part for part in stored.parts if isinstance(part, ToolPart)]
    if given["role"] == "tool":
        (part,) = tools
        whole = part.tool_output
        if part.tool_result_id:
            whole = client.read_tool_result(session_id, part.tool_result_id, limit=1_000_000).content
        assert (part.tool_id, part.tool_name, whole) == (given["tool_call_id"], given["name"], given["content"])
        return
    asked = [(call["id"], *call["function"].values()) for call in given.get("tool_calls") or []]
    called = [{part.tool_id, part.tool_name, part.tool_input} for part in tools]
    assert (stored.text, called) == (given["content"] or "", [set(call) for call in asked])
