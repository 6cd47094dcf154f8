"""The client over HTTP: when it asks again, when it must not, and what it says when nobody answers."""

import asyncio
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

import holdfast
from holdfast import Settings
from holdfast.errors import (
    FailedPreconditionError,
    HoldfastError,
    InvalidArgumentError,
    ResourceExhaustedError,
    UnavailableError,
)
from holdfast.testing.server import running_server

APPENDED = {"session_id": "s", "message_count": 1, "pending_tokens": 1, "added": 1, "seq": 1, "message_ids": ["m"]}
UNAVAILABLE: Any = (503, {"status": "error", "error": {"code": "UNAVAILABLE", "message": "later", "details": {}}}, {})
CUT = "cut"
"""Stands for a connection that is closed without an answer."""


class Scripted(BaseHTTPRequestHandler):
    """A server that answers as it was told, one answer after the other, and remembers what it was asked."""

    protocol_version = "HTTP/1.1"
    script: ClassVar[list[Any]] = []
    asked: ClassVar[list[tuple[str, str, Any]]] = []
    connections: ClassVar[set[Any]] = set()

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.asked.append((self.command, self.path, json.loads(body) if body else None))
        self.connections.add(self.client_address)
        told = self.script.pop(0)
        if told == CUT:
            self.close_connection = True
            return
        status, value, headers = told
        encoded = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, header in {"Content-Length": str(len(encoded)), **headers}.items():
            self.send_header(name, header)
        self.end_headers()
        self.wfile.write(encoded)

    do_GET = do_POST = do_DELETE = do_PUT = answer  # noqa: N815 - the library's names

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def scripted() -> Iterator[tuple[str, type[Scripted]]]:
    class Handler(Scripted):
        script: ClassVar[list[Any]] = []
        asked: ClassVar[list[tuple[str, str, Any]]] = []
        connections: ClassVar[set[Any]] = set()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", Handler
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(params=["sync", "async"])
def call(request: pytest.FixtureRequest) -> Callable[[str, Callable[[Any], Any]], Any]:
    """Opens a client on a URL, lets it do something and closes it, in either form."""
    settings = Settings(http_attempts=4)

    def call(url: str, work: Callable[[Any], Any]) -> Any:
        if request.param == "sync":
            with holdfast.connect(url, settings=settings) as client:
                return work(client)

        async def awaited() -> Any:
            async with holdfast.connect_async(url, settings=settings) as client:
                return await work(client)

        return asyncio.run(awaited())

    return call


def ok(result: Any) -> tuple[int, Any, dict[str, str]]:
    return 200, {"status": "ok", "result": result}, {}


@pytest.mark.parametrize("failures", [[UNAVAILABLE], [CUT, UNAVAILABLE], [CUT, CUT, CUT]])
def test_an_append_is_asked_again_with_the_same_key_until_it_is_answered(
    scripted: tuple[str, type[Scripted]], call: Callable[..., Any], failures: list[Any]
) -> None:
    url, server = scripted
    server.script += [*failures, ok(APPENDED)]
    assert call(url, lambda client: client.add_message("s", "user", "hi")).seq == 1
    keys = {body["idempotency_key"] for _, _, body in server.asked}
    assert (len(server.asked), len(keys)) == (len(failures) + 1, 1)


@pytest.mark.parametrize("failure", [UNAVAILABLE, CUT])
def test_what_might_be_done_twice_is_asked_once(
    scripted: tuple[str, type[Scripted]], call: Callable[..., Any], failure: Any
) -> None:
    url, server = scripted
    server.script += [failure]
    with pytest.raises(UnavailableError):
        call(url, lambda client: client.create_session("s"))
    assert len(server.asked) == 1


def test_a_lost_answer_says_that_the_outcome_is_unknown(
    scripted: tuple[str, type[Scripted]], call: Callable[..., Any]
) -> None:
    url, server = scripted
    server.script += [CUT]
    with pytest.raises(UnavailableError, match="outcome of this call is unknown"):
        call(url, lambda client: client.delete_session("s"))


def test_the_server_is_asked_again_when_it_said_to_and_not_before(
    scripted: tuple[str, type[Scripted]], call: Callable[..., Any]
) -> None:
    url, server = scripted
    busy = {"status": "error", "error": {"code": "RESOURCE_EXHAUSTED", "message": "slow down", "details": {}}}
    server.script += [(429, busy, {"Retry-After": "1"}), ok({"session_id": "s"})]
    began = time.monotonic()
    assert call(url, lambda client: client.delete_session("s")).session_id == "s"
    assert time.monotonic() - began >= 1
    server.script += [(429, busy, {})] * 4
    with pytest.raises(ResourceExhaustedError, match="slow down"):
        call(url, lambda client: client.delete_session("s"))


