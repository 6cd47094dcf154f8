"""The wire in detail: the envelope, the headers, the answers to what is not there, and what the log tells of it all."""

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import httpx2
import pytest

import holdfast
from holdfast.testing.faults.connections import Connection, head
from holdfast.testing.server import ServerProcess, running_server

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running_server(tmp_path_factory.mktemp("wire")) as server:
        yield server


@pytest.fixture
def http(server: ServerProcess) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server.url, timeout=10) as client:
        yield client


@pytest.fixture
def chat(http: httpx2.Client) -> str:
    """The path of a session with three messages."""
    path = f"/api/v1/sessions/chat{next(_numbers)}"
    messages = [{"role": "user", "content": f"message {number}"} for number in range(1, 4)]
    assert http.post(f"{path}/messages/batch", json={"messages": messages}).status_code == 200
    return path


def error_of(response: httpx2.Response, status: int) -> Any:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    envelope = response.json()
    assert (envelope["status"], envelope["result"]) == ("error", None)
    assert set(envelope["error"]) == {"code", "message", "details"}
    return envelope["error"]


def test_a_success_comes_in_the_envelope(http: httpx2.Client, chat: str) -> None:
    response = http.post(f"{chat}/messages", json={"role": "user", "content": "hello"})
    envelope = response.json()
    assert response.headers["content-type"] == "application/json"
    assert list(envelope) == ["status", "result", "error", "telemetry", "time"]
    assert (envelope["status"], envelope["error"], envelope["telemetry"]) == ("ok", None, None)
    assert envelope["result"].keys() >= {"session_id", "message_count", "pending_tokens"}
    assert 0 <= envelope["time"] < 10


@pytest.mark.parametrize(
    "path", ["/nothing", "/api", "/api/v1", "/api/v1/nothing", "/api/v2/sessions", "/api/v1/sessions/chat/nothing"]
)
def test_a_route_that_does_not_exist_is_not_found(http: httpx2.Client, path: str) -> None:
    error = error_of(http.get(path), 404)
    assert (error["code"], error["details"]) == ("NOT_FOUND", {"type": "route", "resource": path})


@pytest.mark.parametrize(
    "route",
    [
        "POST /sessions/chat/extract",
        "POST /search/find",
        "POST /search/search",
        "POST /search/grep",
        "POST /search/glob",
        "POST /fs/mkdir",
        "DELETE /fs?uri=viking://resources/a",
        "POST /resources",
        "GET /skills",
        "GET /relations",
    ],
)
def test_what_is_not_offered_is_not_found(http: httpx2.Client, route: str) -> None:
    verb, path = route.split()
    error = error_of(http.request(verb, f"/api/v1{path}", json={} if verb == "POST" else None), 404)
    assert error["code"] == "NOT_FOUND"


@pytest.mark.parametrize(
    ("route", "allow"),
    [
        ("PUT /api/v1/sessions", "GET, POST"),
        ("HEAD /api/v1/sessions", "GET, POST"),
        ("OPTIONS /api/v1/sessions", "GET, POST"),
        ("POST /api/v1/sessions/chat", "DELETE, GET, PATCH"),
        ("DELETE /api/v1/sessions/chat/messages", "GET, POST"),
        ("GET /api/v1/sessions/chat/fork", "POST"),
        ("POST /health", "GET"),
        ("OPTIONS /ready", "GET"),
    ],
)
def test_a_method_that_is_not_possible_is_told_which_are(http: httpx2.Client, route: str, allow: str) -> None:
    response = http.request(*route.split())
    assert (response.status_code, response.headers["allow"]) == (405, allow)
    if route.startswith("HEAD"):
        assert response.content == b""
    else:
        assert error_of(response, 405)["code"] == "METHOD_NOT_ALLOWED"


@pytest.mark.parametrize("page", ["/health", "/ready", "/metrics", "/openapi.json"])
def test_a_page_can_be_asked_for_its_head(http: httpx2.Client, page: str) -> None:
    response = http.head(page)
    assert (response.status_code, response.content) == (200, b"")
    assert int(response.headers["content-length"]) > 0


def test_health_and_readiness_stand_outside_the_envelope(http: httpx2.Client) -> None:
    assert http.get("/health").json() == {
        "status": "ok",
        "healthy": True,
        "version": holdfast.__version__,
        "auth_mode": "dev",
        "account_id": "default",
        "user_id": "default",
        "role": "root",
    }
    assert http.get("/ready").json() == {"status": "ready", "checks": {"storage": "ok"}}


def test_a_slash_at_the_end_is_another_place_and_never_a_redirect(http: httpx2.Client, chat: str) -> None:
    assert error_of(http.get("/health/"), 404)["code"] == "NOT_FOUND"
    assert error_of(http.get(f"{chat}/messages/"), 404)["code"] == "NOT_FOUND"
    assert error_of(http.get("/api/v1/sessions/"), 400)["details"]["field"] == "session_id"


def test_an_id_may_come_percent_encoded(http: httpx2.Client) -> None:
    name = f"a:b@c{next(_numbers)}"
    added = http.post(f"/api/v1/sessions/{name}/messages", json={"role": "user", "content": "hello"})
    assert added.json()["result"]["session_id"] == name
    encoded = "".join(f"%{ord(letter):02x}" for letter in name)
    assert http.get(f"/api/v1/sessions/{encoded}").json()["result"]["session_id"] == name


@pytest.mark.parametrize("id", ["a%2Fb", "%2e%2e", "..%2f..%2fetc", "a%00b", "%20", "a%0a", "%C3%BC", "-a"])
def test_an_id_that_is_not_a_safe_segment_is_refused(http: httpx2.Client, id: str) -> None:
    error = error_of(http.get(f"/api/v1/sessions/{id}"), 400)
    assert (error["code"], error["details"]["field"]) == ("INVALID_ARGUMENT", "session_id")


def test_a_path_or_query_that_is_not_utf_8_is_refused(http: httpx2.Client, chat: str) -> None:
    assert error_of(http.get("/api/v1/sessions/%ff"), 400)["details"]["field"] == "path"
    assert error_of(http.get(f"{chat}/messages?q=%ff"), 400)["details"]["field"] == "query"


def test_what_is_missing_is_told_by_type_and_name(http: httpx2.Client, chat: str) -> None:
    error = error_of(http.get("/api/v1/sessions/none"), 404)
    assert error == {
        "code": "NOT_FOUND",
        "message": "Session none not found",
        "details": {"type": "session", "resource": "none"},
    }
    error = error_of(http.post(f"{chat}/fork", json={"at": 99}), 404)
    assert error["details"] == {"type": "message", "resource": "99"}
    error = error_of(http.get(f"{chat}/tool-results/tr_1"), 404)
    assert error["details"]["resource"] == "tr_1"


def test_what_exists_already_is_told_by_type_and_name(http: httpx2.Client, chat: str) -> None:
    name = chat.rsplit("/", 1)[1]
    error = error_of(http.post("/api/v1/sessions", json={"session_id": name}), 409)
    assert (error["code"], error["details"]) == ("ALREADY_EXISTS", {"resource": name, "type": "session"})


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"role": "pirate", "content": "hello"}, "role"),
        ({"role": "user"}, "parts"),
        ({"role": "user", "parts": [{"type": "dance"}]}, "parts[0].type"),
        ({"role": "user", "content": 5}, "content"),
        ({"role": "user", "content": "hello", "created_at": "yesterday"}, "created_at"),
    ],
)
def test_a_field_that_is_wrong_is_named(http: httpx2.Client, chat: str, body: dict[str, Any], field: str) -> None:
    error = error_of(http.post(f"{chat}/messages", json=body), 400)
    assert error["code"] == "INVALID_ARGUMENT"
    (told,) = error["details"]["validation_errors"]
    assert set(told) == {"loc", "message", "type"}
    assert (told["loc"][0], told["loc"][-1], told["type"]) == ("body", field, "value_error")
    assert told["message"] in error["message"]
    assert http.get(chat).json()["result"]["message_count"] == 3


def test_fields_that_a_newer_client_sends_are_accepted(http: httpx2.Client) -> None:
    path = f"/api/v1/sessions/chat{next(_numbers)}"
    message = {"role": "user", "content": "hello", "mood": "sunny", "nested": {"a": [1]}}
    assert http.post(f"{path}/messages", json=message).json()["result"]["message_count"] == 1
    assert http.post(f"{path}/messages/batch", json={"messages": [message], "x": 1}).json()["result"]["added"] == 1
    assert http.get(f"{path}?newer=1").status_code == 200
    assert http.post("/api/v1/sessions", json={"newer": {}}).status_code == 200


def test_a_body_is_optional_where_nothing_in_it_is_needed(http: httpx2.Client) -> None:
    created = http.post("/api/v1/sessions")
    assert created.status_code == 200
    assert http.post(f"/api/v1/sessions/{created.json()['result']['session_id']}/fork").status_code == 200


def test_a_request_id_is_kept(http: httpx2.Client, chat: str) -> None:
    for path in (chat, "/health", "/nothing", "/api/v1/sessions/none", "/api/v1/nothing"):
        assert http.get(path, headers={"X-Request-ID": "mine-7:"}).headers["x-request-id"] == "mine-7:"


