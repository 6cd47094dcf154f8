"""A commit of 100,000 messages does not delay a server's other requests."""

import sys
import time
from pathlib import Path

import httpx2

import holdfast
from holdfast.config import Settings
from holdfast.testing.server import running_server

MESSAGES = 100_000
BATCH = 100
MAX_HEALTH_SECONDS = 0.5


def test_the_server_answers_during_a_commit_of_100_000_messages(tmp_path: Path) -> None:
    with holdfast.connect(tmp_path, settings=Settings(worker_threads=0)) as client:
        for number in range(0, MESSAGES, BATCH):
            texts = [f"Message {number + at}: deploy v1.{at} to eu-west-{at % 3}, please." for at in range(BATCH)]
            client.batch_add_messages("long", [{"role": "user", "content": text} for text in texts])
    times: list[float] = []
    with (
        running_server(tmp_path, log_level="error") as server,
        httpx2.Client(base_url=server.url, timeout=60) as client,
    ):
        task = client.post("/api/v1/sessions/long/commit", content=b"{}").json()["result"]["task_id"]
        status, end = "pending", time.monotonic() + 240
        while status in {"pending", "running"} and time.monotonic() < end:
            started_at = time.monotonic()
            client.get("/health")
            times.append(time.monotonic() - started_at)
            if len(times) % 50 == 0:
                status = client.get(f"/api/v1/tasks/{task}").json()["result"]["status"]
            time.sleep(0.005)
    times.sort()
    p99 = times[int(len(times) * 0.99)]
    sys.stderr.write(f"\n{status}: {len(times)} requests, p99 {p99:.3f} s, worst {times[-1]:.3f} s\n")
    assert status == "completed"
    assert p99 < MAX_HEALTH_SECONDS
