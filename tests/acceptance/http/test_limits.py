"""The limits of the server: size, number, nesting, rate and time. Other clients are not affected."""

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

import holdfast
from holdfast.testing.faults.connections import TIMEOUT_SECONDS, Connection, request_head
from holdfast.testing.faults.locks import block_writes
from holdfast.testing.faults.streams import EventStream
from holdfast.testing.faults.watching import open_sockets, peak_memory, wait_for
from holdfast.testing.server import ServerProcess, running_server

MAX_BODY_BYTES = 200_000
MESSAGES = "/api/v1/sessions/chat/messages"

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    settings = {"max_body_bytes": MAX_BODY_BYTES, "request_timeout_seconds": 2, "slow_client_seconds": 1}
    with running_server(tmp_path_factory.mktemp("limits"), **settings) as server:
        yield server


@pytest.fixture
def http(server: ServerProcess) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server.url, timeout=TIMEOUT_SECONDS) as client:
        yield client


@pytest.fixture
def chat(http: httpx2.Client) -> Iterator[str]:
    """The path of an empty session, which must be empty at the end."""
    name = f"chat{next(_numbers)}"
    http.post("/api/v1/sessions", json={"session_id": name})
    path = f"/api/v1/sessions/{name}"
    yield path
    assert http.get(path).json()["result"]["total_message_count"] == 0


def body_of(size: int) -> bytes:
    return b'{"role":"user","content":"%b"}' % (b"x" * (size - 29))


def in_chunks(body: bytes) -> bytes:
    pieces = [body[at : at + 10_000] for at in range(0, len(body), 10_000)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def assert_error(response: httpx2.Response, status: int, code: str, *words: str) -> Any:
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert error["code"] == code
    for word in words:
        assert word in error["message"]
    return error


def test_a_body_of_the_maximum_size_is_accepted(http: httpx2.Client) -> None:
    assert http.post(MESSAGES, content=body_of(MAX_BODY_BYTES)).status_code == 200
    assert http.post(MESSAGES, content=iter([body_of(MAX_BODY_BYTES)])).status_code == 200


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_that_is_too_large_is_rejected_and_the_connection_stays_usable(
    server: ServerProcess, http: httpx2.Client, chat: str, *, announced: bool
) -> None:
    body = body_of(3 * MAX_BODY_BYTES)
    with Connection(server.url) as connection:
        if announced:
            connection.send(request_head("POST", f"{chat}/messages", len(body)) + body)
        else:
            connection.send(request_head("POST", f"{chat}/messages", transfer_encoding="chunked") + in_chunks(body))
        response = connection.read_response()
        assert response is not None
        assert response.status == 413
        assert (response.error["code"], response.error["details"]["limit"]) == ("RESOURCE_EXHAUSTED", MAX_BODY_BYTES)
        assert str(MAX_BODY_BYTES) in response.error["message"]
        connection.send(request_head("GET", chat))
        after = connection.read_response()
        assert after is not None
        assert after.status == 200


def test_a_body_that_is_too_large_gets_no_100_continue(server: ServerProcess, chat: str) -> None:
    with Connection(server.url) as connection:
        connection.send(request_head("POST", f"{chat}/messages", MAX_BODY_BYTES + 1, expect="100-continue"))
        response = connection.read_response()
        assert response is not None
        assert response.status == 413


def test_the_client_raises_an_error_for_a_body_that_is_too_large(server: ServerProcess, chat: str) -> None:
    with (
        holdfast.connect(server.url) as client,
        pytest.raises(holdfast.errors.ResourceExhaustedError, match=str(MAX_BODY_BYTES)),
    ):
        client.add_message(chat.rsplit("/", 1)[1], "user", "x" * 40 * MAX_BODY_BYTES)


def test_a_batch_of_more_than_100_messages_is_rejected(http: httpx2.Client, chat: str) -> None:
    messages = [{"role": "user", "content": "hello"}] * 101
    response = http.post(f"{chat}/messages/batch", json={"messages": messages})
    assert_error(response, 400, "INVALID_ARGUMENT", "messages", "100")
    assert http.post(f"{MESSAGES}/batch", json={"messages": messages[:100]}).json()["result"]["added"] == 100


def test_a_message_with_too_many_parts_is_rejected(http: httpx2.Client, chat: str) -> None:
    message = {"role": "user", "parts": [{"type": "text", "text": "x"}] * 1_001}
    assert_error(http.post(f"{chat}/messages", json=message), 400, "INVALID_ARGUMENT", "parts", "1000")


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (nested(90_000), "nested"),
        (b"[" * 150_000, "nested"),
        (b'{"a":' * 30_000, "nested"),
        (b'{"role":"user","parts":[{"type":"tool","tool_input":{"a":%b}}]}' % nested(200), "64"),
        (b'{"role":"user","content":"x","unknown":%b}' % nested(90_000), "nested"),
        (b"hello", "JSON"),
        (b'{"role":"user"', "JSON"),
        (b'{"role":"user","content":"x"}{}', "JSON"),
        (b'{"role":"user","content":NaN}', "JSON"),
        (b"[1,2]", "object"),
        (b'"text"', "object"),
        (b"null", "object"),
        (b"7", "object"),
        (b'{"role":"user","content":"caf\xe9"}', "JSON"),
        (b'\xff\xfe{"role":"user"}', "JSON"),
        (b'{"role":"user","content":"\\ud800"}', "JSON"),
        (b'{"role":"user","content":"\\ud800 and more"}', ""),
        (b'{"role":"user","content":"\xed\xa0\x80"}', "JSON"),
        (b'{"role":"user","content":"a\\u0000b"}', "NUL"),
        (b'{"role":"user","content":"a\x00b"}', "JSON"),
        (b'{"role":"user","parts":[{"type":"text","text":"\\u0000"}]}', "NUL"),
        (b'{"role":"user","parts":[{"type":"tool","tool_input":{"\\u0000":1}}]}', "NUL"),
        (b'{"role":"user","content":"x","expected_seq":1e400}', ""),
        (b'{"role":"user","content":"x","expected_seq":%b}' % (b"9" * 5_000), ""),
        (b"", "role"),
    ],
    ids=lambda value: value[:40] if isinstance(value, bytes) else "",
)
def test_an_invalid_body_is_rejected(http: httpx2.Client, chat: str, body: bytes, word: str) -> None:
    assert_error(http.post(f"{chat}/messages", content=body), 400, "INVALID_ARGUMENT", word)


