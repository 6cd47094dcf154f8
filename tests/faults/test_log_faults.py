"""A log that nobody reads, whose reader is gone, or whose disk is full: the server goes on."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from holdfast.http.telemetry import log_writer
from holdfast.http.telemetry.log_writer import LogWriter
from holdfast.testing.server import TIMEOUT_SECONDS, running_server

REQUESTS = 1_000
"""A pipe holds the lines of about 340 requests."""


class Pipe:
    def __init__(self) -> None:
        self.output, self.input = os.pipe()

    def read_all(self) -> bytes:
        os.set_blocking(self.output, False)
        data = b""
        with suppress(BlockingIOError):
            while chunk := os.read(self.output, 1 << 20):
                data += chunk
        return data

    def stop_reading(self) -> None:
        os.close(self.output)
        self.output = -1

    def close(self) -> None:
        for descriptor in (self.output, self.input):
            if descriptor >= 0:
                os.close(descriptor)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.close()


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_server_whose_log_nobody_reads_answers_and_stops(tmp_path: Path, pipe: Pipe) -> None:
    with (
        running_server(tmp_path, log_file=pipe.input) as server,
        httpx2.Client(base_url=server.url, timeout=5) as http,
    ):
        for _ in range(REQUESTS):
            assert http.get("/health", headers={"x-request-id": "x" * 120}).status_code == 200
        assert http.post("/api/v1/sessions", json={"session_id": "chat"}).status_code == 200
        started_at = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - started_at < 10
    assert len(pipe.read_all()) >= 30_000


def test_a_server_whose_log_reader_is_gone_uses_no_cpu_time(tmp_path: Path, pipe: Pipe) -> None:
    with (
        running_server(tmp_path, log_file=pipe.input) as server,
        httpx2.Client(base_url=server.url, timeout=5) as http,
    ):
        assert http.get("/health").status_code == 200
        pipe.stop_reading()
        for _ in range(20):
            assert http.get("/health").status_code == 200
        before = cpu_seconds(server.process.pid)
        time.sleep(1)
        assert cpu_seconds(server.process.pid) - before < 0.3
        dropped = re.search(r"holdfast_log_lines_dropped_total (\d+)", http.get("/metrics").text)
        assert dropped is not None
        assert int(dropped[1]) >= 10
        assert server.stop() == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_server_whose_log_is_on_a_full_disk_answers(tmp_path: Path) -> None:
    with (
        open("/dev/full", "wb", buffering=0) as full,  # noqa: PTH123 - a device
        running_server(tmp_path, log_file=full.fileno()) as server,
        httpx2.Client(base_url=server.url, timeout=5) as http,
    ):
        for _ in range(50):
            assert http.get("/health").status_code == 200
        assert server.stop() == 0


def test_a_server_without_standard_error_answers(tmp_path: Path) -> None:
    command = f"exec {sys.executable} -m holdfast serve --path {tmp_path} --port 0 2>&-"
    with subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE) as process:
        watchdog = threading.Timer(TIMEOUT_SECONDS, process.kill)
        watchdog.start()
        assert process.stdout is not None
        url = re.search(rb"http://\S+:\d+", process.stdout.readline())
        assert url is not None
        with httpx2.Client(base_url=url[0].decode(), timeout=5) as http:
            for _ in range(20):
                assert http.get("/health").status_code == 200
        process.terminate()
        assert process.wait(TIMEOUT_SECONDS) == 0
        watchdog.cancel()


def write_to(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> LogWriter:
    monkeypatch.setattr(log_writer, "_duplicate_stderr", lambda: os.dup(pipe.input))
    return LogWriter(lambda count: b'{"dropped": %d}' % count)


def test_a_log_that_is_read_again_states_how_many_lines_were_dropped(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_writer, "MAX_LINES", 100)
    writer = write_to(pipe, monkeypatch)
    for number in range(3_000):
        writer.put(b'{"number": %d, "text": "%b"}' % (number, b"x" * 1_000))
        if number % 100 == 0:
            writer.flush(0.02)
    assert writer.dropped_count > 2_000
    lines = b""
    for _ in range(100):
        lines += pipe.read_all()
        writer.flush(0.02)
        if b"dropped" in lines:
            break
    objects = [json.loads(line) for line in lines.splitlines()]
    numbers = [value["number"] for value in objects if "number" in value]
    assert numbers == sorted(numbers)
    assert sum(value.get("dropped", 0) for value in objects) == writer.dropped_count
    assert len(numbers) + writer.dropped_count == 3_000


def test_a_full_queue_is_limited_in_bytes(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = write_to(pipe, monkeypatch)
    for _ in range(20):
        writer.put(b"x" * 1_000_000)
    assert writer.dropped_count >= 10
    pipe.stop_reading()


def test_the_writer_of_a_forked_child_writes_the_lines_of_the_child(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = write_to(pipe, monkeypatch)
    writer.put(b"parent")
    writer.flush(5)
    pid = os.fork()
    if pid == 0:
        writer.put(b"child")
        writer.flush(5)
        os._exit(0)
    assert os.waitpid(pid, 0) == (pid, 0)
    writer.put(b"parent again")
    writer.flush(5)
    assert pipe.read_all().splitlines() == [b"parent", b"child", b"parent again"]
