"""Sixteen clients of one user hold readers or waits of a server with default settings; other users are served."""

import time
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from holdfast.testing.faults.crowds import crowd, percentile, response_seconds
from holdfast.testing.server import ServerProcess, running_server

SLOW_READS = str(Path(__file__).parent.parent / "faults" / "programs" / "slow_reads.py")
MESSAGES = "/api/v1/sessions/chat/messages"
HELLO = {"role": "user", "content": "hello"}
REQUESTS = 100
MAX_MEMORY_KB = 400 * 1024


def read_slowly(http: httpx2.Client) -> None:
    http.get("/api/v1/stats/sessions/chat")


def read_slowly_and_leave(http: httpx2.Client) -> None:
    http.get("/api/v1/stats/sessions/chat", timeout=0.5)


def wait(http: httpx2.Client) -> None:
    http.post("/api/v1/system/wait", json={"timeout": 600})


def peak_memory_kb(server: ServerProcess) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text("ascii")
    return int(status.partition("VmHWM:")[2].split()[0])


@pytest.mark.parametrize("attack", [read_slowly, read_slowly_and_leave, wait])
def test_a_crowd_of_one_user_does_not_delay_others(tmp_path: Path, attack: Callable[[httpx2.Client], None]) -> None:
    alice, bob = {"X-OpenViking-User": "alice"}, {"X-OpenViking-User": "bob"}
    with (
        running_server(tmp_path, program=[SLOW_READS], worker_threads=0) as server,
        httpx2.Client(base_url=server.url, timeout=40, headers=bob) as http,
    ):
        http.post(MESSAGES, json=HELLO)
        http.post("/api/v1/sessions/hers/messages", json=HELLO, headers=alice)
        http.post("/api/v1/sessions/hers/commit", headers=alice)
        with crowd(server.url, attack, user="alice", size=16):
            time.sleep(2)
            health = response_seconds(lambda: http.get("/health"), REQUESTS)
            reads = response_seconds(lambda: http.get(MESSAGES), REQUESTS)
            appends = response_seconds(lambda: http.post(MESSAGES, json=HELLO), REQUESTS)
            waits = response_seconds(lambda: http.post("/api/v1/system/wait", json={"timeout": 20}), REQUESTS)
            assert http.get("/ready").status_code == 200
        assert percentile(health, 99) < 0.5
        assert max(percentile(seconds, 99) for seconds in (reads, appends, waits)) < 1
        assert peak_memory_kb(server) < MAX_MEMORY_KB
