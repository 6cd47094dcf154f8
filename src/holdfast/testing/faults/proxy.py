"""A line to PostgreSQL that can be cut at a chosen moment."""

import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, urlsplit, urlunsplit

SOCKET = ".s.PGSQL.5432"

Side = Literal["before", "after"]


def at_request(number: int) -> Callable[[bytes], bool]:
    """For `Line.cut`: due at the so manyth request from now on."""
    earlier = iter(range(1, number))
    return lambda _request: next(earlier, None) is None


class Line:
    """Passes everything on between clients and the server, until it is told where to cut."""

    def __init__(self, server: Path) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._due: Callable[[bytes], bool] | None = None
        self._side: Side = "before"
        self._calls: list[_Call] = []

    def cut(self, due: Callable[[bytes], bool], side: Side) -> None:
        """Cut a connection at the first request that is due: the server never gets it, or its answer is lost."""
        with self._lock:
            self._due, self._side = due, side

    def mend(self) -> bool:
        """Cut nothing any more; whether the cut that was asked for has been made."""
        with self._lock:
            made, self._due = self._due is None, None
            return made

    def serve(self, listener: socket.socket) -> None:
        with suppress(OSError):  # the listener is shut down at the end
            while True:
                client, _ = listener.accept()
                self._calls.append(_Call(self, client, self._server))

    def hang_up(self) -> None:
        for call in self._calls:
            call.end()

    def cut_at(self, request: bytes) -> Side | None:
        """Where to cut, if this is the request to cut at."""
        with self._lock:
            if self._due is None or not self._due(request):
                return None
            self._due = None
            return self._side


class _Call:
    """One connection, with a thread for each direction."""

    def __init__(self, line: Line, client: socket.socket, server: Path) -> None:
        self._line = line
        self._client = client
        self._server = socket.socket(socket.AF_UNIX)
        self._server.connect(str(server))
        self._mute = False
        self._threads = [threading.Thread(target=self._requests), threading.Thread(target=self._answers)]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._shut()
        for thread in self._threads:
            thread.join()
        self._client.close()
        self._server.close()

    def _requests(self) -> None:
        with suppress(OSError):
            while data := self._client.recv(1 << 16):
                side = self._line.cut_at(data)
                if side == "before":
                    break
                self._mute = side == "after"
                self._server.sendall(data)
        self._shut()

    def _answers(self) -> None:
        with suppress(OSError):
            while data := self._server.recv(1 << 16):
                if self._mute:
                    break
                self._client.sendall(data)
        self._shut()

    def _shut(self) -> None:
        for end in (self._client, self._server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@contextmanager
def line_to(url: str) -> Iterator[tuple[str, Line]]:
    """A line to the server of `url`, and the URL that leads through it."""
    parts = urlsplit(url)
    server = Path(parse_qs(parts.query)["host"][0]) / SOCKET
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-line-") as folder,
        socket.socket(socket.AF_UNIX) as listener,
    ):
        listener.bind(str(Path(folder) / SOCKET))
        listener.listen()
        line = Line(server)
        thread = threading.Thread(target=line.serve, args=(listener,))
        thread.start()
        try:
            yield urlunsplit(parts._replace(query=f"host={folder}")), line
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            line.hang_up()
