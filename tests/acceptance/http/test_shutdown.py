"""The shutdown of the server: it finishes accepted requests, and stops even if it is blocked."""

import signal
import time
from contextlib import ExitStack
from pathlib import Path

import httpx2
import msgspec

import holdfast
from holdfast.testing.faults.connections import TIMEOUT_SECONDS, Connection, request_head
from holdfast.testing.faults.locks import block_writes
from holdfast.testing.faults.streams import EventStream
from holdfast.testing.server import ServerProcess, running_server

MESSAGES = "/api/v1/sessions/chat/messages"
NEVER = 3600
"""Seconds: longer than any test."""


def append_request(text: str, key: str | None = None) -> bytes:
    body = msgspec.json.encode({"role": "user", "content": text, "idempotency_key": key})
    return request_head("POST", MESSAGES, len(body)) + body


def add_first_message(server: ServerProcess) -> None:
    with holdfast.connect(server.url) as client:
        client.session("chat").add_message("user", content="before")


def wait_until_read(server: ServerProcess) -> None:
    """Wait until the server has read everything that was sent before. It reads connections in turn."""
    for _ in range(2):
        assert httpx2.get(f"{server.url}/health", timeout=TIMEOUT_SECONDS).status_code == 200


def wait_until_stopping(server: ServerProcess) -> None:
    """Wait until the server accepts no new connections."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        try:
            Connection(server.url).close()
        except ConnectionRefusedError:
            return
        time.sleep(0.02)
    raise AssertionError("the server still accepts new connections")


def stored_texts(target: str) -> list[str]:
    with holdfast.connect(target) as client:
        return [message.text for message in client.session("chat").messages]


def test_every_accepted_append_is_answered_and_stored(target: str) -> None:
    with running_server(target) as server, ExitStack() as stack:
        add_first_message(server)
        connections = [stack.enter_context(Connection(server.url)) for _ in range(10)]
        with block_writes(target):
            for number, connection in enumerate(connections[:-1]):
                connection.send(append_request(f"message {number}"))
            request = append_request("in two halves")
            connections[-1].send(request[:-20])
            wait_until_read(server)
            server.process.send_signal(signal.SIGTERM)
            wait_until_stopping(server)
            server.process.send_signal(signal.SIGTERM)  # a second SIGTERM changes nothing
            connections[-1].send(request[-20:])
        for connection in connections:
            response = connection.read_response()
            assert response is not None
            assert (response.status, response.headers["connection"]) == (200, "close"), response
            connection.wait_until_closed()
        assert server.process.wait(TIMEOUT_SECONDS) == 0
    assert sorted(stored_texts(target)) == sorted(
        ["before", "in two halves", *(f"message {number}" for number in range(9))]
    )
    if "://" not in target:  # SQLite: a clean exit removes the write-ahead log
        assert [file.name for file in Path(target).parent.iterdir()] == ["holdfast.db"]


def test_streams_and_idle_connections_are_closed_properly(tmp_path: Path) -> None:
    with running_server(tmp_path, shutdown_seconds=NEVER) as server, ExitStack() as stack:
        add_first_message(server)
        queries = ("", "?after=now", "?limit=1")
        streams = [stack.enter_context(EventStream(server.url, "chat", query)) for query in queries]
        idle, silent = (stack.enter_context(Connection(server.url)) for _ in range(2))
        idle.send(request_head("GET", "/health"))
        assert idle.read_response() is not None
        assert [event.event for event in streams[0].take(2)] == ["session", "message"]
        server.process.send_signal(signal.SIGINT)
        rest = [list(stream) for stream in streams]
        assert [len(events) for events in rest] == [0, 0, 2]  # those of the third stream were not read before
        assert all(stream.complete for stream in streams)
        idle.wait_until_closed()
        silent.wait_until_closed()
        assert server.process.wait(TIMEOUT_SECONDS) == 0


def test_a_client_that_reads_nothing_does_not_delay_the_shutdown(tmp_path: Path) -> None:
    with running_server(tmp_path, slow_client_seconds=0.5, shutdown_seconds=NEVER) as server:
        with holdfast.connect(server.url) as client:
            client.session("chat").add_message("user", content="x" * 10_000_000)
        with Connection(server.url, receive_buffer=4096) as slow, EventStream(server.url, "chat", receive_buffer=4096):
            slow.send(request_head("GET", MESSAGES))
            assert slow.read(1)
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(TIMEOUT_SECONDS) == 0


def test_a_request_that_cannot_finish_in_time_gets_503_and_can_be_retried(target: str) -> None:
    with running_server(target, shutdown_seconds=0.5) as server:
        add_first_message(server)
        with block_writes(target), Connection(server.url) as connection:
            connection.send(append_request("late", "k"))
            wait_until_read(server)
            server.process.send_signal(signal.SIGTERM)
            response = connection.read_response()
            assert response is not None
            assert (response.status, response.error["code"]) == (503, "UNAVAILABLE")
            assert "unknown" in response.error["message"]
            assert server.process.wait(TIMEOUT_SECONDS) == 1
        assert '"level":"error"' in server.log()
    with running_server(target) as server, httpx2.Client(base_url=server.url) as http:
        retried = http.post(MESSAGES, json={"role": "user", "content": "late", "idempotency_key": "k"})
        assert retried.json()["result"]["seq"] == 2
    assert stored_texts(target) == ["before", "late"]


def test_a_second_ctrl_c_stops_the_server_at_once(tmp_path: Path) -> None:
    target = str(tmp_path / "holdfast.db")
    with running_server(target) as server:
        add_first_message(server)
        with block_writes(target), Connection(server.url) as connection:
            connection.send(append_request("never"))
            wait_until_read(server)
            server.process.send_signal(signal.SIGINT)
            wait_until_stopping(server)
            server.process.send_signal(signal.SIGINT)
            assert server.process.wait(TIMEOUT_SECONDS) != 0
    assert stored_texts(target) == ["before"]


def test_an_incomplete_body_does_not_delay_the_shutdown(tmp_path: Path) -> None:
    with running_server(tmp_path, shutdown_seconds=NEVER) as server, Connection(server.url) as connection:
        connection.send(request_head("POST", MESSAGES, 50) + b"half")
        wait_until_read(server)
        assert server.stop() == 0
