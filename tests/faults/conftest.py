"""Fault tests use a real disk: they cut its power, fill it and kill the processes that write to it."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="holdfast-faults-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)
