"""Clients that ask for much and read little or nothing, and the response times of other users meanwhile."""

import http.client
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import msgspec

import holdfast
from holdfast.testing.faults.connections import TIMEOUT_SECONDS, Connection, request_head

BATCH_BYTES = 8_000_000
VICTIM = "victim"


def fill_session(url: str, user: str, session_id: str, messages: int, message_bytes: int) -> None:
    """Add messages of a size to a session of a user."""
    per_batch = max(1, min(100, BATCH_BYTES // message_bytes))
    text = "lorem ipsum dolor sit amet, " * (message_bytes // 28 + 1)
    with holdfast.connect(url, user=user) as client:
        for start in range(0, messages, per_batch):
            count = min(per_batch, messages - start)
            client.batch_add_messages(session_id, [{"role": "user", "content": text[:message_bytes]}] * count)


class Attacker(threading.Thread):
    """Opens connections in turn, sends a request on each, and reads a little of each response, or nothing.

    A connection that the server closes is opened again.
    """

    def __init__(self, url: str, request: bytes, connections: int, *, reads: bool) -> None:
        super().__init__(daemon=True)
        self._url = url
        self._request = request
        self._count = connections
        self._reads = reads
        self.stop = threading.Event()
        self.received = 0
        self.opened = 0

    def run(self) -> None:
        connections: list[Connection | None] = [None] * self._count
        while not self.stop.wait(0 if self._reads else 0.1):
            for number, connection in enumerate(connections):
                with suppress(OSError):
                    connections[number] = self._step(connection)
        for connection in connections:
            if connection is not None:
                connection.close()

    def _step(self, connection: Connection | None) -> Connection | None:
        if connection is None:
            connection = Connection(self._url, receive_buffer=None if self._reads else 4096)
            connection.send(self._request)
            self.opened += 1
            return connection
        if not self._reads or not connection.has_data(0.02):
            return connection
        data = connection.read(1 << 20)
        self.received += len(data)
        if data and not data.endswith(b"0\r\n\r\n"):
            return connection
        connection.close()
        return None


def attackers(
    url: str, user: str, paths: Sequence[str], *, threads: int, connections: int, reads: bool
) -> list[Attacker]:
    """Return attackers, each with a connection per request, that ask for the paths in turn."""
    accept = "text/event-stream, application/json"
    requests = [request_head("GET", path, x_openviking_user=user, accept=accept) for path in paths]
    return [Attacker(url, requests[number % len(requests)], connections, reads=reads) for number in range(threads)]


class ResponseTimes(msgspec.Struct, frozen=True):
    """Seconds of the requests of other users, by what they do."""

    seconds: dict[str, list[float]]

    def percentile(self, name: str, fraction: float = 0.99) -> float:
        ordered = sorted(self.seconds[name])
        return ordered[min(len(ordered) - 1, int(fraction * len(ordered)))]

    def describe(self) -> str:
        return ", ".join(
            f"{name}: {len(values)} in p50 {self.percentile(name, 0.5):.3f} s, p99 {self.percentile(name):.3f} s,"
            f" max {max(values):.3f} s"
            for name, values in self.seconds.items()
        )


def measure(url: str, seconds: float) -> ResponseTimes:
    """Measure `/health`, appends, small reads and contexts of another user for a while, each in a thread of its own."""
    fill_session(url, VICTIM, "small", 20, 500)
    message = msgspec.json.encode({"role": "user", "content": "hello"})
    requests: dict[str, tuple[str, str, bytes | None]] = {
        "health": ("GET", "/health", None),
        "append": ("POST", "/api/v1/sessions/log/messages", message),
        "read": ("GET", "/api/v1/sessions/small/messages", None),
        "context": ("GET", "/api/v1/sessions/small/context", None),
    }
    times: dict[str, list[float]] = {name: [] for name in requests}
    failures: list[str] = []
    deadline = time.monotonic() + seconds

    def repeat(name: str) -> None:
        verb, path, body = requests[name]
        while time.monotonic() < deadline:
            started_at = time.perf_counter()
            status = _request(url, verb, path, body)
            times[name].append(time.perf_counter() - started_at)
            if status != http.client.OK:
                failures.append(f"{name}: {status}")
            time.sleep(0.02)

    threads = [threading.Thread(target=repeat, args=(name,)) for name in requests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[:10]
    return ResponseTimes(times)


def _request(url: str, verb: str, path: str, body: bytes | None) -> Any:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request(verb, path, body, {"X-OpenViking-User": VICTIM, "Content-Type": "application/json"})
        response = connection.getresponse()
        response.read()
    except OSError as error:
        return type(error).__name__
    else:
        return response.status
    finally:
        connection.close()
