"""Power cuts: synced data survives, and any subset of the unsynced data."""

import random
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.client.sync.client import Client
from holdfast.store.drivers.sqlite.database import SqliteDatabase
from holdfast.testing.faults.power_cuts import RecordingDisk, Wrote, simulate_power_cut
from holdfast.testing.faults.verification import open_client, verify
from holdfast.testing.faults.workload import Append, attempt, retry_unacknowledged

FILE = "holdfast.db"
CUTS = 60


@pytest.fixture
def disk() -> Iterator[RecordingDisk]:
    disk = RecordingDisk()
    yield disk
    disk.unregister()


def append(client: Client, disk: RecordingDisk, writer: str, first: int, last: int) -> None:
    for number in range(first, last + 1):
        attempt(client, Append("chat", writer, number, keyed=writer == "careful"), disk.record)


def write_from_threads(client: Client, disk: RecordingDisk, first: int, last: int) -> None:
    writers = ("careful", "plain", "other")
    threads = [threading.Thread(target=append, args=(client, disk, writer, first, last)) for writer in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def choose_cut(disk: RecordingDisk, rng: random.Random) -> int:
    """Choose a place in the history, often near an event that is not a write: a file synced, a call returned."""
    if rng.random() < 0.3:
        return rng.randint(0, len(disk.history))
    candidates = [number for number, event in enumerate(disk.history) if not isinstance(event, Wrote)]
    return max(0, rng.choice(candidates) + rng.randint(-2, 2))


def test_a_power_cut_loses_nothing_acknowledged(disk: RecordingDisk, tmp_path: Path) -> None:
    """Also during a checkpoint, while the database is created, and right after it was closed."""
    for first in (1, 9):
        with open_client(SqliteDatabase(str(tmp_path / FILE), vfs=disk.name)) as client:
            write_from_threads(client, disk, first, first + 7)
    for seed in range(CUTS):
        rng = random.Random(seed)
        after = tmp_path / "after"
        append_log = simulate_power_cut(disk.history[: choose_cut(disk, rng)], after, rng)
        with open_client(SqliteDatabase(str(after / FILE))) as client:
            retry_unacknowledged(client, append_log)
        verify(str(after / FILE), append_log)
        shutil.rmtree(after)
