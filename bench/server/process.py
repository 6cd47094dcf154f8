"""A server in a process of its own: started, asked for its health, watched from outside, stopped."""

import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import repeat
from pathlib import Path

import msgspec

from server import load

PATIENCE = 20.0
"""Seconds within which a server must start, and stop."""

_ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)\D")
_HEALTH = load.request("GET", "/health")


class Started(msgspec.Struct, frozen=True):
    """A server, and what it took from the start of its process to its first healthy answer."""

    pid: int
    port: int
    wall: float
    cpu: float
    idle_bytes: int


@contextmanager
def serving(command: Sequence[str], log: Path) -> Iterator[Started]:
    """Run a server that prints its address until the block ends. What it prints goes to `log`."""
    began = time.perf_counter()
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    try:
        port = _healthy_port(process, log)
        wall, cpu = time.perf_counter() - began, cpu_seconds(process.pid)
        yield Started(process.pid, port, wall, cpu, resident_bytes(process.pid))
    finally:
        _stop(process)


def cpu_seconds(pid: int) -> float:
    """What all threads of a process have used, also those that ended."""
    return time.clock_gettime(~pid << 3 | 2)  # clock_getcpuclockid(3); /proc would count in hundredths of a second


def resident_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


def _healthy_port(process: subprocess.Popen[bytes], log: Path) -> int:
    deadline = time.perf_counter() + PATIENCE
    while process.poll() is None and time.perf_counter() < deadline:
        address = _ADDRESS.search(log.read_text())
        # An address may be printed before anything listens there.
        with suppress(ConnectionRefusedError):
            if address:
                with load.connected(int(address[1]), 1) as client:
                    load.exchange(client, repeat(_HEALTH))
                return int(address[1])
        time.sleep(0.002)
    raise RuntimeError(f"{process.args!r} did not serve; it printed:\n{log.read_text()}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise
