"""The client over HTTP: retries, timeouts and errors."""

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
"""Closes the connection without a response."""


class ScriptedServer(BaseHTTPRequestHandler):
    """A server that sends the responses of a script in order, and records the requests."""

    protocol_version = "HTTP/1.1"
    script: ClassVar[list[Any]] = []
    requests: ClassVar[list[tuple[str, str, Any]]] = []
    connections: ClassVar[set[Any]] = set()

    def respond(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.requests.append((self.command, self.path, json.loads(body) if body else None))
        self.connections.add(self.client_address)
        response = self.script.pop(0)
        if response == CUT:
            self.close_connection = True
            return
        status, value, headers = response
        encoded = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, header in {"Content-Length": str(len(encoded)), **headers}.items():
            self.send_header(name, header)
        self.end_headers()
        self.wfile.write(encoded)

    do_GET = do_POST = do_DELETE = do_PUT = respond  # noqa: N815 - the library's names

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def scripted_server() -> Iterator[tuple[str, type[ScriptedServer]]]:
    class Handler(ScriptedServer):
        script: ClassVar[list[Any]] = []
        requests: ClassVar[list[tuple[str, str, Any]]] = []
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
    """Opens a synchronous or asynchronous client, calls a function with it, and closes it."""
    settings = Settings(http_attempts=4)

    def call(url: str, function: Callable[[Any], Any]) -> Any:
        if request.param == "sync":
            with holdfast.connect(url, settings=settings) as client:
                return function(client)

        async def run_async() -> Any:
            async with holdfast.connect_async(url, settings=settings) as client:
                return await function(client)

        return asyncio.run(run_async())

    return call


def success(result: Any) -> tuple[int, Any, dict[str, str]]:
    return 200, {"status": "ok", "result": result}, {}


@pytest.mark.parametrize("failures", [[UNAVAILABLE], [CUT, UNAVAILABLE], [CUT, CUT, CUT]])
def test_an_append_is_retried_with_the_same_idempotency_key(
    scripted_server: tuple[str, type[ScriptedServer]], call: Callable[..., Any], failures: list[Any]
) -> None:
    url, server = scripted_server
    server.script += [*failures, success(APPENDED)]
    assert call(url, lambda client: client.add_message("s", "user", "hi")).seq == 1
    keys = {body["idempotency_key"] for _, _, body in server.requests}
    assert (len(server.requests), len(keys)) == (len(failures) + 1, 1)


@pytest.mark.parametrize("failure", [UNAVAILABLE, CUT])
def test_a_request_that_is_not_safe_to_repeat_is_sent_once(
    scripted_server: tuple[str, type[ScriptedServer]], call: Callable[..., Any], failure: Any
) -> None:
    url, server = scripted_server
    server.script += [failure]
    with pytest.raises(UnavailableError):
        call(url, lambda client: client.create_session("s"))
    assert len(server.requests) == 1


def test_a_lost_response_raises_an_error_with_unknown_outcome(
    scripted_server: tuple[str, type[ScriptedServer]], call: Callable[..., Any]
) -> None:
    url, server = scripted_server
    server.script += [CUT]
    with pytest.raises(UnavailableError, match="outcome of this call is unknown"):
        call(url, lambda client: client.delete_session("s"))


def test_a_retry_waits_for_retry_after(
    scripted_server: tuple[str, type[ScriptedServer]], call: Callable[..., Any]
) -> None:
    url, server = scripted_server
    busy = {"status": "error", "error": {"code": "RESOURCE_EXHAUSTED", "message": "slow down", "details": {}}}
    server.script += [(429, busy, {"Retry-After": "1"}), success({"session_id": "s"})]
    started_at = time.monotonic()
    assert call(url, lambda client: client.delete_session("s")).session_id == "s"
    assert time.monotonic() - started_at >= 1
    server.script += [(429, busy, {})] * 4
    with pytest.raises(ResourceExhaustedError, match="slow down"):
        call(url, lambda client: client.delete_session("s"))


def test_the_client_stops_after_the_configured_attempts(
    scripted_server: tuple[str, type[ScriptedServer]], call: Callable[..., Any]
) -> None:
    url, server = scripted_server
    server.script += [UNAVAILABLE] * 10
    with pytest.raises(UnavailableError, match="later"):
        call(url, lambda client: client.list_sessions())
    assert len(server.requests) == 4


def test_an_unreachable_server_raises_an_error_with_its_url(call: Callable[..., Any]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(UnavailableError, match=f"{url} does not answer") as refused:
            call(url, lambda client: client.create_session("s"))
        assert "check that the server is running there" in refused.value.message


@pytest.mark.parametrize(
    "response",
    [(200, b"<html>hello</html>", {}), (404, b"nothing here", {}), (200, [1], {}), (500, {"detail": "x"}, {})],
)
def test_a_response_of_another_program_is_rejected(
    scripted_server: tuple[str, type[ScriptedServer]], call: Callable[..., Any], response: Any
) -> None:
    url, server = scripted_server
    server.script += [response]
    with pytest.raises(UnavailableError, match="not a Holdfast response"):
        call(url, lambda client: client.get_session("s"))


def test_an_error_of_a_later_version_keeps_its_code(
    scripted_server: tuple[str, type[ScriptedServer]], call: Callable[..., Any]
) -> None:
    url, server = scripted_server
    error = {"code": "TEAPOT", "message": "I am", "details": {"a": 1}}
    server.script += [(418, {"status": "error", "error": error}, {})]

    with pytest.raises(HoldfastError) as raised:
        call(url, lambda client: client.get_session("s"))
    assert raised.value.to_dict() == error


def test_connections_are_reused(scripted_server: tuple[str, type[ScriptedServer]]) -> None:
    url, server = scripted_server
    server.script += [success(APPENDED)] * 20
    with holdfast.connect(url) as client:
        for _ in range(20):
            client.add_message("s", "user", "hi")
    assert len(server.connections) == 1


def test_invalid_input_is_rejected_before_anything_is_sent(
    scripted_server: tuple[str, type[ScriptedServer]], call: Callable[..., Any]
) -> None:
    url, server = scripted_server
    with pytest.raises(InvalidArgumentError, match="role"):
        call(url, lambda client: client.add_message("s", "robot", "hi"))
    assert server.requests == []


def test_a_silent_server_times_out(scripted_server: tuple[str, type[ScriptedServer]]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        settings = Settings(http_timeout_seconds=0.2, http_attempts=2)
        with holdfast.connect(url, settings=settings) as client, pytest.raises(UnavailableError, match="not answer"):
            client.list_sessions()


def test_a_closed_client_raises_an_error(scripted_server: tuple[str, type[ScriptedServer]]) -> None:
    client = holdfast.connect(scripted_server[0])
    client.close()
    client.close()
    with pytest.raises(FailedPreconditionError, match="closed"):
        client.list_sessions()


@pytest.mark.parametrize("key", ["abc\n", "ключ", "a b"])
def test_a_key_that_cannot_be_sent_is_rejected_and_not_in_the_message(key: str) -> None:
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
def test_an_invalid_url_is_rejected_by_connect(url: str) -> None:
    with pytest.raises(InvalidArgumentError, match="target"):
        holdfast.connect(url)


def test_a_key_without_a_server_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="api_key"):
        holdfast.connect(tmp_path, api_key="x")


def test_url_and_key_are_read_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_server(tmp_path, root_api_key="the-root") as server:
        monkeypatch.setenv("HOLDFAST_URL", server.url)
        monkeypatch.setenv("HOLDFAST_API_KEY", "the-root")
        with holdfast.connect() as client:
            assert client.whoami().role == "root"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_parent_and_child_can_both_use_the_client_after_a_fork(tmp_path: Path) -> None:
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
