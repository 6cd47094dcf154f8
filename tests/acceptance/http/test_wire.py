"""The HTTP protocol in detail: the envelope, headers and errors."""

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

import holdfast
from holdfast.testing.faults.connections import Connection, request_head
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


def test_a_result_is_sent_in_the_envelope(http: httpx2.Client, chat: str) -> None:
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
        "GET /acl?uri=viking://resources/a",
        "POST /snapshots",
        "GET /privacy-configs",
        "POST /compile",
    ],
)
def test_unsupported_operations_are_not_found(http: httpx2.Client, route: str) -> None:
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
def test_a_disallowed_method_gets_the_allowed_ones(http: httpx2.Client, route: str, allow: str) -> None:
    response = http.request(*route.split())
    assert (response.status_code, response.headers["allow"]) == (405, allow)
    if route.startswith("HEAD"):
        assert response.content == b""
    else:
        assert error_of(response, 405)["code"] == "METHOD_NOT_ALLOWED"


@pytest.mark.parametrize("page", ["/health", "/ready", "/metrics", "/openapi.json"])
def test_pages_support_head_requests(http: httpx2.Client, page: str) -> None:
    response = http.head(page)
    assert (response.status_code, response.content) == (200, b"")
    assert int(response.headers["content-length"]) > 0


def test_health_and_ready_have_no_envelope(http: httpx2.Client) -> None:
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


def test_a_trailing_slash_is_another_path_and_never_redirects(http: httpx2.Client, chat: str) -> None:
    assert error_of(http.get("/health/"), 404)["code"] == "NOT_FOUND"
    assert error_of(http.get(f"{chat}/messages/"), 404)["code"] == "NOT_FOUND"
    assert error_of(http.get("/api/v1/sessions/"), 400)["details"]["field"] == "session_id"


def test_an_id_may_be_percent_encoded(http: httpx2.Client) -> None:
    name = f"a:b@c{next(_numbers)}"
    added = http.post(f"/api/v1/sessions/{name}/messages", json={"role": "user", "content": "hello"})
    assert added.json()["result"]["session_id"] == name
    encoded = "".join(f"%{ord(letter):02x}" for letter in name)
    assert http.get(f"/api/v1/sessions/{encoded}").json()["result"]["session_id"] == name


@pytest.mark.parametrize("id", ["a%2Fb", "%2e%2e", "..%2f..%2fetc", "a%00b", "%20", "a%0a", "%C3%BC", "-a"])
def test_an_id_that_is_not_a_safe_path_segment_is_rejected(http: httpx2.Client, id: str) -> None:
    error = error_of(http.get(f"/api/v1/sessions/{id}"), 400)
    assert (error["code"], error["details"]["field"]) == ("INVALID_ARGUMENT", "session_id")


def test_a_path_or_query_that_is_not_utf_8_is_rejected(http: httpx2.Client, chat: str) -> None:
    assert error_of(http.get("/api/v1/sessions/%ff"), 400)["details"]["field"] == "path"
    assert error_of(http.get(f"{chat}/messages?q=%ff"), 400)["details"]["field"] == "query"


def test_a_not_found_error_has_the_type_and_id_of_the_resource(http: httpx2.Client, chat: str) -> None:
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


def test_an_already_exists_error_has_the_type_and_id_of_the_resource(http: httpx2.Client, chat: str) -> None:
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
def test_a_validation_error_names_the_field(http: httpx2.Client, chat: str, body: dict[str, Any], field: str) -> None:
    error = error_of(http.post(f"{chat}/messages", json=body), 400)
    assert error["code"] == "INVALID_ARGUMENT"
    (validation_error,) = error["details"]["validation_errors"]
    assert set(validation_error) == {"loc", "message", "type"}
    assert (validation_error["loc"][0], validation_error["loc"][-1], validation_error["type"]) == (
        "body",
        field,
        "value_error",
    )
    assert validation_error["message"] in error["message"]
    assert http.get(chat).json()["result"]["message_count"] == 3


def test_unknown_fields_of_newer_clients_are_accepted(http: httpx2.Client) -> None:
    path = f"/api/v1/sessions/chat{next(_numbers)}"
    message = {"role": "user", "content": "hello", "mood": "sunny", "nested": {"a": [1]}}
    assert http.post(f"{path}/messages", json=message).json()["result"]["message_count"] == 1
    assert http.post(f"{path}/messages/batch", json={"messages": [message], "x": 1}).json()["result"]["added"] == 1
    assert http.get(f"{path}?newer=1").status_code == 200
    assert http.post("/api/v1/sessions", json={"newer": {}}).status_code == 200


@pytest.mark.parametrize(
    ("route", "body", "field"),
    [
        ("GET /fs/tree?uri=viking://user&directories_only=true", None, None),
        ("GET /fs/tree?uri=viking://user&directories_only=false&depth=3", None, None),
        ("GET /sessions?limit=0", None, "limit"),
        ("GET /sessions?newer=1", None, None),
        ("GET /observer/queue?format=csv", None, "format"),
        ("GET /stats/memories?category=cases", None, None),
        ("GET /stats/memories?category=songs", None, "category"),
        ("POST /search/find", {"query": "x", "image": "viking://a.png"}, None),
        ("POST /search/find", {"query": "x", "image": None, "time_field": "updated_at", "filter": {"a": [1]}}, None),
        ("POST /search/search", {"query": "x", "peer_scope": "bob"}, "peer_scope"),
        ("POST /admin/accounts", {"account_id": "seeded", "seed": "s"}, "seed"),
        ("POST /admin/accounts/default/users", {"user_id": "bob", "seed": "s"}, "seed"),
        ("POST /admin/accounts/default/users/default/key", {"seed": "s"}, "seed"),
        ("POST /sessions/none/commit?keep_recent_count=3", {}, "keep_recent_count"),
        ("POST /search/find?query=norway&newer=1", {}, None),
        ("POST /search/find?query=norway", {"query": "sweden"}, "query"),
        ("GET /audit?since=20260324&until=2026-W13", None, None),
        ("GET /audit?since=17", None, "since"),
    ],
)
def test_a_parameter_that_would_change_the_answer_is_honoured_or_refused(
    http: httpx2.Client, route: str, body: Any, field: str | None
) -> None:
    verb, path = route.split()
    response = http.request(verb, f"/api/v1{path}", json=body)
    if field is None:
        assert response.status_code == 200, response.text
    else:
        error = error_of(response, 400)
        assert (error["code"], error["details"]["field"]) == ("INVALID_ARGUMENT", field)
    assert "seeded" not in http.get("/api/v1/admin/accounts").text


def test_fields_that_seeds_make_optional_are_optional(http: httpx2.Client) -> None:
    path = f"/api/v1/sessions/chat{next(_numbers)}"
    assert http.post(f"{path}/used", json={}).json()["result"].items() >= {"contexts_used": 0, "skills_used": 0}.items()
    assert http.post(f"{path}/used", json={"skill": {"success": True}}).json()["result"]["skills_used"] == 1
    assert http.get(path).json()["result"]["last_commit_at"] == ""
    assert http.post(f"{path}/extract").json()["result"] == []
    assert error_of(http.post("/api/v1/sessions/none/extract", json={}), 404)["code"] == "NOT_FOUND"


def test_a_body_without_required_fields_is_optional(http: httpx2.Client) -> None:
    created = http.post("/api/v1/sessions")
    assert created.status_code == 200
    assert http.post(f"/api/v1/sessions/{created.json()['result']['session_id']}/fork").status_code == 200


def test_the_request_id_of_the_client_is_used(http: httpx2.Client, chat: str) -> None:
    for path in (chat, "/health", "/nothing", "/api/v1/sessions/none", "/api/v1/nothing"):
        assert http.get(path, headers={"X-Request-ID": "mine-7:"}).headers["x-request-id"] == "mine-7:"


@pytest.mark.parametrize("value", [b"", b"two words", b"x" * 129, b"caf\xe9", b"tab\there"])
def test_an_invalid_request_id_is_replaced(http: httpx2.Client, value: bytes) -> None:
    request_id = http.get("/health", headers=[(b"X-Request-ID", value)]).headers["x-request-id"]
    assert re.fullmatch(r"req_[0-9a-f]+", request_id)
    assert http.get("/health").headers["x-request-id"] != request_id