def test_a_request_head_that_is_too_large_is_rejected(server: ServerProcess) -> None:
    for beginning in (b"GET /", b"GET /health HTTP/1.1\r\nX-Long: "):
        with Connection(server.url) as connection:
            connection.send(beginning + b"x" * 70_000)
            response = connection.read_response()
            assert response is not None
            assert (response.status, response.error["code"]) == (431, "RESOURCE_EXHAUSTED")
            connection.wait_until_closed()


def test_an_endless_request_head_closes_the_connection(server: ServerProcess) -> None:
    line = b"X-More: %b\r\n" % (b"x" * 1_000)
    with Connection(server.url) as connection:
        connection.send(b"GET /health HTTP/1.1\r\n")
        sent = 0
        with suppress(ConnectionError):
            while sent < 200_000_000:
                connection.send(line * 100)
                sent += len(line) * 100
        assert sent < 20_000_000


def test_a_write_that_times_out_can_be_retried_and_is_executed_once(target: str) -> None:
    message = {"role": "user", "content": "hello"}
    with (
        running_server(target, request_timeout_seconds=0.5) as server,
        httpx2.Client(base_url=server.url, timeout=TIMEOUT_SECONDS, headers={"Idempotency-Key": "k"}) as http,
    ):
        assert http.post(MESSAGES, json=message, headers={"Idempotency-Key": "first"}).status_code == 200
        with block_writes(target):
            if "://" in target:  # PostgreSQL stops waiting for the lock before the request times out
                error = 503, "UNAVAILABLE", "locked by another transaction", "nothing was written", "try again"
            else:
                error = 504, "DEADLINE_EXCEEDED", "0.5", "unknown", "idempotency key"
            assert_error(http.post(MESSAGES, json=message), *error)
            # One table of PostgreSQL is locked, but the whole file of SQLite.
            assert http.get("/ready").status_code == (200 if "://" in target else 503)
            assert http.get(MESSAGES).json()["result"]["messages"][-1]["seq"] == 1
        retried = http.post(MESSAGES, json=message)
        assert retried.json()["result"]["seq"] == 2
        assert http.get(MESSAGES).json()["result"]["messages"][-1]["seq"] == 2


