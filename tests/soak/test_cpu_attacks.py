"""Attacks on the CPU time of a real server: sixteen attackers at once, while others go on as usual."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from holdfast.testing.server import ServerProcess, running_server

ATTACKERS = 16
SECONDS = 12.0
MAX_HEALTH_SECONDS = 0.5
MAX_OTHER_SECONDS = 1.0
MAX_MEMORY_MB = 400
PAUSE_SECONDS = 0.02
SMALL = b'{"role":"user","content":"x"}'

_encode = msgspec.json.encode


def search_in_tool_output(client: httpx2.Client, session: str) -> Callable[[], Any]:
    part = {"type": "tool", "tool_id": "c", "tool_output": "a" * 2_000_000}
    client.post(f"/api/v1/sessions/{session}/messages", content=_encode({"role": "tool", "parts": [part]}))
    listed = client.get(f"/api/v1/sessions/{session}/tool-results").json()["result"]["tool_results"]
    url = f"/api/v1/sessions/{session}/tool-results/{listed[0]['tool_result_id']}/search"
    return lambda: client.get(url, params={"q": "a" * 990 + "b"})


def summaries_of_fences(client: httpx2.Client, session: str) -> Callable[[], Any]:
    body = _encode({"messages": [{"role": "user", "content": "```\n" + "\n" * 24_000}] * 3})

    def attack() -> None:
        client.post(f"/api/v1/sessions/{session}/messages/batch", content=body)
        client.post(f"/api/v1/sessions/{session}/commit", content=b"{}")

    return attack


def long_key_over_long_list(client: httpx2.Client, session: str) -> Callable[[], Any]:
    body = _encode({"role": "user", "content": "a", "metadata": {"k" * 1_500_000: [0] * 90_000}})
    return lambda: client.post(f"/api/v1/sessions/{session}/messages", content=body)


def many_words_over_waiting_messages(client: httpx2.Client, session: str) -> Callable[[], Any]:
    text = "一二三四五 " * 16_000
    for _ in range(4):
        client.post(f"/api/v1/sessions/{session}/messages", content=_encode({"role": "user", "content": text}))
    words = " ".join(f"w{number}" for number in range(95)) + " 一"
    return lambda: client.get(f"/api/v1/sessions/{session}/messages", params={"q": words})


def floats(client: httpx2.Client, session: str) -> Callable[[], Any]:
    body = b'{"role":"user","content":"a","metadata":{"k":[%b1]}}' % (b"1e308," * 90_000)
    return lambda: client.post(f"/api/v1/sessions/{session}/messages", content=body)


def empty_lists(client: httpx2.Client, session: str) -> Callable[[], Any]:
    body = b'{"role":"user","content":"a","metadata":{"k":[%b[]]}}' % (b"[]," * 2_000_000)
    return lambda: client.post(f"/api/v1/sessions/{session}/messages", content=body)


def accents(client: httpx2.Client, session: str) -> Callable[[], Any]:
    body = _encode({"role": "user", "content": "é" + "\u0301\u0316" * 50_000})
    return lambda: client.post(f"/api/v1/sessions/{session}/messages", content=body)


ATTACKS = [
    search_in_tool_output,
    summaries_of_fences,
    long_key_over_long_list,
    many_words_over_waiting_messages,
    floats,
    empty_lists,
    accents,
]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with running_server(tmp_path, log_level="error") as process:
        yield process


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_others_are_served_during_an_attack(
    server: ServerProcess, attack: Callable[[httpx2.Client, str], Callable[[], Any]]
) -> None:
    others = {
        "health": lambda client: client.get("/health"),
        "append": lambda client: client.post(
            "/api/v1/sessions/other/messages", content=b'{"role":"user","content":"x"}'
        ),
        "read": lambda client: client.get("/api/v1/sessions/other/messages", params={"limit": 20}),
    }
    clients = [httpx2.Client(base_url=server.url, timeout=60) for _ in range(ATTACKERS + len(others))]
    others["append"](clients[0])
    calls = [attack(client, f"attack_{number}") for number, client in enumerate(clients[:ATTACKERS])]
    started_at = time.monotonic()
    end = started_at + SECONDS
    attacks = [threading.Thread(target=_repeat, args=(call, end)) for call in calls]
    times: dict[str, list[float]] = {name: [] for name in others}
    watchers = [
        threading.Thread(target=_measure, args=(call, client, end, times[name]))
        for (name, call), client in zip(others.items(), clients[ATTACKERS:], strict=True)
    ]
    for thread in (*attacks, *watchers):
        thread.start()
    for thread in (*attacks, *watchers):
        thread.join()
    for client in clients:
        client.close()
    memory = _memory_mb(server.process.pid)
    worst = {name: sorted(seconds)[int(len(seconds) * 0.99)] for name, seconds in times.items()}
    counts = {name: len(seconds) for name, seconds in times.items()}
    sys.stderr.write(f"\n{attack.__name__}: p99 {worst}, requests {counts}, peak memory {memory} MB\n")
    assert worst["health"] < MAX_HEALTH_SECONDS
    assert max(worst["append"], worst["read"]) < MAX_OTHER_SECONDS
    assert memory < MAX_MEMORY_MB


def _repeat(call: Callable[[], Any], end: float) -> None:
    while time.monotonic() < end:
        call()


def _measure(call: Callable[[httpx2.Client], Any], client: httpx2.Client, end: float, times: list[float]) -> None:
    while time.monotonic() < end:
        started_at = time.monotonic()
        assert call(client).status_code == httpx2.codes.OK
        times.append(time.monotonic() - started_at)
        time.sleep(PAUSE_SECONDS)


def _memory_mb(pid: int) -> int:
    """The peak memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text("utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) // 1024
