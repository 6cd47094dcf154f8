"""A connection to a server in one's own hands: half a request, silence, an abrupt end."""

import http.client
import random
import socket
import struct
from contextlib import suppress
from typing import Any, Self
from urllib.parse import urlsplit

import msgspec

PATIENCE = 20.0
"""How long to wait for what must come; on a busy machine that can be long."""


class Answer(msgspec.Struct, frozen=True):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error(self) -> Any:
        """The error in the envelope."""
        envelope = msgspec.json.decode(self.body)
        assert (envelope["status"], envelope["result"]) == ("error", None)
        return envelope["error"]


class Connection:
    """Sends exactly what it is told to, and waits for at most `PATIENCE`."""

    def __init__(self, url: str, *, receive_buffer: int | None = None) -> None:
        parts = urlsplit(url)
        self._socket = socket.socket()
        if receive_buffer is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self._socket.settimeout(PATIENCE)
        try:
            self._socket.connect((parts.hostname, parts.port))
        except OSError:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def read(self, most: int = 1 << 16) -> bytes:
        """What there is; nothing at the end of the connection, however it came to it."""
        try:
            return self._socket.recv(most)
        except ConnectionError:
            return b""

    def answer(self) -> Answer | None:
        """The next answer, or None if the connection ended instead."""
        response = http.client.HTTPResponse(self._socket)
        try:
            response.begin()
            headers = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, headers, response.read())
        except (ConnectionError, http.client.BadStatusLine, http.client.IncompleteRead):
            return None
        finally:
            response.close()

    def wait_for_end(self) -> None:
        """Until the server has ended the connection."""
        while self.read():
            pass

    def reset(self) -> None:
        """End it without a farewell, as a machine that loses its network does."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self) -> None:
        self._socket.close()


def head(verb: str, path: str, length: int | None = None, **headers: str) -> bytes:
    """The head of a request. `last_event_id="x"` is the header `Last-Event-Id: x`."""
    told = {"Host": "127.0.0.1", **{name.replace("_", "-").title(): value for name, value in headers.items()}}
    if length is not None:
        told["Content-Length"] = str(length)
    lines = [f"{verb} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in told.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1")


def lasting_port() -> int:
    """A free port to come back to.

    It lies below those that the system hands out: there, whoever calls a server that is away could reach themselves.
    """
    for port in random.sample(range(15_000, 32_000), 100):
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")