def test_the_client_retries_a_write_that_times_out(tmp_path: Path) -> None:
    target = str(tmp_path / "holdfast.db")
    with running_server(target, request_timeout_seconds=0.2) as server, holdfast.connect(server.url) as client:
        client.add_message("chat", "user", "first")
        with ExitStack() as stack:
            stack.enter_context(block_writes(target))
            added: list[int] = []
            thread = threading.Thread(target=lambda: added.append(client.add_message("chat", "user", "hello").seq))
            thread.start()
            wait_for(lambda: server.log().count('"status":504') >= 2)
        thread.join(TIMEOUT_SECONDS)
        assert added == [2]
        assert [message.text for message in client.session("chat").messages] == ["first", "hello"]


def test_a_key_is_accepted_while_the_database_is_locked(tmp_path: Path) -> None:
    target = str(tmp_path / "holdfast.db")
    settings = {"root_api_key": "root-key-of-the-operator", "request_timeout_seconds": 0.5}
    with (
        running_server(target, **settings) as server,
        httpx2.Client(base_url=server.url, timeout=TIMEOUT_SECONDS) as http,
    ):
        account = {"account_id": "acme", "admin_user_id": "alice"}
        created = http.post("/api/v1/admin/accounts", json=account, headers={"X-API-Key": "root-key-of-the-operator"})
        key = {"X-API-Key": created.json()["result"]["user_key"]}
        with block_writes(target):  # the first use of a key writes its last_used_at
            assert http.get("/api/v1/sessions", headers=key).status_code == 200


def test_requests_above_the_rate_limit_are_rejected_for_a_while(tmp_path: Path) -> None:
    settings = {"rate_limit_per_second": 2, "rate_limit_burst": 4}
    with (
        running_server(tmp_path, **settings) as server,
        httpx2.Client(base_url=server.url, timeout=TIMEOUT_SECONDS) as http,
    ):
        responses = [http.get("/api/v1/whoami") for _ in range(12)]
        allowed = [response for response in responses if response.status_code == 200]
        rejected = [response for response in responses if response.status_code != 200]
        assert len(allowed) >= 4
        assert rejected
        for response in rejected:
            error = assert_error(response, 429, "RESOURCE_EXHAUSTED", "2", "per second")
            assert error["details"]["limit"] == 2
            assert 0 < error["details"]["retry_after"] <= 0.5
            assert response.headers["retry-after"] == "1"
        assert http.get("/api/v1/whoami", headers={"X-OpenViking-User": "bob"}).status_code == 200
        assert http.get("/health").status_code == 200
        with holdfast.connect(server.url, user="carol") as client:
            seqs = [client.add_message("chat", "user", "hello").seq for _ in range(6)]
        assert seqs == [1, 2, 3, 4, 5, 6]
        assert '"status":429,' in server.log()


