"""Power cuts: only what was synced is sure to be there, and of the rest any part."""

import random
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.client.sync.client import Client
from holdfast.store.drivers.sqlite import SqliteDatabase
from holdfast.testing.faults.powercut import RecordingDisk, Wrote, cut
from holdfast.testing.faults.verification import client_on, verify
from holdfast.testing.faults.workload import Append, attempt, retry_unanswered

FILE = "holdfast.db"
CUTS = 60


@pytest.fixture
def disk() -> Iterator[RecordingDisk]:
    disk = RecordingDisk()
    yield disk
    disk.unregister()


def append(client: Client, disk: RecordingDisk, writer: str, first: int, last: int) -> None:
    for number in range(first, last + 1):
        attempt(client, Append("chat", writer, number, keyed=writer == "careful"), disk.note)


def write_from_threads(client: Client, disk: RecordingDisk, first: int, last: int) -> None:
    writers = ("careful", "plain", "other")
    threads = [threading.Thread(target=append, args=(client, disk, writer, first, last)) for writer in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def moment(disk: RecordingDisk, draw: random.Random) -> int:
    """Any, or one close to where it gets interesting: a file made, synced or deleted, a caller answered."""
    if draw.random() < 0.3:
        return draw.randint(0, len(disk.history))
    turns = [number for number, event in enumerate(disk.history) if not isinstance(event, Wrote)]
    return max(0, draw.choice(turns) + draw.randint(-2, 2))


def test_a_power_cut_takes_nothing_that_was_acknowledged(disk: RecordingDisk, tmp_path: Path) -> None:
    """Also one during a checkpoint, while the database is made, or right after it was closed."""
    for first in (1, 9):
        with client_on(SqliteDatabase(str(tmp_path / FILE), vfs=disk.name)) as client:
            write_from_threads(client, disk, first, first + 7)
    for seed in range(CUTS):
        draw = random.Random(seed)
        after = tmp_path / "after"
        ledger = cut(disk.history[: moment(disk, draw)], after, draw)
        with client_on(SqliteDatabase(str(after / FILE))) as client:
            retry_unanswered(client, ledger)
        verify(str(after / FILE), ledger)
        shutil.rmtree(after)