def test_every_response_has_its_duration(http: httpx2.Client, chat: str) -> None:
    for path in (chat, "/health", "/nothing", "/api/v1/sessions/none", "/api/v1/nothing"):
        assert 0 <= float(http.get(path).headers["x-process-time"]) < 10


def test_telemetry_is_sent_on_request(http: httpx2.Client, chat: str) -> None:
    body = {"role": "user", "content": "hello", "telemetry": True}
    response = http.post(f"{chat}/messages", json=body)
    telemetry = response.json()["telemetry"]
    assert telemetry["id"] == response.headers["x-request-id"]
    assert telemetry["summary"].keys() == {"operation", "status", "duration_ms"}
    assert (telemetry["summary"]["operation"], telemetry["summary"]["status"]) == ("AddMessage", "ok")
    assert telemetry["summary"]["duration_ms"] > 0
    assert http.get(f"{chat}?telemetry=true").json()["telemetry"]["summary"]["operation"] == "GetSession"
    assert http.post(f"{chat}/messages", json={**body, "telemetry": False}).json()["telemetry"] is None


def test_the_etag_is_the_last_seq_and_an_append_can_require_it(http: httpx2.Client, chat: str) -> None:
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


@pytest.mark.parametrize("value", ["*", '"a"', '"-1"', '"1", "2"', "²", "9" * 30, "9" * 5_000])
def test_an_invalid_etag_is_rejected(http: httpx2.Client, chat: str, value: str) -> None:
    message = {"role": "user", "content": "hello"}
    response = http.post(f"{chat}/messages", json=message, headers=[(b"If-Match", value.encode("latin-1"))])
    assert error_of(response, 400)["code"] == "INVALID_ARGUMENT"


def test_a_repeated_idempotency_key_returns_the_same_result(http: httpx2.Client, chat: str) -> None:
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


@pytest.mark.parametrize("value", ["", "x" * 256])
def test_an_invalid_idempotency_key_is_rejected(http: httpx2.Client, chat: str, value: str) -> None:
    response = http.post(
        f"{chat}/messages", json={"role": "user", "content": "hello"}, headers={"Idempotency-Key": value}
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
def test_a_request_that_is_not_http_gets_an_error_in_the_envelope(server: ServerProcess, request_: bytes) -> None:
    with Connection(server.url) as connection:
        connection.send(request_)
        response = connection.read_response()
        assert response is not None
        assert (response.status, response.headers["content-type"]) == (400, "application/json")
        assert response.error["code"] == "INVALID_ARGUMENT"
        connection.wait_until_closed()


def test_an_upgrade_to_another_protocol_is_ignored(server: ServerProcess) -> None:
    with Connection(server.url) as connection:
        connection.send(request_head("GET", "/health", connection="Upgrade", upgrade="websocket"))
        response = connection.read_response()
        assert response is not None
        assert response.status == 200


def test_a_request_that_offers_an_upgrade_keeps_its_body(server: ServerProcess, http: httpx2.Client) -> None:
    """Java's HTTP client and `curl --http2` offer an upgrade."""
    name = f"upgraded{next(_numbers)}"
    body = json.dumps({"session_id": name}).encode()
    offer = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAEAAEAAAAIAAAAB"}
    with Connection(server.url) as connection:
        connection.send(request_head("POST", "/api/v1/sessions", len(body), **offer) + body)
        response = connection.read_response()
    assert response
    assert json.loads(response.body)["result"]["session_id"] == name
    assert http.get(f"/api/v1/sessions/{name}").status_code == 200


def test_garbage_after_a_request_does_not_replace_its_response(server: ServerProcess, chat: str) -> None:
    body = json.dumps({"role": "user", "content": "x"}).encode()
    with Connection(server.url) as connection:
        connection.send(request_head("POST", f"{chat}/messages", len(body)) + body + b"GARBAGE\r\n\r\n")
        response = connection.read_response()
    assert response
    assert (response.status, json.loads(response.body)["result"]["seq"]) == (200, 4)
