"""Backups that are made while the database is in use, and their restoration."""

import asyncio
import os
import stat
from pathlib import Path

import pytest

import holdfast
from holdfast.cli import main
from holdfast.config import Settings
from holdfast.errors import (
    AlreadyExistsError,
    DataDamagedError,
    FailedPreconditionError,
    InvalidArgumentError,
    PermissionDeniedError,
)
from holdfast.store.drivers.sqlite import backup as sqlite_backup
from holdfast.testing.faults.backups import back_up_under_load, check_restored
from holdfast.testing.faults.damage import NO_WORKERS, list_damage
from holdfast.testing.postgres import PostgresServer
from holdfast.testing.server import running_server


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A database with a few megabytes."""
    database = tmp_path / "data" / "holdfast.db"
    with holdfast.connect(database, settings=NO_WORKERS) as client:
        for _ in range(4):
            client.batch_add_messages("big", [{"role": "user", "content": "x" * 9_000}] * 100)
        client.add_message("small", "user", "unchanged")
    return database


def damage_a_message(file: Path) -> None:
    content = file.read_bytes()
    assert b'"unchanged"' in content
    file.write_bytes(content.replace(b'"unchanged"', b'"unChanged"'))


@pytest.mark.parametrize("by_command", [False, True])
def test_a_backup_under_64_writers_is_a_prefix_of_every_session(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_command: bool
) -> None:
    monkeypatch.setattr(sqlite_backup, "STEP_PAGES", 4)  # many steps, with writes between them
    backup, restored = tmp_path / "backup.db", tmp_path / "elsewhere" / "holdfast.db"
    with holdfast.connect(file, settings=NO_WORKERS) as client:

        def back_up() -> None:
            if by_command:
                assert main(["backup", str(backup), "--path", str(file)]) == 0
            else:
                client.backup(backup)

        before, after = back_up_under_load(client, back_up)
    assert main(["restore", str(backup), "--path", str(restored)]) == 0
    check_restored(restored, before, after)


def test_a_backup_is_private_and_overwrites_nothing(file: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    with holdfast.connect(file, settings=NO_WORKERS) as client:
        written = client.backup(backup)
        assert (written.file, written.bytes) == (str(backup), backup.stat().st_size)
        assert stat.S_IMODE(backup.stat().st_mode) == 0o600
        with pytest.raises(AlreadyExistsError, match="exists"):
            client.backup(backup)
        client.add_message("new", "user", "hello")
        client.backup(backup, overwrite=True)
        with pytest.raises(InvalidArgumentError, match="is the database itself"):
            client.backup(file, overwrite=True)
        with pytest.raises(InvalidArgumentError, match="belongs to the database itself"):
            client.backup(f"{file}-wal", overwrite=True)
        with pytest.raises(InvalidArgumentError, match="is not a file"):
            client.backup("/dev/null", overwrite=True)
        with pytest.raises(InvalidArgumentError, match="is a folder"):
            client.backup(tmp_path)
        with pytest.raises(InvalidArgumentError, match="does not exist"):
            client.backup(tmp_path / "none" / "backup.db")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup.db", "data"]
    with holdfast.connect(backup, settings=NO_WORKERS) as client:
        assert client.get_messages("new").messages[0].text == "hello"


def test_a_database_in_memory_can_be_backed_up(tmp_path: Path) -> None:
    with holdfast.connect(":memory:", settings=NO_WORKERS) as client:
        client.add_message("s", "user", "hello")
        client.backup(tmp_path / "backup.db")
    with holdfast.connect(tmp_path / "backup.db", settings=NO_WORKERS) as client:
        assert client.get_messages("s").messages[0].text == "hello"


def test_the_asynchronous_client_makes_backups(tmp_path: Path) -> None:
    async def run() -> None:
        async with holdfast.connect_async(tmp_path / "holdfast.db", settings=NO_WORKERS) as client:
            await client.add_message("s", "user", "hello")
            await client.backup(tmp_path / "backup.db")

    asyncio.run(run())
    assert list_damage(tmp_path / "backup.db") == []


def test_only_root_makes_backups(tmp_path: Path) -> None:
    with (
        holdfast.connect(tmp_path / "holdfast.db", role="admin", settings=NO_WORKERS) as client,
        pytest.raises(PermissionDeniedError, match="all accounts"),
    ):
        client.backup(tmp_path / "backup.db")


def test_a_server_refuses_and_says_what_to_run(tmp_path: Path) -> None:
    with running_server(tmp_path / "holdfast.db") as server, holdfast.connect(server.url) as client:
        with pytest.raises(FailedPreconditionError, match="holdfast backup"):
            client.backup(tmp_path / "backup.db")
        assert main(["backup", str(tmp_path / "backup.db"), "--url", server.url]) == 1


def test_postgresql_refuses_and_says_what_to_run(
    postgres: PostgresServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = postgres.new_migrated_database()
    assert main(["backup", str(tmp_path / "backup.db"), "--path", url]) == 1
    assert "pg_dump --format=custom" in capsys.readouterr().err
    assert main(["restore", str(tmp_path / "backup.db"), "--path", url]) == 1
    assert "pg_restore" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_restoring_replaces_a_database_only_when_asked_and_not_in_use(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backup = tmp_path / "backup.db"
    restore = ["restore", str(backup), "--path", str(file)]
    assert main(["backup", str(backup), "--path", str(file)]) == 0
    with holdfast.connect(file, settings=NO_WORKERS) as client:
        client.add_message("later", "user", "after the backup")
        assert main(restore) == 1
        assert "exists" in capsys.readouterr().err
        assert main([*restore, "--force"]) == 1
        assert "in use" in capsys.readouterr().err
        assert client.add_message("later", "user", "still here").seq == 2
    assert main([*restore, "--force"]) == 0
    with holdfast.connect(file, settings=NO_WORKERS) as client:
        assert [row.session_id for row in client.list_sessions()] == ["small", "big"]
    aside = file.with_name("holdfast.db.before-restore")
    with holdfast.connect(aside, settings=NO_WORKERS) as client:
        assert len(client.get_messages("later").messages) == 2
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_damaged_backup_is_not_restored(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    backup, elsewhere = tmp_path / "backup.db", tmp_path / "elsewhere.db"
    assert main(["backup", str(backup), "--path", str(file)]) == 0
    damage_a_message(backup)
    assert main(["restore", str(backup), "--path", str(elsewhere)]) == 1
    assert "damaged" in capsys.readouterr().err
    (tmp_path / "text.db").write_text(
        "this is no database, although it is long enough for a header of one hundred bytes." * 9
    )
    assert main(["restore", str(tmp_path / "text.db"), "--path", str(elsewhere)]) == 5
    assert main(["restore", str(tmp_path / "none.db"), "--path", str(elsewhere)]) == 1
    assert not elsewhere.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup.db", "data", "text.db"]


def test_a_damaged_database_is_replaced_by_a_restore(file: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    assert main(["backup", str(backup), "--path", str(file)]) == 0
    file.write_bytes(os.urandom(20_000))
    assert main(["restore", str(backup), "--force", "--path", str(file)]) == 0
    with holdfast.connect(file, settings=NO_WORKERS) as client:
        assert client.get_session("big").total_message_count == 400


def test_a_failed_backup_leaves_nothing_behind(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_file: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sqlite_backup, "sync", fail)
    with holdfast.connect(file, settings=Settings(worker_threads=0)) as client, pytest.raises(OSError, match="space"):
        client.backup(tmp_path / "backup.db")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_backup_of_a_damaged_database_is_refused(file: Path, tmp_path: Path) -> None:
    damage_a_message(file)
    with holdfast.connect(file, settings=NO_WORKERS) as client, pytest.raises(DataDamagedError, match="--allow-damage"):
        client.backup(tmp_path / "backup.db")
