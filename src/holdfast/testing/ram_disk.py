"""A folder in memory for the databases of tests, which need no disk unless they test one."""

import os
import shutil
from pathlib import Path

RAM_DISK = Path("/dev/shm")
MIN_FREE_BYTES = 4_000_000_000
"""Containers often have a RAM disk of 64 MB, which is too small."""


def find_ram_disk() -> Path | None:
    """Return a folder in memory if this machine has one with enough space."""
    if not os.access(RAM_DISK, os.W_OK) or shutil.disk_usage(RAM_DISK).free < MIN_FREE_BYTES:
        return None
    return RAM_DISK
