"""Short-lived databases in memory, used by many threads, do not hang."""

import subprocess
import sys
from pathlib import Path

PROGRAM = str(Path(__file__).with_name("programs") / "memory_clients.py")


def test_short_lived_clients_in_memory_do_not_hang() -> None:
    done = subprocess.run([sys.executable, PROGRAM, "2"], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 0
