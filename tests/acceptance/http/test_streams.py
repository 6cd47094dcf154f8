"""Event streams: every event once and in order, from any starting point and after any number of reconnects."""

import itertools
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

import holdfast
from holdfast.testing.faults.connections import TIMEOUT_SECONDS
from holdfast.testing.faults.streams import EventStream
from holdfast.testing.faults.watching import peak_memory, wait_for
from holdfast.testing.postgres import PostgresServer
from holdfast.testing.server import ServerProcess, running_server

ACCEPT_STREAM = {"Accept": "text/event-stream"}
NEVER = 3600

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running_server(tmp_path_factory.mktemp("streams")) as server:
        yield server


@pytest.fixture
def client(server: ServerProcess) -> Iterator[holdfast.Client]:
    with holdfast.connect(server.url) as client:
        yield client


@pytest.fixture
def http(server: ServerProcess) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server.url, timeout=TIMEOUT_SECONDS) as client:
        yield client


@pytest.fixture
def chat(client: holdfast.Client) -> str:
    name = f"chat{next(_numbers)}"
    cause_events(client, name)
    return name


EXPECTED_LABELS = ["created", 1, "updated", 2, 3, "used", "forked"]


def cause_events(client: holdfast.Client, name: str) -> None:
    """Cause one event of each kind."""
    client.add_message(name, "user", "one")
    client.update_session(name, title="A title", metadata={"k": 1})
    client.batch_add_messages(name, [{"role": "assistant", "content": "two"}, {"role": "user", "content": "three"}])
    client.session_used(name, ["viking://resources/a.md"])
    client.fork_session(name, 2)


def labels(events: list[Any]) -> list[Any]:
    """The seq of each message event and the kind of each change event."""
    return [event.data["seq"] if event.event == "message" else event.data["kind"] for event in events]


def test_a_stream_sends_every_message_and_every_change_and_continues(target: str) -> None:
    """Writes through this server are streamed at once, without waiting for the next poll."""
    with running_server(target, stream_poll_seconds=NEVER) as server, holdfast.connect(server.url) as client:
        cause_events(client, "chat")
        with EventStream(server.url, "chat") as stream:
            assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
            assert stream.headers["cache-control"] == "no-store"
            events = stream.take(7)
            assert labels(events) == EXPECTED_LABELS
            assert len({event.id for event in events}) == 7
            client.add_message("chat", "user", "four")
            assert labels(stream.take(1)) == [4]
            client.update_session_config("chat", auto_commit_policy={"message_count_threshold": 9})
            client.update_session("chat", state="archived")
            configured, updated = stream.take(2)
            assert configured.data["data"] == {"auto_commit_policy": {"message_count_threshold": 9}}
            assert updated.data["data"] == {"state": "archived"}
            assert {"kind", "at", "user_id", "data"} == updated.data.keys()


def test_a_streamed_message_equals_the_message_of_the_api(
    server: ServerProcess, http: httpx2.Client, chat: str
) -> None:
    with EventStream(server.url, chat) as stream:
        streamed = [event.data for event in stream.take(7) if event.event == "message"]
    assert streamed == http.get(f"/api/v1/sessions/{chat}/messages").json()["result"]["messages"]


def test_a_stream_continues_after_any_event(server: ServerProcess, chat: str) -> None:
    with EventStream(server.url, chat) as stream:
        events = stream.take(7)
    for index, event in enumerate(events[:-1]):
        with (
            EventStream(server.url, chat, last_event_id=event.id or "") as by_header,
            EventStream(server.url, chat, f"?after={event.id}") as by_query,
            EventStream(server.url, chat, "?after=now", last_event_id=event.id or "") as by_both,
            EventStream(server.url, chat, "?limit=1", last_event_id=event.id or "") as by_one,
        ):
            for resumed in (by_header, by_query, by_both, by_one):
                assert resumed.take(6 - index) == events[index + 1 :]


def test_the_same_events_can_be_read_page_by_page(server: ServerProcess, http: httpx2.Client, chat: str) -> None:
    with EventStream(server.url, chat) as stream:
        events = stream.take(7)
    read: list[Any] = []
    after: dict[str, str] = {}
    for count in (3, 3, 1, 0):
        page = http.get(f"/api/v1/sessions/{chat}/events", params={"limit": "3", **after}).json()["result"]
        assert len(page["events"]) == count
        read += page["events"]
        after = {"after": page["cursor"]}
    assert page["cursor"] == events[-1].id
    assert [(event["id"], event["event"]) for event in read] == [(event.id, event.event) for event in events]
    assert [event["message"] or event["change"] for event in read] == [event.data for event in events]
    by_header = http.get(f"/api/v1/sessions/{chat}/events", headers={"Last-Event-ID": events[2].id or ""})
    assert [event["id"] for event in by_header.json()["result"]["events"]] == [event.id for event in events[3:]]


def test_after_now_skips_past_events(server: ServerProcess, client: holdfast.Client, chat: str) -> None:
    with EventStream(server.url, chat, "?after=now") as stream:
        client.add_message(chat, "user", "four")
        assert labels(stream.take(1)) == [4]


def test_a_standard_sse_client_can_read_the_stream(http: httpx2.Client, chat: str) -> None:
    with http.stream("GET", f"/api/v1/sessions/{chat}/events", headers=ACCEPT_STREAM) as response:
        events = list(itertools.islice(httpx2.EventSource(response), 7))
    assert [event.event for event in events].count("message") == 3
    assert json.loads(events[1].data)["seq"] == 1
    assert all(event.id for event in events)


@pytest.mark.parametrize(
    "event_id", ["x", "", "1-2", "1-2-3-4", "g-1-1", "-1-1-1", "1-1-1x", "1--1-1", "1-1-" + "9" * 30, "1" * 17 + "-1-1"]
)
def test_an_invalid_event_id_is_rejected(http: httpx2.Client, chat: str, event_id: str) -> None:
    path = f"/api/v1/sessions/{chat}/events"
    for headers in (ACCEPT_STREAM, {}):
        for response in (
            http.get(path, headers={**headers, "Last-Event-ID": event_id}),
            http.get(path, headers=headers, params={"after": event_id}),
        ):
            error = response.json()["error"]
            assert (response.status_code, error["code"]) == (400, "INVALID_ARGUMENT")
            assert error["details"]["field"] == "after"


def test_another_users_session_looks_like_a_missing_one(http: httpx2.Client, chat: str) -> None:
    for headers in (ACCEPT_STREAM, {}):
        for principal in ({"X-OpenViking-User": "mallory"}, {"X-OpenViking-Account": "other"}):
            response = http.get(f"/api/v1/sessions/{chat}/events", headers={**headers, **principal})
            error = response.json()["error"]
            assert (response.status_code, error["code"]) == (404, "NOT_FOUND")
            assert error["details"] == {"type": "session", "resource": chat}
            nothing = http.get("/api/v1/sessions/none/events", headers={**headers, **principal})
            assert nothing.text == response.text.replace(chat, "none")


def test_rotating_a_key_ends_its_streams(tmp_path: Path) -> None:
    root = {"X-API-Key": "root-key-of-the-operator"}
    settings = {"root_api_key": root["X-API-Key"], "stream_poll_seconds": 0.05}
    with (
        running_server(tmp_path, **settings) as server,
        httpx2.Client(base_url=server.url, timeout=TIMEOUT_SECONDS, headers=root) as http,
    ):
        account = {"account_id": "acme", "admin_user_id": "alice"}
        key = http.post("/api/v1/admin/accounts", json=account).json()["result"]["user_key"]
        with holdfast.connect(server.url, api_key=key) as client:
            client.create_session("chat")
        with EventStream(server.url, "chat", x_api_key=key) as stream:
            stream.take(1)
            new_key = http.post("/api/v1/admin/accounts/acme/users/alice/key").json()["result"]["user_key"]
            assert list(stream) == []
            assert stream.complete
        refused = http.get("/api/v1/sessions/chat/events", headers={**ACCEPT_STREAM, "X-API-Key": key})
        assert refused.status_code == 401
        with EventStream(server.url, "chat", x_api_key=new_key) as stream:
            assert labels(stream.take(1)) == ["created"]


def test_an_idle_stream_sends_heartbeats(tmp_path: Path) -> None:
    settings = {"stream_heartbeat_seconds": 0.1, "stream_poll_seconds": NEVER}
    with running_server(tmp_path, **settings) as server, holdfast.connect(server.url) as client:
        client.create_session("chat")
        with EventStream(server.url, "chat") as stream:
            stream.take(1)
            for _ in range(3):
                assert b"\n: still here\n\n" in stream.connection.read()


def test_writes_of_other_processes_are_streamed(target: str) -> None:
    settings = {"stream_poll_seconds": 0.05}
    with (
        running_server(target, **settings) as server,
        running_server(target, **settings) as other,
        holdfast.connect(server.url) as client,
        holdfast.connect(other.url) as other_client,
        holdfast.connect(target) as embedded,
    ):
        client.create_session("chat")
        with EventStream(server.url, "chat") as here, EventStream(other.url, "chat") as there:
            for writer in (other_client, embedded, client):
                writer.add_message("chat", "user", "hello")
                writer.update_session("chat", title="new")
            expected = ["created", 1, "updated", 2, "updated", 3, "updated"]
            events = here.take(7)
            assert labels(events) == expected
            assert there.take(7) == events
        with EventStream(other.url, "chat", last_event_id=events[3].id or "") as moved:
            assert moved.take(3) == events[4:]


def test_deleting_a_session_ends_its_streams_and_a_new_session_starts_from_the_beginning(target: str) -> None:
    with (
        running_server(target, stream_poll_seconds=0.05) as server,
        holdfast.connect(server.url) as client,
        holdfast.connect(target) as embedded,
    ):
        for deleting, recreate in itertools.product((client, embedded), (True, False)):
            cause_events(client, "chat")
            with EventStream(server.url, "chat") as stream, EventStream(server.url, "chat", "?after=now") as later:
                events = stream.take(7)
                deleting.delete_session("chat")
                if recreate:
                    deleting.add_message("chat", "user", "the new session")
                for ended in (stream, later):
                    (last,) = list(ended)
                    assert (last.id, last.event, last.data) == (None, "session", {"kind": "deleted"})
                    assert ended.complete
            if recreate:
                with EventStream(server.url, "chat", last_event_id=events[-1].id or "") as from_start:
                    assert labels(from_start.take(2)) == ["created", 1]
                deleting.delete_session("chat")


def test_a_client_that_stops_reading_is_disconnected_and_can_resume(tmp_path: Path) -> None:
    with (
        running_server(tmp_path, slow_client_seconds=0.5) as server,
        holdfast.connect(server.url) as client,
        httpx2.Client(base_url=server.url, timeout=TIMEOUT_SECONDS) as http,
        ExitStack() as stack,
    ):
        for _ in range(20):
            client.batch_add_messages("chat", [{"role": "user", "content": "x" * 100_000}] * 5)
        before = peak_memory(server)
        slow = [stack.enter_context(EventStream(server.url, "chat", "?limit=20", receive_buffer=4096)) for _ in "abcd"]
        seen = slow[0].take(2)
        assert "holdfast_streams 4.0" in http.get("/metrics").text
        for _ in range(10):
            client.batch_add_messages("chat", [{"role": "user", "content": "x" * 100_000}] * 5)
        wait_for(lambda: "holdfast_streams 0.0" in http.get("/metrics").text)
        assert peak_memory(server) - before < 100_000_000
        seen += list(slow[0])
        assert not slow[0].complete
        with EventStream(server.url, "chat", last_event_id=seen[-1].id or "") as stream:
            seen += stream.take(151 - len(seen))
        assert labels(seen) == ["created", *range(1, 151)]
        assert server.stop() == 0
        lines = [json.loads(line) for line in server.log().splitlines()]
        assert {line["level"] for line in lines} == {"info"}


def test_a_stream_ends_when_the_database_fails_and_can_be_resumed(postgres: PostgresServer) -> None:
    target = postgres.new_database()
    with running_server(target, stream_poll_seconds=0.05) as server, holdfast.connect(server.url) as client:
        cause_events(client, "chat")
        with EventStream(server.url, "chat") as stream:
            events = stream.take(7)
            with psycopg.connect(target, autocommit=True) as connection:
                connection.execute("ALTER TABLE changes RENAME TO gone")
                assert list(stream) == []
                assert stream.complete
                connection.execute("ALTER TABLE gone RENAME TO changes")
        client.add_message("chat", "user", "four")
        with EventStream(server.url, "chat", last_event_id=events[-1].id or "") as stream:
            assert labels(stream.take(1)) == [4]
        assert '"level":"error"' not in server.log()
