"""Load generator: each client sends its next request when it has the response to the last, on a kept-alive connection.

All clients run in one thread, with plain sockets and requests built in advance, so that their own cost is small.
"""

import re
import select
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import msgspec

TIMEOUT_SECONDS = 30.0
"""A server that sends no response for so long is considered hung."""

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class LoadResult(msgspec.Struct, frozen=True):
    """The requests of all clients, in the order of their responses."""

    seconds: float
    """The duration of the whole run."""
    requests: list[bytes]
    responses: list[bytes]
    durations: list[float]
    """Seconds from each request to its response, in the order of `responses`."""
    cpu: float
    """CPU time of the clients themselves."""


def request(verb: str, path: str, body: bytes = b"") -> bytes:
    head = f"{verb} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n"
    if body:
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def body_of(message: bytes) -> bytes:
    return message.partition(b"\r\n\r\n")[2]


@contextmanager
def connected(ports: Sequence[int], clients: int) -> Iterator[list[socket.socket]]:
    """Connect clients to servers in turn."""
    with ExitStack() as stack:
        addresses = [("127.0.0.1", ports[number % len(ports)]) for number in range(clients)]
        yield [stack.enter_context(socket.create_connection(address)) for address in addresses]


def run_clients(clients: Sequence[socket.socket], requests: Iterator[bytes], seconds: float = 0) -> LoadResult:
    """Send requests for some seconds, and wait for the responses to the last ones.

    Each client sends at least one request. Any response other than a complete one with status 200 is an error.
    """
    sockets = {client.fileno(): client for client in clients}
    pending: dict[int, tuple[bytes, float]] = {}
    partial: dict[int, bytes] = {}
    sent_requests: list[bytes] = []
    responses: list[bytes] = []
    durations: list[float] = []
    now = time.perf_counter

    def send(number: int) -> None:
        message = next(requests)
        pending[number] = (message, now())
        sockets[number].send(message)  # much smaller than a socket's buffer, so all of it is sent

    with select.epoll() as poll:
        cpu, began = time.process_time(), now()
        for number in sockets:
            poll.register(number, select.EPOLLIN)
            send(number)
        while pending:
            events = poll.poll(TIMEOUT_SECONDS)
            if not events:
                raise TimeoutError(f"{len(pending)} requests got no response within {TIMEOUT_SECONDS:.0f} s")
            for number, _ in events:
                received = partial.pop(number, b"") + _receive(sockets[number])
                body = _response_body(received)
                if body is None:
                    partial[number] = received
                    continue
                message, sent = pending.pop(number)
                received_at = now()
                sent_requests.append(message)
                responses.append(body)
                durations.append(received_at - sent)
                if received_at - began < seconds:
                    send(number)
        return LoadResult(now() - began, sent_requests, responses, durations, time.process_time() - cpu)


def _receive(client: socket.socket) -> bytes:
    data = client.recv(4096)
    if not data:
        raise ConnectionError("the server closed a connection without a response")
    return data


def _response_body(received: bytes) -> bytes | None:
    """Return the body of a response, or None while it is incomplete."""
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return None
    length = _LENGTH.search(received, 0, end)
    if not received.startswith(b"HTTP/1.1 200 ") or length is None:
        raise ConnectionError(f"unexpected response: {received.decode(errors='replace')!r}")
    body = received[end + 4 :]
    return body if len(body) >= int(length[1]) else None