@pytest.mark.parametrize("given", [b"", b"two words", b"x" * 129, b"caf\xe9", b"tab\there"])
def test_a_request_id_that_cannot_be_kept_is_replaced(http: httpx2.Client, given: bytes) -> None:
    made = http.get("/health", headers=[(b"X-Request-ID", given)]).headers["x-request-id"]
    assert re.fullmatch(r"req_[0-9a-f]+", made)
    assert http.get("/health").headers["x-request-id"] != made


def test_every_answer_tells_how_long_it_took(http: httpx2.Client, chat: str) -> None:
    for path in (chat, "/health", "/nothing", "/api/v1/sessions/none", "/api/v1/nothing"):
        assert 0 <= float(http.get(path).headers["x-process-time"]) < 10


def test_telemetry_is_told_on_request(http: httpx2.Client, chat: str) -> None:
    body = {"role": "user", "content": "hello", "telemetry": True}
    response = http.post(f"{chat}/messages", json=body)
    telemetry = response.json()["telemetry"]
    assert telemetry["id"] == response.headers["x-request-id"]
    assert telemetry["summary"].keys() == {"operation", "status", "duration_ms"}
    assert (telemetry["summary"]["operation"], telemetry["summary"]["status"]) == ("AddMessage", "ok")
    assert telemetry["summary"]["duration_ms"] > 0
    assert http.get(f"{chat}?telemetry=true").json()["telemetry"]["summary"]["operation"] == "GetSession"
    assert http.post(f"{chat}/messages", json={**body, "telemetry": False}).json()["telemetry"] is None


def test_the_last_message_is_the_etag_and_an_append_can_insist_on_it(http: httpx2.Client, chat: str) -> None:
    etag = http.get(chat).headers["etag"]
    assert etag == '"3"'
    message = {"role": "user", "content": "hello"}
    added = http.post(f"{chat}/messages", json=message, headers={"If-Match": etag})
    assert (added.json()["result"]["seq"], added.headers["etag"]) == (4, '"4"')
    for stale in (
        http.post(f"{chat}/messages", json=message, headers={"If-Match": etag}),
        http.post(f"{chat}/messages", json={**message, "expected_seq": 3}),
        http.post(f"{chat}/messages/batch", json={"messages": [message]}, headers={"If-Match": 'W/"3"'}),
        http.post(f"{chat}/messages", json={**message, "expected_seq": 3}, headers={"If-Match": '"4"'}),
    ):
        error = error_of(stale, 409)
        assert error["code"] == "CONFLICT"
        assert error["details"] == {"resource": chat.rsplit("/", 1)[1], "type": "session", "current_seq": 4}
    assert http.get(chat).headers["etag"] == '"4"'


def test_an_empty_session_has_an_etag_too(http: httpx2.Client) -> None:
    path = f"/api/v1/sessions/chat{next(_numbers)}"
    assert http.get(f"{path}?auto_create=true").headers["etag"] == '"0"'
    first = http.post(f"{path}/messages", json={"role": "user", "content": "hello"}, headers={"If-Match": '"0"'})
    assert first.headers["etag"] == '"1"'


@pytest.mark.parametrize("given", ["*", '"a"', '"-1"', '"1", "2"', "²", "9" * 30, "9" * 5_000])
def test_an_etag_that_is_none_of_ours_is_refused(http: httpx2.Client, chat: str, given: str) -> None:
    message = {"role": "user", "content": "hello"}
    response = http.post(f"{chat}/messages", json=message, headers=[(b"If-Match", given.encode("latin-1"))])
    assert error_of(response, 400)["code"] == "INVALID_ARGUMENT"


def test_an_idempotency_key_answers_the_same_again(http: httpx2.Client, chat: str) -> None:
    message = {"role": "user", "content": "hello"}
    keyed = {"Idempotency-Key": "k 1/"}
    first = http.post(f"{chat}/messages", json=message, headers=keyed)
    again = http.post(f"{chat}/messages", json={**message, "telemetry": True}, headers=keyed)
    assert first.json()["result"] == again.json()["result"]
    assert first.headers["etag"] == again.headers["etag"] == '"4"'
    in_body = http.post(f"{chat}/messages", json={**message, "idempotency_key": "k 1/"})
    assert in_body.json()["result"] == first.json()["result"]
    error = error_of(http.post(f"{chat}/messages", json={**message, "content": "bye"}, headers=keyed), 409)
    assert (error["code"], error["details"]["type"]) == ("CONFLICT", "idempotency_key")
    assert http.get(chat).json()["result"]["message_count"] == 4


@pytest.mark.parametrize("given", ["", "x" * 256])
def test_an_idempotency_key_that_cannot_be_kept_is_refused(http: httpx2.Client, chat: str, given: str) -> None:
    response = http.post(
        f"{chat}/messages", json={"role": "user", "content": "hello"}, headers={"Idempotency-Key": given}
    )
    assert error_of(response, 400)["details"]["field"] == "idempotency_key"


