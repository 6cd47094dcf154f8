"""The server's log: every request, and no secret."""

import json
from pathlib import Path
from typing import Any

import apsw
import httpx2

from holdfast.testing.faults.connections import Connection
from holdfast.testing.server import running_server

SECRETS = ("parrot", "walrus", "ocelot", "gecko")
"""Used as a text, a tool output, a search and a title. Names and ids are not secret."""


def send_secrets(http: httpx2.Client, key: str) -> list[str]:
    """Send requests of every kind with secrets in all fields; return the request ids."""
    text, output, words, title = SECRETS
    tool = {"type": "tool", "tool_name": "t", "tool_output": output * 3_000, "tool_input": {"q": text}}
    messages = "/api/v1/sessions/chat/messages"
    requests: list[tuple[str, str, Any]] = [
        ("POST", "/api/v1/sessions", {"session_id": "chat", "title": title, "metadata": {"k": text}}),
        ("POST", messages, {"role": "user", "content": text}),
        ("POST", messages, {"role": "tool", "parts": [tool]}),
        ("POST", messages, {"role": text, "content": text}),
        ("POST", messages, {"role": "user", "content": 5, "parts": text}),
        ("POST", messages, {"role": "user", "parts": [{"type": text, "text": text}]}),
        ("POST", messages, {"role": "user", "content": text, "created_at": text}),
        ("POST", messages, {"role": "user", "content": f"{text}\0"}),
        ("POST", messages, {"role": "user", "content": text, "expected_seq": 7}),
        ("PATCH", "/api/v1/sessions/chat", {"title": title * 200}),
        ("GET", f"{messages}?q={words}", None),
        ("GET", f"{messages}?q={words}&limit={words}", None),
        ("GET", f"/api/v1/sessions?q={words}", None),
        ("GET", f"/api/v1/sessions/chat/tool-results/{words}/search?q={words}", None),
        ("GET", f"/nothing?q={words}", None),
        ("GET", f"/api/v1/nothing/{words}", None),
    ]
    sent = []
    for verb, path, body in requests:
        for headers in ({"X-API-Key": key}, {"Authorization": f"Bearer {key}"}, {"X-API-Key": f"wrong{key}"}):
            response = http.request(verb, path, json=body, headers=headers)
            sent.append(response.headers["x-request-id"])
    bodies = (b'{"role": "user", "content": "parrot', b'["parrot"]', b'"parrot"', b"parrot")
    responses = [http.post(messages, content=body, headers={"X-API-Key": key}) for body in bodies]
    return sent + [response.headers["x-request-id"] for response in responses]


def test_the_log_has_every_request_and_no_secret(tmp_path: Path) -> None:
    with running_server(tmp_path, root_api_key="root-key-of-the-operator", log_level="debug") as server:
        with httpx2.Client(base_url=server.url, timeout=10) as http:
            root = {"X-API-Key": "root-key-of-the-operator"}
            account = {"account_id": "acme", "admin_user_id": "alice"}
            key = http.post("/api/v1/admin/accounts", json=account, headers=root).json()["result"]["user_key"]
            renewed = http.post("/api/v1/admin/accounts/acme/users/alice/key", headers={"X-API-Key": key})
            new_key = renewed.json()["result"]["user_key"]
            sent = send_secrets(http, new_key)

            # An unexpected error whose message contains the request's text.
            connection_to_break = apsw.Connection(str(tmp_path / "holdfast.db"))
            connection_to_break.execute(
                "CREATE TRIGGER refuse BEFORE INSERT ON messages BEGIN SELECT RAISE(ABORT, NEW.parts); END"
            ).fetchall()
            connection_to_break.close()
            broken = http.post(
                "/api/v1/sessions/chat/messages",
                json={"role": "user", "content": SECRETS[0]},
                headers={"X-API-Key": new_key},
            )
            error = broken.json()["error"]
            assert (broken.status_code, error["code"]) == (500, "DATA_DAMAGED")
            assert "holdfast doctor --deep" in error["message"]
            assert SECRETS[0] not in broken.text
            sent.append(broken.headers["x-request-id"])
        with Connection(server.url) as connection:
            connection.send(f"parrot {new_key}\r\n\r\n".encode())
            connection.wait_until_closed()
        assert server.stop() == 0
    log = server.log()
    for secret in (*SECRETS, key, new_key, "root-key-of-the-operator"):
        assert secret not in log
    lines = [json.loads(line) for line in log.splitlines()]
    assert all({"at", "level", "event"} <= line.keys() for line in lines)
    requests = [line for line in lines if line["event"] == "request"]
    assert [line["request_id"] for line in requests if line["request_id"] in set(sent)] == sent
    assert all(line["status"] >= 200 and line["ms"] >= 0 and line["operation"] for line in requests)
    assert {(line["account"], line["user"]) for line in requests} == {
        ("acme", "alice"),
        ("_operator", "operator"),
        (None, None),
    }
    (failed,) = [line for line in lines if line["level"] == "error"]
    assert (failed["request_id"], failed["operation"]) == (sent[-1], "AddMessage")
    assert "ConstraintError" in failed["error"]
