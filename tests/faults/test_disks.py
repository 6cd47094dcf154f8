"""Disks that are full, cannot sync or cannot be read, at each system call in turn."""

import errno
import random
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.client.sync.client import Client
from holdfast.errors import UnavailableError
from holdfast.store.drivers.sqlite.database import SqliteDatabase
from holdfast.testing.faults.disks import full_disk, unreadable_disk
from holdfast.testing.faults.power_cuts import RecordingDisk, simulate_power_cut
from holdfast.testing.faults.verification import open_client, verify
from holdfast.testing.faults.workload import (
    APPEND_KINDS,
    Append,
    AppendLog,
    EventRecorder,
    Failed,
    attempt,
    retry_unacknowledged,
)

FILE = "holdfast.db"
BRIEFLY, PERMANENTLY = 2, 1_000_000
"""How many system calls fail, one after the other."""


@pytest.fixture(params=["new", "used"])
def origin(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder without a database, and one with a database that was used and closed."""
    folder = tmp_path / "origin"
    folder.mkdir()
    if request.param == "used":
        with open_client(SqliteDatabase(str(folder / FILE))) as client:
            client.create_session("chat")
    return folder


@pytest.fixture
def recording_disk() -> Iterator[RecordingDisk]:
    disk = RecordingDisk()
    yield disk
    disk.unregister()


def append_each_kind(client: Client, record: EventRecorder, first: int = 4) -> None:
    """Append once for each of `APPEND_KINDS`."""
    for number in range(first, first + len(APPEND_KINDS)):
        attempt(client, Append("chat", "writer", number, keyed=number % 2 == 1), record)


def use_database(folder: Path, record: EventRecorder, vfs: str | None = None) -> None:
    """Open the database, append and close it, ignoring disk errors."""
    database = SqliteDatabase(str(folder / FILE), vfs=vfs)
    with suppress(UnavailableError):
        append_each_kind(open_client(database), record)
    database.close()


def recover_and_verify(folder: Path, append_log: AppendLog) -> None:
    """Retry and verify after the fault is gone, then delete the folder."""
    with open_client(SqliteDatabase(str(folder / FILE))) as client:
        retry_unacknowledged(client, append_log)
    verify(str(folder / FILE), append_log)
    shutil.rmtree(folder)


@pytest.mark.rounds
@pytest.mark.parametrize("times", [BRIEFLY, PERMANENTLY])
def test_an_append_that_fails_on_a_full_disk_stores_nothing(
    origin: Path, tmp_path: Path, times: int, *, is_soak: bool
) -> None:
    folder, not_written = tmp_path / "copy", 0
    with full_disk() as disk:
        use_database(shutil.copytree(origin, folder), AppendLog().record)
        writes = disk.calls
        shutil.rmtree(folder)
        assert writes > 50
        for number in range(0, writes, 1 if is_soak else 4):
            append_log = AppendLog()
            disk.start_failing(after=number, times=times)
            use_database(shutil.copytree(origin, folder), append_log.record)
            disk.stop_failing()
            not_written += len(append_log.not_written())
            recover_and_verify(folder, append_log)
    assert not_written > (50 if is_soak else 10)


@pytest.mark.parametrize("times", [1, PERMANENTLY])
def test_a_failed_sync_followed_by_a_power_cut_loses_nothing_acknowledged(
    tmp_path: Path, recording_disk: RecordingDisk, times: int
) -> None:
    folder, failed = tmp_path / "copy", 0
    use_database(folder, AppendLog().record, recording_disk.name)
    syncs = recording_disk.syncs.calls
    shutil.rmtree(folder)
    for number in range(syncs):
        recording_disk.history.clear()
        recording_disk.syncs.start_failing(after=number, times=times)
        use_database(folder, recording_disk.record, recording_disk.name)
        recording_disk.syncs.stop_failing()
        failed += sum(isinstance(event, Failed) for event in recording_disk.history)
        with open_client(SqliteDatabase(str(folder / FILE), vfs=recording_disk.name)) as client:
            append_each_kind(client, recording_disk.record, first=20)
        for seed in range(4):
            rng = random.Random(f"{number} {seed}")
            end = rng.randint(0, len(recording_disk.history)) if seed else len(recording_disk.history)
            after = tmp_path / "after"
            recover_and_verify(after, simulate_power_cut(recording_disk.history[:end], after, rng))
        recover_and_verify(folder, recording_disk.append_log())
    assert failed > 3


@pytest.mark.parametrize("times", [1, PERMANENTLY])
@pytest.mark.parametrize("error", [errno.EIO, errno.ETIMEDOUT], ids=["local disk", "network disk"])
def test_a_read_error_is_reported_and_later_calls_work(tmp_path: Path, error: int, times: int) -> None:
    append_log, reported = AppendLog(), 0
    use_database(tmp_path, append_log.record)
    with unreadable_disk(error) as disk:
        with open_client(SqliteDatabase(str(tmp_path / FILE))) as client:
            client.get_messages("chat")
        for number in range(disk.calls):
            with open_client(SqliteDatabase(str(tmp_path / FILE))) as client:
                disk.start_failing(after=number, times=times)
                try:
                    client.get_messages("chat")
                    attempt(client, Append("chat", "next", number), append_log.record)
                except UnavailableError:
                    reported += 1
                disk.stop_failing()
                assert client.get_messages("chat").messages
                assert attempt(client, Append("chat", "after", number), append_log.record)
    assert reported > 3
    verify(str(tmp_path / FILE), append_log)