@pytest.mark.parametrize(
    "request_",
    [
        b"HELLO\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /caf\xe9 HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nbad header\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_what_is_not_http_is_refused_in_the_envelope(server: ServerProcess, request_: bytes) -> None:
    with Connection(server.url) as connection:
        connection.send(request_)
        answer = connection.answer()
        assert answer is not None
        assert (answer.status, answer.headers["content-type"]) == (400, "application/json")
        assert answer.error["code"] == "INVALID_ARGUMENT"
        connection.wait_for_end()


def test_an_upgrade_that_is_not_offered_is_answered_without_it(server: ServerProcess) -> None:
    with Connection(server.url) as connection:
        connection.send(head("GET", "/health", connection="Upgrade", upgrade="websocket"))
        answer = connection.answer()
        assert answer is not None
        assert answer.status == 200


SECRETS = ("parrot", "walrus", "ocelot", "gecko")
"""Of a text, a tool output, a search and a title. A name or an id is none."""


def ask_for_trouble(http: httpx2.Client, key: str) -> list[str]:
    """Requests of every kind, with secrets in all places; the ids of the requests."""
    text, output, words, title = SECRETS
    tool = {"type": "tool", "tool_name": "t", "tool_output": output * 3_000, "tool_input": {"q": text}}
    messages = "/api/v1/sessions/chat/messages"
    asked: list[tuple[str, str, Any]] = [
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
    for verb, path, body in asked:
        for shown in ({"X-API-Key": key}, {"Authorization": f"Bearer {key}"}, {"X-API-Key": f"wrong{key}"}):
            response = http.request(verb, path, json=body, headers=shown)
            sent.append(response.headers["x-request-id"])
    bodies = (b'{"role": "user", "content": "parrot', b'["parrot"]', b'"parrot"', b"parrot")
    answers = [http.post(messages, content=body, headers={"X-API-Key": key}) for body in bodies]
    return sent + [answer.headers["x-request-id"] for answer in answers]


def test_the_log_tells_every_request_and_no_secret(tmp_path: Path) -> None:
    with running_server(tmp_path, root_api_key="root-key-of-the-operator", log_level="debug") as server:
        with httpx2.Client(base_url=server.url, timeout=10) as http:
            root = {"X-API-Key": "root-key-of-the-operator"}
            account = {"account_id": "acme", "admin_user_id": "alice"}
            key = http.post("/api/v1/admin/accounts", json=account, headers=root).json()["result"]["user_key"]
            renewed = http.post("/api/v1/admin/accounts/acme/users/alice/key", headers={"X-API-Key": key})
            new_key = renewed.json()["result"]["user_key"]
            sent = ask_for_trouble(http, new_key)

            # Now something that nobody has foreseen, and that says what was sent.
            saboteur = apsw.Connection(str(tmp_path / "holdfast.db"))
            saboteur.execute(
                "CREATE TRIGGER refuse BEFORE INSERT ON messages BEGIN SELECT RAISE(ABORT, NEW.parts); END"
            ).fetchall()
            saboteur.close()
            broken = http.post(
                "/api/v1/sessions/chat/messages",
                json={"role": "user", "content": SECRETS[0]},
                headers={"X-API-Key": new_key},
            )
            error = error_of(broken, 500)
            assert error["code"] == "INTERNAL"
            assert broken.headers["x-request-id"] in error["message"]
            assert SECRETS[0] not in broken.text
            sent.append(broken.headers["x-request-id"])
        with Connection(server.url) as connection:
            connection.send(f"parrot {new_key}\r\n\r\n".encode())
            connection.wait_for_end()
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


def test_an_offer_of_another_protocol_does_not_cost_the_body(server: ServerProcess, http: httpx2.Client) -> None:
    """As Java's client and `curl --http2` make one."""
    name = f"upgraded{next(_numbers)}"
    body = json.dumps({"session_id": name}).encode()
    offer = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAEAAEAAAAIAAAAB"}
    with Connection(server.url) as connection:
        connection.send(head("POST", "/api/v1/sessions", len(body), **offer) + body)
        answer = connection.answer()
    assert answer
    assert json.loads(answer.body)["result"]["session_id"] == name
    assert http.get(f"/api/v1/sessions/{name}").status_code == 200


def test_what_comes_behind_a_request_does_not_take_its_answer(server: ServerProcess, chat: str) -> None:
    body = json.dumps({"role": "user", "content": "x"}).encode()
    with Connection(server.url) as connection:
        connection.send(head("POST", f"{chat}/messages", len(body)) + body + b"GARBAGE\r\n\r\n")
        answer = connection.answer()
    assert answer
    assert (answer.status, json.loads(answer.body)["result"]["seq"]) == (200, 4)
