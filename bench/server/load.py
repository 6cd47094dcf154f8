"""Clients that each send their next request when the answer to the last one is there, over connections kept open.

One thread with bare sockets and requests built beforehand: what the clients cost must not be what is measured.
"""

import re
import select
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import msgspec

PATIENCE = 30.0
"""Seconds without an answer after which a server is taken to hang."""

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Exchange(msgspec.Struct, frozen=True):
    """What some clients asked, and how it was answered; the three lists go together."""

    seconds: float
    asked: list[bytes]
    answers: list[bytes]
    walls: list[float]
    cpu: float
    """Of the clients themselves."""


def request(verb: str, path: str, body: bytes = b"") -> bytes:
    head = f"{verb} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n"
    if body:
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def body_of(message: bytes) -> bytes:
    return message.partition(b"\r\n\r\n")[2]


@contextmanager
def connected(port: int, clients: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(clients)]


def exchange(clients: Sequence[socket.socket], requests: Iterator[bytes], seconds: float = 0) -> Exchange:
    """Let the clients ask until the time is up, and wait for the answers to their last requests.

    Each client asks once at least. Anything but a whole answer with status 200 is an error.
    """
    sockets = {client.fileno(): client for client in clients}
    pending: dict[int, tuple[bytes, float]] = {}
    partial: dict[int, bytes] = {}
    asked: list[bytes] = []
    answers: list[bytes] = []
    walls: list[float] = []
    now = time.perf_counter

    def ask(number: int) -> None:
        message = next(requests)
        pending[number] = (message, now())
        sockets[number].send(message)  # far smaller than a socket's buffer, so all of it goes

    with select.epoll() as poll:
        cpu, began = time.process_time(), now()
        for number in sockets:
            poll.register(number, select.EPOLLIN)
            ask(number)
        while pending:
            events = poll.poll(PATIENCE)
            if not events:
                raise TimeoutError(f"{len(pending)} requests had no answer within {PATIENCE:.0f} s")
            for number, _ in events:
                received = partial.pop(number, b"") + _received(sockets[number])
                answer = _answer(received)
                if answer is None:
                    partial[number] = received
                    continue
                message, sent = pending.pop(number)
                arrived = now()
                asked.append(message)
                answers.append(answer)
                walls.append(arrived - sent)
                if arrived - began < seconds:
                    ask(number)
        return Exchange(now() - began, asked, answers, walls, time.process_time() - cpu)


def _received(client: socket.socket) -> bytes:
    data = client.recv(4096)
    if not data:
        raise ConnectionError("the server closed a connection instead of answering")
    return data


def _answer(received: bytes) -> bytes | None:
    """The body of an answer, or None as long as a part of it is missing."""
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return None
    length = _LENGTH.search(received, 0, end)
    if not received.startswith(b"HTTP/1.1 200 ") or length is None:
        raise ConnectionError(f"a request was answered with {received.decode(errors='replace')!r}")
    body = received[end + 4 :]
    return body if len(body) >= int(length[1]) else None
