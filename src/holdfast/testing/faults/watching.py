"""What a server process holds, seen from outside, and waiting for it to change."""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from holdfast.testing.faults.connections import PATIENCE
from holdfast.testing.server import ServerProcess


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 3 * PATIENCE  # a machine with other work may stand still for long
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)


def peak_memory(server: ServerProcess) -> int:
    """The most bytes it has ever held."""
    status = Path(f"/proc/{server.process.pid}/status").read_text("ascii")
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def open_sockets(server: ServerProcess) -> int:
    links = []
    for file in Path(f"/proc/{server.process.pid}/fd").iterdir():
        with suppress(OSError):  # closed by now
            links.append(str(file.readlink()))
    return sum(link.startswith("socket:") for link in links)
