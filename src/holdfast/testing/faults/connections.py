"""A raw connection to a server, for partial requests, silent clients and abrupt disconnects."""

import http.client
import random
import select
import socket
import struct
from contextlib import suppress
from typing import Any, Self
from urllib.parse import urlsplit

import msgspec

TIMEOUT_SECONDS = 20.0
"""Generous, because a busy machine responds slowly."""


class Response(msgspec.Struct, frozen=True):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error(self) -> Any:
        """The error in the response envelope."""
        envelope = msgspec.json.decode(self.body)
        assert (envelope["status"], envelope["result"]) == ("error", None)
        return envelope["error"]


class Connection:
    """Sends exactly the given bytes. Operations time out after `TIMEOUT_SECONDS`."""

    def __init__(self, url: str, *, receive_buffer: int | None = None) -> None:
        parts = urlsplit(url)
        self._socket = socket.socket()
        if receive_buffer is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self._socket.settimeout(TIMEOUT_SECONDS)
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

    def has_data(self, seconds: float) -> bool:
        """Wait for data, or for the end of the connection. Return whether there is any."""
        return bool(select.select([self._socket], [], [], seconds)[0])

    def read(self, max_bytes: int = 1 << 16) -> bytes:
        """Return the bytes received so far, or no bytes if the connection was closed or reset."""
        try:
            return self._socket.recv(max_bytes)
        except ConnectionError:
            return b""

    def read_response(self) -> Response | None:
        """Return the next response, or None if the connection ended first."""
        response = http.client.HTTPResponse(self._socket)
        try:
            response.begin()
            headers = {name.lower(): value for name, value in response.getheaders()}
            return Response(response.status, headers, response.read())
        except (ConnectionError, http.client.BadStatusLine, http.client.IncompleteRead):
            return None
        finally:
            response.close()

    def wait_until_closed(self) -> None:
        """Wait until the server has closed the connection."""
        while self.read():
            pass

    def reset(self) -> None:
        """Close with a TCP reset, as when a machine loses its network."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self) -> None:
        self._socket.close()


def request_head(verb: str, path: str, length: int | None = None, **headers: str) -> bytes:
    """Build the head of a request. `last_event_id="x"` becomes the header `Last-Event-Id: x`."""
    fields = {"Host": "127.0.0.1", **{name.replace("_", "-").title(): value for name, value in headers.items()}}
    if length is not None:
        fields["Content-Length"] = str(length)
    lines = [f"{verb} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1")


def find_stable_port() -> int:
    """Find a free port on which a server can be stopped and started again.

    The port is below the ephemeral range. Within that range, a client that connects while the server is stopped could
    get the same port as its own local port and connect to itself.
    """
    for port in random.sample(range(15_000, 32_000), 100):
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no free port found")
