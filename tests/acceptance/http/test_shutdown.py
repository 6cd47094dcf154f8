"""The end of a server: asked for, it finishes what it accepted; held up, it ends all the same."""

import signal
import time
from contextlib import ExitStack
from pathlib import Path

import httpx2
import msgspec

import holdfast
from holdfast.testing.faults.connections import PATIENCE, Connection, head
from holdfast.testing.faults.locks import held
from holdfast.testing.faults.streams import EventStream
from holdfast.testing.server import ServerProcess, running_server

MESSAGES = "/api/v1/sessions/chat/messages"
NEVER = 3600


def append(text: str, key: str | None = None) -> bytes:
    body = msgspec.json.encode({"role": "user", "content": text, "idempotency_key": key})
    return head("POST", MESSAGES, len(body)) + body


def begin(server: ServerProcess) -> None:
    with holdfast.connect(server.url) as client:
        client.session("chat").add_message("user", content="before")


def settle(server: ServerProcess) -> None:
    """Until the server has read all that was sent to it before: it reads one after the other."""
    for _ in range(2):
        assert httpx2.get(f"{server.url}/health", timeout=PATIENCE).status_code == 200


def wait_until_stopping(server: ServerProcess) -> None:
    """Until it takes no new connections."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            Connection(server.url).close()
        except ConnectionRefusedError:
            return
        time.sleep(0.02)
    raise AssertionError("it still takes new connections")


def texts(target: str) -> list[str]:
    with holdfast.connect(target) as client:
        return [message.text for message in client.session("chat").messages]


def test_every_append_that_was_accepted_is_answered_and_there(target: str) -> None:
    with running_server(target) as server, ExitStack() as stack:
        begin(server)
        connections = [stack.enter_context(Connection(server.url)) for _ in range(10)]
        with held(target):
            for number, connection in enumerate(connections[:-1]):
                connection.send(append(f"message {number}"))
            whole = append("in two halves")
            connections[-1].send(whole[:-20])
            settle(server)
            server.process.send_signal(signal.SIGTERM)
            wait_until_stopping(server)
            server.process.send_signal(signal.SIGTERM)  # who asks again gets no other end
            connections[-1].send(whole[-20:])
        for connection in connections:
            answer = connection.answer()
            assert answer is not None
            assert (answer.status, answer.headers["connection"]) == (200, "close"), answer
            connection.wait_for_end()
        assert server.process.wait(PATIENCE) == 0
    assert sorted(texts(target)) == sorted(["before", "in two halves", *(f"message {number}" for number in range(9))])
    if "://" not in target:
        assert [file.name for file in Path(target).parent.iterdir()] == ["holdfast.db"]


def test_streams_and_idle_connections_end_properly(tmp_path: Path) -> None:
    with running_server(tmp_path, shutdown_seconds=NEVER) as server, ExitStack() as stack:
        begin(server)
        queries = ("", "?after=now", "?limit=1")
        streams = [stack.enter_context(EventStream(server.url, "chat", query)) for query in queries]
        idle, silent = (stack.enter_context(Connection(server.url)) for _ in "ab")
        idle.send(head("GET", "/health"))
        assert idle.answer() is not None
        assert [event.event for event in streams[0].take(2)] == ["session", "message"]
        server.process.send_signal(signal.SIGINT)
        rest = [list(stream) for stream in streams]
        assert [len(events) for events in rest] == [0, 0, 2]
        assert all(stream.complete for stream in streams)
        idle.wait_for_end()
        silent.wait_for_end()
        assert server.process.wait(PATIENCE) == 0


def test_a_client_that_takes_nothing_does_not_hold_up_the_end(tmp_path: Path) -> None:
    with running_server(tmp_path, slow_client_seconds=0.5, shutdown_seconds=NEVER) as server:
        with holdfast.connect(server.url) as client:
            client.session("chat").add_message("user", content="x" * 10_000_000)
        with Connection(server.url, receive_buffer=4096) as slow, EventStream(server.url, "chat", receive_buffer=4096):
            slow.send(head("GET", MESSAGES))
            assert slow.read(1)
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(PATIENCE) == 0


def test_what_cannot_be_finished_in_time_is_told_so_and_can_be_tried_again(target: str) -> None:
    with running_server(target, shutdown_seconds=0.5) as server:
        begin(server)
        with held(target), Connection(server.url) as connection:
            connection.send(append("late", "k"))
            settle(server)
            server.process.send_signal(signal.SIGTERM)
            answer = connection.answer()
            assert answer is not None
            assert (answer.status, answer.error["code"]) == (503, "UNAVAILABLE")
            assert "unknown" in answer.error["message"]
            assert server.process.wait(PATIENCE) == 1
        assert '"level":"error"' in server.log()
    with running_server(target) as server, httpx2.Client(base_url=server.url) as http:
        retried = http.post(MESSAGES, json={"role": "user", "content": "late", "idempotency_key": "k"})
        assert retried.json()["result"]["seq"] == 2
    assert texts(target) == ["before", "late"]


def test_a_second_ctrl_c_ends_it_at_once(tmp_path: Path) -> None:
    target = str(tmp_path / "holdfast.db")
    with running_server(target) as server:
        begin(server)
        with held(target), Connection(server.url) as connection:
            connection.send(append("never"))
            settle(server)
            server.process.send_signal(signal.SIGINT)
            wait_until_stopping(server)
            server.process.send_signal(signal.SIGINT)
            assert server.process.wait(PATIENCE) != 0
    assert texts(target) == ["before"]


def test_a_body_that_has_not_arrived_does_not_hold_up_the_end(tmp_path: Path) -> None:
    with running_server(tmp_path, shutdown_seconds=NEVER) as server, Connection(server.url) as connection:
        connection.send(head("POST", MESSAGES, 50) + b"half")
        settle(server)
        assert server.stop() == 0
