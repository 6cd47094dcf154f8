"""Disks that are full, cannot sync or cannot be read, at every call in turn."""

import errno
import random
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.client.sync.client import Client
from holdfast.errors import UnavailableError
from holdfast.store.drivers.sqlite import SqliteDatabase
from holdfast.testing.faults.disks import full_disk, unreadable_disk
from holdfast.testing.faults.powercut import RecordingDisk, cut
from holdfast.testing.faults.verification import client_on, verify
from holdfast.testing.faults.workload import Append, Failed, Ledger, Note, attempt, retry_unanswered

FILE = "holdfast.db"
FOR_A_MOMENT, FOR_LONG = 2, 1_000_000


@pytest.fixture(params=["new", "used"])
def origin(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder without a database, then one with a database that has been used and closed."""
    folder = tmp_path / "origin"
    folder.mkdir()
    if request.param == "used":
        with client_on(SqliteDatabase(str(folder / FILE))) as client:
            client.create_session("chat")
    return folder


@pytest.fixture
def recording_disk() -> Iterator[RecordingDisk]:
    disk = RecordingDisk()
    yield disk
    disk.unregister()


def append_each_shape(client: Client, note: Note, first: int = 4) -> None:
    for number in range(first, first + 4):
        attempt(client, Append("chat", "writer", number, keyed=number % 2 == 1), note)


def live(folder: Path, note: Note, vfs: str | None = None) -> None:
    """Open the database, append and close it, each as far as the disk lets it."""
    database = SqliteDatabase(str(folder / FILE), vfs=vfs)
    with suppress(UnavailableError):
        append_each_shape(client_on(database), note)
    database.close()


def go_on(folder: Path, ledger: Ledger) -> None:
    """The disk is well again."""
    with client_on(SqliteDatabase(str(folder / FILE))) as client:
        retry_unanswered(client, ledger)
    verify(str(folder / FILE), ledger)
    shutil.rmtree(folder)


@pytest.mark.parametrize("times", [FOR_A_MOMENT, FOR_LONG])
def test_a_disk_full_at_any_write_leaves_no_trace_of_what_it_refused(origin: Path, tmp_path: Path, times: int) -> None:
    place, refused = tmp_path / "place", 0
    with full_disk() as disk:
        live(shutil.copytree(origin, place), Ledger().note)
        writes = disk.calls
        shutil.rmtree(place)
        assert writes > 50
        for number in range(writes):
            ledger = Ledger()
            disk.begin(after=number, times=times)
            live(shutil.copytree(origin, place), ledger.note)
            disk.end()
            refused += len(ledger.refused())
            go_on(place, ledger)
    assert refused > 50


@pytest.mark.parametrize("times", [1, FOR_LONG])
def test_a_failed_sync_costs_nothing_that_was_acknowledged_even_if_the_power_goes_next(
    tmp_path: Path, recording_disk: RecordingDisk, times: int
) -> None:
    place, failed = tmp_path / "place", 0
    live(place, Ledger().note, recording_disk.name)
    syncs = recording_disk.syncs.calls
    shutil.rmtree(place)
    for number in range(syncs):
        recording_disk.history.clear()
        recording_disk.syncs.begin(after=number, times=times)
        live(place, recording_disk.note, recording_disk.name)
        recording_disk.syncs.end()
        failed += sum(isinstance(event, Failed) for event in recording_disk.history)
        with client_on(SqliteDatabase(str(place / FILE), vfs=recording_disk.name)) as client:
            append_each_shape(client, recording_disk.note, first=20)
        for seed in range(4):
            draw = random.Random(f"{number} {seed}")
            end = draw.randint(0, len(recording_disk.history)) if seed else len(recording_disk.history)
            after = tmp_path / "after"
            go_on(after, cut(recording_disk.history[:end], after, draw))
        go_on(place, recording_disk.ledger())
    assert failed > 3


@pytest.mark.parametrize("times", [1, FOR_LONG])
@pytest.mark.parametrize("error", [errno.EIO, errno.ETIMEDOUT], ids=["of its own", "of a network"])
def test_a_disk_that_cannot_be_read_is_reported_and_then_survived(tmp_path: Path, error: int, times: int) -> None:
    ledger, reported = Ledger(), 0
    live(tmp_path, ledger.note)
    with unreadable_disk(error) as disk:
        with client_on(SqliteDatabase(str(tmp_path / FILE))) as client:
            client.get_messages("chat")
        for number in range(disk.calls):
            with client_on(SqliteDatabase(str(tmp_path / FILE))) as client:
                disk.begin(after=number, times=times)
                try:
                    client.get_messages("chat")
                    attempt(client, Append("chat", "next", number), ledger.note)
                except UnavailableError:
                    reported += 1
                disk.end()
                assert client.get_messages("chat").messages
                assert attempt(client, Append("chat", "after", number), ledger.note)
    assert reported > 3
    verify(str(tmp_path / FILE), ledger)
