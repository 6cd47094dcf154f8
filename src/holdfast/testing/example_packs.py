"""Small packs, made by an export, for tests that need one."""

import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import holdfast


class ExamplePacks(NamedTuple):
    folder: bytes
    """The pack of a folder with two files."""
    backup: bytes
    """The backup of an account with these files."""


@cache
def example_packs() -> ExamplePacks:
    with tempfile.TemporaryDirectory() as temporary, holdfast.connect(":memory:") as client:
        client.write("viking://resources/packed/a.md", "# A\n\nhello\n")
        client.write("viking://resources/packed/sub/b.md", "# B\n\nworld\n", tags=["k=v"])
        folder, backup = Path(temporary, "folder.ovpack"), Path(temporary, "backup.ovpack")
        client.export_pack("viking://resources/packed", folder)
        client.backup_pack(backup)
        return ExamplePacks(folder.read_bytes(), backup.read_bytes())
