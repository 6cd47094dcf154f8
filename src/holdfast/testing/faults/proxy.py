"""A proxy to PostgreSQL that can cut a connection at a chosen message of the protocol."""

import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Literal
from urllib.parse import parse_qs, urlsplit, urlunsplit

SOCKET = ".s.PGSQL.5432"

Side = Literal["before", "after"]


def nth_message(number: int) -> Callable[[bytes], bool]:
    """Return a condition for `Proxy.cut` that is true for the n-th message from now on."""
    earlier = iter(range(1, number))
    return lambda _message: next(earlier, None) is None


class Proxy:
    """Forwards everything between clients and the server, and cuts one connection on request."""

    def __init__(self, server: Path) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._cut_condition: Callable[[bytes], bool] | None = None
        self._side: Side = "before"
        self._connections: list[_ProxiedConnection] = []

    def cut(self, condition: Callable[[bytes], bool], side: Side) -> None:
        """Cut the connection at the first message to the server for which `condition` is true.

        `before`: the server gets only the messages before it. `after`: the response is lost.
        """
        with self._lock:
            self._cut_condition, self._side = condition, side

    def cancel_cut(self) -> bool:
        """Cancel the requested cut. Return whether it was already made."""
        with self._lock:
            was_made, self._cut_condition = self._cut_condition is None, None
            return was_made

    def serve(self, listener: socket.socket) -> None:
        with suppress(OSError):  # the listener is shut down when the proxy ends
            while True:
                client, _ = listener.accept()
                self._connections.append(_ProxiedConnection(self, client, self._server))

    def close_connections(self) -> None:
        for connection in self._connections:
            connection.close()

    def cut_side(self, message: bytes) -> Side | None:
        """Return on which side of this message to cut, or None to forward it."""
        with self._lock:
            if self._cut_condition is None or not self._cut_condition(message):
                return None
            self._cut_condition = None
            return self._side


class _ProxiedConnection:
    """One connection, with a thread for each direction."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: Path) -> None:
        self._proxy = proxy
        self._client = client
        self._server = socket.socket(socket.AF_UNIX)
        self._server.connect(str(server))
        self._drops_responses = self._has_started = False
        self._threads = [
            threading.Thread(target=self._forward_requests),
            threading.Thread(target=self._forward_responses),
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self._shut_down()
        for thread in self._threads:
            thread.join()
        self._client.close()
        self._server.close()

    def _forward_requests(self) -> None:
        received = self._client.makefile("rb")
        with suppress(OSError, EOFError):
            while True:
                message = self._read_message(received)
                side = self._proxy.cut_side(message)
                if side == "before":
                    break
                self._drops_responses = self._drops_responses or side == "after"
                self._server.sendall(message)
        self._shut_down()

    def _read_message(self, received: BinaryIO) -> bytes:
        """Read one message: a type and a length that counts itself. Only the first of a connection has no type."""
        head = _read(received, 5 if self._has_started else 4)
        self._has_started = True
        return head + _read(received, int.from_bytes(head[-4:]) - 4)

    def _forward_responses(self) -> None:
        with suppress(OSError):
            while data := self._server.recv(1 << 16):
                if self._drops_responses:
                    break
                self._client.sendall(data)
        self._shut_down()

    def _shut_down(self) -> None:
        for end in (self._client, self._server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def _read(received: BinaryIO, size: int) -> bytes:
    data = received.read(size)
    if len(data) < size:
        raise EOFError
    return data


@contextmanager
def proxy_to(url: str) -> Iterator[tuple[str, Proxy]]:
    """Run a proxy to the server of `url`. Yield the URL of the proxy, and the proxy."""
    parts = urlsplit(url)
    server = Path(parse_qs(parts.query)["host"][0]) / SOCKET
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-proxy-") as folder,
        socket.socket(socket.AF_UNIX) as listener,
    ):
        listener.bind(str(Path(folder) / SOCKET))
        listener.listen()
        proxy = Proxy(server)
        thread = threading.Thread(target=proxy.serve, args=(listener,))
        thread.start()
        try:
            yield urlunsplit(parts._replace(query=f"host={folder}")), proxy
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            proxy.close_connections()