def test_it_gives_up_after_as_many_attempts_as_are_set(
    scripted: tuple[str, type[Scripted]], call: Callable[..., Any]
) -> None:
    url, server = scripted
    server.script += [UNAVAILABLE] * 10
    with pytest.raises(UnavailableError, match="later"):
        call(url, lambda client: client.list_sessions())
    assert len(server.asked) == 4


def test_nobody_there_is_an_error_that_names_the_place(call: Callable[..., Any]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(UnavailableError, match=f"{url} does not answer") as refused:
            call(url, lambda client: client.create_session("s"))
        assert "check that the server runs there" in refused.value.message


@pytest.mark.parametrize(
    "answer", [(200, b"<html>hello</html>", {}), (404, b"nothing here", {}), (200, [1], {}), (500, {"detail": "x"}, {})]
)
def test_an_answer_of_another_program_is_not_taken_for_ours(
    scripted: tuple[str, type[Scripted]], call: Callable[..., Any], answer: Any
) -> None:
    url, server = scripted
    server.script += [answer]
    with pytest.raises(UnavailableError, match="not Holdfast's"):
        call(url, lambda client: client.get_session("s"))


def test_an_error_of_a_later_version_keeps_its_code(
    scripted: tuple[str, type[Scripted]], call: Callable[..., Any]
) -> None:
    url, server = scripted
    error = {"code": "TEAPOT", "message": "I am", "details": {"a": 1}}
    server.script += [(418, {"status": "error", "error": error}, {})]

    with pytest.raises(HoldfastError) as told:
        call(url, lambda client: client.get_session("s"))
    assert told.value.to_dict() == error


def test_connections_are_kept_and_used_again(scripted: tuple[str, type[Scripted]]) -> None:
    url, server = scripted
    server.script += [ok(APPENDED)] * 20
    with holdfast.connect(url) as client:
        for _ in range(20):
            client.add_message("s", "user", "hi")
    assert len(server.connections) == 1


def test_bad_input_is_refused_before_anything_is_sent(
    scripted: tuple[str, type[Scripted]], call: Callable[..., Any]
) -> None:
    url, server = scripted
    with pytest.raises(InvalidArgumentError, match="role"):
        call(url, lambda client: client.add_message("s", "robot", "hi"))
    assert server.asked == []


def test_a_server_that_does_not_answer_in_time_is_given_up(scripted: tuple[str, type[Scripted]]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        settings = Settings(http_timeout_seconds=0.2, http_attempts=2)
        with holdfast.connect(url, settings=settings) as client, pytest.raises(UnavailableError, match="not answer"):
            client.list_sessions()


def test_a_closed_client_says_so(scripted: tuple[str, type[Scripted]]) -> None:
    client = holdfast.connect(scripted[0])
    client.close()
    client.close()
    with pytest.raises(FailedPreconditionError, match="closed"):
        client.list_sessions()


@pytest.mark.parametrize("key", ["abc\n", "ключ", "a b"])
def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(InvalidArgumentError, match="api_key") as refused:
        holdfast.connect("http://127.0.0.1:1", api_key=key)
    assert not key.strip() or key.strip() not in refused.value.message


@pytest.mark.parametrize(
    "url",
    [
        "http://",
        "https:///x",
        "ftp://host",
        "ws://host",
        "http://127.0.0.1:abc",
        "http://u:pw@host",
        "http://host/?x=1",
    ],
)
def test_a_url_that_cannot_be_one_is_refused_when_connecting(url: str) -> None:
    with pytest.raises(InvalidArgumentError, match="target"):
        holdfast.connect(url)


def test_a_key_without_a_server_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="api_key"):
        holdfast.connect(tmp_path, api_key="x")


def test_url_and_key_can_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_server(tmp_path, root_api_key="the-root") as server:
        monkeypatch.setenv("HOLDFAST_URL", server.url)
        monkeypatch.setenv("HOLDFAST_API_KEY", "the-root")
        with holdfast.connect() as client:
            assert client.whoami().role == "root"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_parent_and_child_may_both_go_on_after_a_fork(tmp_path: Path) -> None:
    with running_server(tmp_path) as server, holdfast.connect(server.url) as client:
        client.add_message("s", "user", "before")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                for number in range(20):
                    client.add_message("s", "user", f"child {number}")
                code = 0
            finally:
                os._exit(code)
        for number in range(20):
            client.add_message("s", "user", f"parent {number}")
        assert os.waitpid(child, 0)[1] == 0
        assert len(client.session("s").messages) == 41