def test_streams_above_the_limit_are_rejected(tmp_path: Path) -> None:
    settings = {"max_streams_per_user": 2, "max_streams": 3}
    accept = {"Accept": "text/event-stream"}
    path = "/api/v1/sessions/chat/events"
    with (
        running_server(tmp_path, **settings) as server,
        httpx2.Client(base_url=server.url, timeout=TIMEOUT_SECONDS, headers=accept) as http,
        ExitStack() as stack,
    ):

        def open_stream(user: str) -> EventStream:
            return stack.enter_context(EventStream(server.url, "chat", x_openviking_user=user))

        for user in ("alice", "bob", "carol"):
            http.get("/api/v1/sessions/chat?auto_create=true", headers={"X-OpenViking-User": user})
        first, _ = open_stream("alice"), open_stream("alice")
        error = assert_error(
            http.get(path, headers={"X-OpenViking-User": "alice"}), 429, "RESOURCE_EXHAUSTED", "2 streams"
        )
        assert error["details"]["limit"] == 2
        open_stream("bob")
        third = http.get(path, headers={"X-OpenViking-User": "carol"})
        assert_error(third, 429, "RESOURCE_EXHAUSTED", "3 streams")
        assert third.headers["retry-after"] == "1"
        # A page of events is not a stream and does not count.
        assert http.get(path, headers={"X-OpenViking-User": "alice", "Accept": "*/*"}).status_code == 200
        first.close()
        wait_for(lambda: "holdfast_streams 2.0" in http.get("/metrics").text)
        assert open_stream("carol").take(1)[0].event == "session"


def test_slow_clients_and_incomplete_requests_do_not_delay_others(server: ServerProcess, http: httpx2.Client) -> None:
    name = f"chat{next(_numbers)}"
    messages = f"/api/v1/sessions/{name}/messages"
    for _ in range(15):
        assert http.post(messages, content=body_of(MAX_BODY_BYTES)).status_code == 200
    large = request_head("GET", messages)
    half_body = request_head("POST", messages, 1_000) + b'{"role"'
    answered = request_head("GET", "/health")
    silent = [
        b"",
        b"GET /hea",
        b"GET /health HTTP/1.1\r\nHost: x\r\nX-Ha",
        half_body,
        request_head("POST", messages, transfer_encoding="chunked") + b"5\r\n{",
        large,
        large * 10,
        answered + b"\r\n",
        answered + b"GET /hea",
    ]
    slow_requests = [
        (b"", b"GET /health HTTP/1.1\r\nX-Slow: " + b"x" * 1_000),
        (half_body, b" " * 1_000),
        (request_head("POST", messages, MAX_BODY_BYTES * 2), b" " * 1_000),
        (answered, b"\r\n" * 500),
    ]
    memory, sockets = peak_memory(server), open_sockets(server)
    with ExitStack() as stack:

        def connect(beginning: bytes) -> Connection:
            connection = stack.enter_context(Connection(server.url, receive_buffer=4096))
            connection.send(beginning)
            return connection

        quiet = [connect(beginning) for beginning in silent * 18]
        slow = [(connect(beginning), rest) for beginning, rest in slow_requests * 10]
        stop = threading.Event()
        slow_sender = threading.Thread(target=send_slowly, args=(slow, stop))
        slow_sender.start()
        try:
            with holdfast.connect(server.url) as client:
                deadline = time.monotonic() + TIMEOUT_SECONDS
                while (still_open := open_sockets(server)) > sockets + 1:
                    assert time.monotonic() < deadline, f"{still_open - sockets} connections are still open"
                    started_at = time.monotonic()
                    client.add_message(f"{name}b", "user", "hello")
                    assert time.monotonic() - started_at < 10
        finally:
            stop.set()
            slow_sender.join()
        late = quiet[silent.index(half_body)].read_response()
        assert late is not None
        assert (late.status, late.error["code"]) == (408, "DEADLINE_EXCEEDED")
        assert late.headers["connection"] == "close"
    assert peak_memory(server) - memory < 400_000_000
    assert http.get(f"/api/v1/sessions/{name}").json()["result"]["total_message_count"] == 15


def send_slowly(slow: list[tuple[Connection, bytes]], stop: threading.Event) -> None:
    """Send one byte at a time on each connection."""
    for position in range(1_000):
        if stop.wait(0.1):
            return
        for connection, rest in slow:
            with suppress(OSError):
                connection.send(rest[position : position + 1])
