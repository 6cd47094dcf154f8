"""Memory and sockets of a server process, and waiting for a condition."""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from holdfast.testing.faults.connections import TIMEOUT_SECONDS
from holdfast.testing.server import ServerProcess


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 3 * TIMEOUT_SECONDS  # generous, because a busy machine may pause for long
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true in time"
        time.sleep(0.02)


def peak_memory(server: ServerProcess) -> int:
    """Return the peak resident memory of the process in bytes."""
    status = Path(f"/proc/{server.process.pid}/status").read_text("ascii")
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def open_sockets(server: ServerProcess) -> int:
    links = []
    for file in Path(f"/proc/{server.process.pid}/fd").iterdir():
        with suppress(OSError):  # closed meanwhile
            links.append(str(file.readlink()))
    return sum(link.startswith("socket:") for link in links)
