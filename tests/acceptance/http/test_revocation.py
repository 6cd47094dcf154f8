"""Access that ends while a server sends: nothing that was written or read after the end is delivered."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any, Self

import msgspec
import pytest

import holdfast
from holdfast.errors import HoldfastError, NotFoundError
from holdfast.testing.faults.connections import Connection, request_head
from holdfast.testing.faults.streams import EventStream
from holdfast.testing.faults.watching import wait_for
from holdfast.testing.server import ServerProcess, running_server

ROOT_KEY = "the-operators-key"
SECRET = "written after the access had ended"
NEVER = 3600
MESSAGES, MESSAGE_BYTES = 120, 100_000
"""Together much more than the buffers of a connection hold."""
SETTINGS = {"root_api_key": ROOT_KEY, "max_response_bytes": 100_000_000, "max_body_bytes": 100_000_000}


class Team(msgspec.Struct, frozen=True):
    """A server that identifies callers by their keys, and three users of one account."""

    server: ServerProcess
    keys: dict[str, str]
    alice: holdfast.Client
    bob: holdfast.Client
    boss: holdfast.Client

    def stream(self, key: str, owner: str = "alice", url: str | None = None) -> EventStream:
        return EventStream(url or self.server.url, "plan", f"?owner={owner}", x_api_key=key)


@pytest.fixture
def team(target: str) -> Iterator[Team]:
    """Streams are not polled, so that only a notification can wake them."""
    with ExitStack() as stack:
        yield start_team(stack, target, stream_poll_seconds=NEVER)


def start_team(stack: ExitStack, target: str, **settings: object) -> Team:
    server = stack.enter_context(running_server(target, **SETTINGS, **settings))
    operator = stack.enter_context(holdfast.connect(server.url, api_key=ROOT_KEY))
    keys = {"boss": operator.admin.create_account("acme", "boss").user_key}
    for user in ("alice", "bob", "carol"):
        keys[user] = operator.admin.create_user("acme", user).user_key
    clients = {
        user: stack.enter_context(holdfast.connect(server.url, api_key=keys[user])) for user in ("alice", "bob", "boss")
    }
    clients["alice"].create_session("plan")
    return Team(server=server, keys=keys, **clients)


class Writing:
    """Adds messages to a session in a thread until the block ends."""

    def __init__(self, url: str, key: str) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(url, key))
        self.count = 0

    def __enter__(self) -> Self:
        self._thread.start()
        wait_for(lambda: self.count > 5)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self, url: str, key: str) -> None:
        with holdfast.connect(url, api_key=key) as client:
            while not self._stop.is_set():
                with suppress(NotFoundError):  # it is deleted and not created again yet
                    client.add_message("plan", "user", f"message {self.count}", owner="alice")
                self.count += 1


def texts_until_the_end(stream: EventStream) -> list[str]:
    """Return the texts of all messages that a stream sends until the server ends it."""
    texts = [event.data["parts"][0]["text"] for event in stream if event.event == "message"]
    assert stream.complete
    return texts


def unshare(team: Team) -> None:
    team.alice.unshare_session("plan", "bob")


def leave(team: Team) -> None:
    team.bob.unshare_session("plan", "bob", owner="alice")


def limit_to_writing(team: Team) -> None:
    team.alice.share_session("plan", "bob", ["write"])


def limit_to_an_agent(team: Team) -> None:
    team.alice.share_session("plan", "bob", agent_id="other")


def transfer(team: Team) -> None:
    team.alice.transfer_session("plan", "carol", keep_rights=["write"])


def delete(team: Team) -> None:
    team.alice.delete_session("plan")
    team.alice.create_session("plan")


def remove_the_user(team: Team) -> None:
    team.boss.admin.delete_user("acme", "bob")


@pytest.mark.parametrize(
    "end", [unshare, leave, limit_to_writing, limit_to_an_agent, transfer, delete, remove_the_user]
)
def test_an_open_stream_has_nothing_that_was_written_after_the_access_ended(
    team: Team, end: Callable[[Team], None]
) -> None:
    team.alice.share_session("plan", "bob")
    with team.stream(team.keys["bob"]) as stream:
        with Writing(team.server.url, team.keys["alice"]) if end is not transfer else ExitStack():
            stream.take(2)
            end(team)
        for _ in range(5):
            team.alice.add_message("plan", "user", SECRET, owner="carol" if end is transfer else None)
        assert SECRET not in texts_until_the_end(stream)


def test_a_stream_of_a_share_link_ends_with_the_link(team: Team) -> None:
    link = team.alice.create_share_link("plan")
    with team.stream(link.token) as stream:
        with Writing(team.server.url, team.keys["alice"]):
            stream.take(4)
            team.alice.revoke_share_link("plan", link.id)
        team.alice.add_message("plan", "user", SECRET)
        assert SECRET not in texts_until_the_end(stream)


def test_a_stream_of_a_former_owner_ends_with_the_transfer(team: Team) -> None:
    with EventStream(team.server.url, "plan", x_api_key=team.keys["alice"]) as stream:
        stream.take(1)
        team.alice.transfer_session("plan", "bob", keep_rights=[])
        team.bob.add_message("plan", "user", SECRET)
        assert SECRET not in texts_until_the_end(stream)


@pytest.mark.parametrize("through", ["grant", "link"])
def test_a_stream_ends_when_the_access_expires(target: str, through: str) -> None:
    with ExitStack() as stack:
        team = start_team(stack, target, stream_poll_seconds=0.1)
        if through == "grant":
            team.alice.share_session("plan", "bob", expires_in=2)
            key = team.keys["bob"]
        else:
            key = team.alice.create_share_link("plan", expires_in=2).token
        with team.stream(key) as stream, Writing(team.server.url, team.keys["alice"]) as writing:
            streamed = texts_until_the_end(stream)
            ended_at = writing.count
        assert streamed
        assert len(streamed) <= ended_at + 1


def test_a_stream_ends_when_another_server_revokes_the_access(target: str) -> None:
    with ExitStack() as stack:
        team = start_team(stack, target, stream_poll_seconds=0.05)
        other = stack.enter_context(running_server(target, **SETTINGS))
        alice = stack.enter_context(holdfast.connect(other.url, api_key=team.keys["alice"]))
        alice.share_session("plan", "bob")
        with team.stream(team.keys["bob"]) as stream:
            stream.take(2)
            alice.unshare_session("plan", "bob")
            alice.add_message("plan", "user", SECRET)
            assert SECRET not in texts_until_the_end(stream)


def fill(alice: holdfast.Client) -> None:
    """Make each of the answers in `PATHS` large: in an archive, in live messages, and in uses."""
    text = "lorem ipsum dolor sit amet, " * (MESSAGE_BYTES // 28)
    batch = [{"role": "user", "content": text}] * (MESSAGES // 2)
    for _ in range(2):
        alice.batch_add_messages("archived", batch)
        alice.batch_add_messages("plan", batch)
    task_id = alice.commit_session("archived").task_id
    assert task_id is not None
    alice.wait_for_task(task_id, 120.0)
    for number in range(MESSAGES):
        alice.session_used("plan", skill={"uri": f"viking://skill/{number}", "input": text})


PATHS = [
    "/api/v1/sessions/plan/messages?limit=1000&",
    "/api/v1/sessions/plan/events?limit=1000&",
    "/api/v1/sessions/plan/context?",
    "/api/v1/sessions/plan/used?",
    "/api/v1/sessions/archived/archives/archive_001?",
    "/api/v1/sessions/archived/expand?ref=archive_001&token_budget=99999999&",
    "/api/v1/content/read?uri=viking://user/alice/sessions/plan/messages.jsonl&",
]


def test_a_large_answer_breaks_off_when_the_access_ends(team: Team) -> None:
    """Its pages are read one after the other, as fast as the client receives them."""
    fill(team.alice)
    for path in PATHS:
        session_id = "archived" if "archive" in path else "plan"
        for through in ("grant", "link"):
            team.alice.share_session(session_id, "bob")
            link = team.alice.create_share_link(session_id)
            key = team.keys["bob"] if through == "grant" else link.token
            with Connection(team.server.url, receive_buffer=4096) as connection:
                connection.send(request_head("GET", f"{path}owner=alice", x_api_key=key))
                start = connection.read(4096)
                assert start.startswith(b"HTTP/1.1 200"), (path, start)
                team.alice.unshare_session(session_id, "bob")
                team.alice.revoke_share_link(session_id, link.id)
                received, end = read_to_the_end(connection)
            assert not end.endswith(b"0\r\n\r\n"), f"{path} was sent completely"
            assert received < MESSAGES * MESSAGE_BYTES, path


def read_to_the_end(connection: Connection) -> tuple[int, bytes]:
    """Return how many bytes were received, and the last of them."""
    received, end = 0, b""
    while data := connection.read(1 << 20):
        received, end = received + len(data), (end + data)[-100:]
    return received, end


def test_answers_before_the_access_ends_are_complete(team: Team) -> None:
    """Otherwise the test above would prove nothing."""
    fill(team.alice)
    team.alice.share_session("plan", "bob")
    team.alice.share_session("archived", "bob")
    for path in PATHS:
        with Connection(team.server.url, receive_buffer=4096) as connection:
            connection.send(request_head("GET", f"{path}owner=alice", x_api_key=team.keys["bob"], connection="close"))
            received, end = read_to_the_end(connection)
        assert end.endswith(b"0\r\n\r\n"), path
        assert received > MESSAGES * MESSAGE_BYTES * 0.9, path


def test_polled_events_end_with_the_access(team: Team) -> None:
    link = team.alice.create_share_link("plan")
    team.alice.share_session("plan", "bob")
    ends: list[tuple[str, str, Callable[[], Any]]] = [
        ("bob", team.keys["bob"], lambda: unshare(team)),
        ("link", link.token, lambda: team.alice.revoke_share_link("plan", link.id)),
    ]
    for name, key, end in ends:
        with holdfast.connect(team.server.url, api_key=key) as reader:
            cursor = reader.read_events("plan", owner="alice").cursor
            end()
            team.alice.add_message("plan", "user", SECRET)
            with pytest.raises(HoldfastError) as failure:
                reader.read_events("plan", after=cursor, owner="alice")
        assert failure.value.code == ("NOT_FOUND" if name == "bob" else "UNAUTHENTICATED")


def test_the_next_holder_of_a_name_has_nothing_of_a_removed_user(team: Team) -> None:
    team.bob.add_message("own", "user", "bob's secret")
    link = team.bob.create_share_link("own")
    task_id = team.bob.commit_session("own").task_id
    cursor = team.bob.read_events("own").cursor
    assert task_id is not None
    team.alice.share_session("plan", "bob", ["read", "write"])
    removed = team.boss.admin.delete_user("acme", "bob")
    new_key = team.boss.admin.create_user("acme", "bob").user_key
    with holdfast.connect(team.server.url, api_key=new_key) as bob:
        attempts: list[Callable[[], Any]] = [
            lambda: bob.get_session("own"),
            lambda: bob.get_session("own", owner=removed.internal_id),
            lambda: bob.read_events("own", after=cursor),
            lambda: bob.list_share_links("own"),
            lambda: bob.revoke_share_link("own", link.id),
            lambda: bob.get_task(task_id),
            lambda: bob.read("viking://user/bob/sessions/own/messages.jsonl"),
            lambda: bob.get_session("plan", owner="alice"),
            lambda: bob.add_message("plan", "user", "still here?", owner="alice"),
        ]
        for attempt in attempts:
            with pytest.raises(NotFoundError):
                attempt()
        assert (list(bob.list_sessions()), bob.list_tasks()) == ([], [])
    with pytest.raises(HoldfastError, match="not valid"):
        team.bob.get_session("own")
    restored_key = team.boss.admin.create_user("acme", "robert", internal_id=removed.internal_id).user_key
    with holdfast.connect(team.server.url, api_key=restored_key) as robert:
        assert [message.text for message in robert.get_messages("own").messages] == ["bob's secret"]
        assert [one.id for one in robert.list_share_links("own").links] == [link.id]
        assert robert.get_task(task_id).resource_id == "own"
        assert robert.add_message("plan", "user", "back again", owner="alice").seq == 1
