"""Sixteen attackers that ask for responses of 100 and 200 megabytes, or send the largest bodies."""

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest

from holdfast.testing.faults.attacks import Attacker, ResponseTimes, attackers, fill_session, measure
from holdfast.testing.faults.watching import peak_memory
from holdfast.testing.server import ServerProcess, running_server

MEGABYTE = 1_000_000
ATTACKERS = 16
SECONDS = 15.0
SESSION = "/api/v1/sessions/big"
STREAM = f"{SESSION}/events?limit=1000"
ATTACKS = {
    "streams": [STREAM],
    "messages": [f"{SESSION}/messages?limit=1000"],
    "contexts": [f"{SESSION}/context"],
    "all": [
        *(STREAM, f"{SESSION}/messages?limit=1000", f"{SESSION}/context"),
        "/api/v1/content/read?uri=viking://session/big/messages.jsonl",
    ],
}


@contextmanager
def attacked_by(threads: list[Attacker]) -> Iterator[None]:
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.stop.set()
        for thread in threads:
            thread.join()


def assert_others_are_served(server: ServerProcess, times: ResponseTimes) -> None:
    memory = peak_memory(server)
    print(f"{times.describe()}; peak memory {memory / MEGABYTE:.0f} MB")  # noqa: T201 - the figures of this run
    assert times.percentile("health") < 0.5, times.describe()
    assert max(times.percentile(name) for name in ("append", "read", "context")) < 1.0, times.describe()
    assert memory < 400 * MEGABYTE


@pytest.mark.parametrize(
    ("attack", "megabytes", "message_bytes", "connections", "reads"),
    [
        ("streams", 100, 100_000, 2, False),
        ("messages", 100, 100_000, 4, False),
        ("contexts", 200, 100_000, 1, True),
        ("all", 100, 100_000, 4, False),
        ("all", 100, 100_000, 1, True),
        ("all", 105, 15_000_000, 1, True),
        ("all", 105, 15_000_000, 4, False),
    ],
)
def test_large_responses_do_not_delay_other_users(
    tmp_path: Path, attack: str, megabytes: int, message_bytes: int, connections: int, *, reads: bool
) -> None:
    with running_server(tmp_path) as server:
        fill_session(server.url, "eve", "big", megabytes * MEGABYTE // message_bytes, message_bytes)
        paths = ATTACKS[attack]
        with attacked_by(attackers(server.url, "eve", paths, threads=ATTACKERS, connections=connections, reads=reads)):
            assert_others_are_served(server, measure(server.url, SECONDS))


def test_large_bodies_do_not_delay_other_users(tmp_path: Path) -> None:
    body = msgspec.json.encode({"messages": [{"role": "user", "content": "x" * 15_000_000}] * 2})
    stop = threading.Event()

    def send(url: str, user: str) -> None:
        while not stop.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", urlsplit(url).port, timeout=60)
            headers = {"X-OpenViking-User": user, "Content-Type": "application/json"}
            connection.request("POST", f"{SESSION}/messages/batch", body, headers)
            connection.getresponse().read()
            connection.close()

    with running_server(tmp_path) as server:
        senders = [threading.Thread(target=send, args=(server.url, f"eve{number}")) for number in range(ATTACKERS)]
        for sender in senders:
            sender.start()
        try:
            assert_others_are_served(server, measure(server.url, SECONDS))
        finally:
            stop.set()
            for sender in senders:
                sender.join()
