"""A server process: start, health check, CPU time and memory, stop."""

import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import repeat
from pathlib import Path

import msgspec

from server import load

TIMEOUT_SECONDS = 20.0
"""The limit for the start and for the stop of a server."""

_ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)\D")
_HEALTH = load.request("GET", "/health")


class StartedServer(msgspec.Struct, frozen=True):
    """A running server, with the time from its start to its first successful health check."""

    pid: int
    port: int
    wall: float
    cpu: float
    idle_bytes: int


@contextmanager
def run_server(command: Sequence[str], log: Path) -> Iterator[StartedServer]:
    """Run a server that prints its address, until the block ends. Its output is written to `log`."""
    began = time.perf_counter()
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    try:
        port = _wait_until_healthy(process, log)
        wall, cpu = time.perf_counter() - began, cpu_seconds(process.pid)
        yield StartedServer(process.pid, port, wall, cpu, resident_bytes(process.pid))
    finally:
        _stop(process)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of all threads of a process, also of those that ended."""
    return time.clock_gettime(~pid << 3 | 2)  # clock_getcpuclockid(3); /proc has only a resolution of 10 ms


def resident_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


def _wait_until_healthy(process: subprocess.Popen[bytes], log: Path) -> int:
    deadline = time.perf_counter() + TIMEOUT_SECONDS
    while process.poll() is None and time.perf_counter() < deadline:
        address = _ADDRESS.search(log.read_text())
        # The address may be printed before the server accepts connections.
        with suppress(ConnectionRefusedError):
            if address:
                with load.connected([int(address[1])], 1) as client:
                    load.run_clients(client, repeat(_HEALTH))
                return int(address[1])
        time.sleep(0.002)
    raise RuntimeError(f"{process.args!r} did not start; its output:\n{log.read_text()}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise
