"""The files of a database are moved, replaced or deleted while a process uses them."""

import gc
import multiprocessing
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

import holdfast
from holdfast.config import Settings
from holdfast.errors import UnavailableError
from holdfast.store.drivers.sqlite.database import SqliteDatabase
from holdfast.testing.faults.verification import open_client
from holdfast.testing.server import running_server

FILE = "holdfast.db"
Displace = Callable[[Path], Callable[[], object]]
"""Displaces the database in a folder; returns a function that puts it back."""


def move_file(folder: Path) -> Callable[[], object]:
    (folder / FILE).rename(folder / "moved.db")
    return lambda: (folder / "moved.db").rename(folder / FILE)


def move_folder(folder: Path) -> Callable[[], object]:
    moved = folder.rename(folder.with_name("moved"))
    return lambda: moved.rename(folder)


def replace_file(folder: Path) -> Callable[[], object]:
    """Another database takes the place of the file, as after `cp` and `mv` of a backup."""
    kept = folder / "kept.db"
    os.link(folder / FILE, kept)
    holdfast.connect(folder / "other" / FILE).close()
    (folder / "other" / FILE).replace(folder / FILE)
    return lambda: kept.replace(folder / FILE)


def move_wal(folder: Path) -> Callable[[], object]:
    wal = folder / f"{FILE}-wal"
    moved = wal.rename(folder / "moved-wal")
    return lambda: moved.rename(wal)


DISPLACEMENTS = [move_file, move_folder, replace_file, move_wal]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def client(folder: Path) -> Iterator[holdfast.Client]:
    # Without workers: one of them could notice first that the file is displaced.
    with holdfast.connect(folder, settings=Settings(worker_threads=0)) as client:
        client.add_message("chat", "user", "before")
        yield client


def texts(client: holdfast.Client) -> list[str]:
    return [message.text for message in client.get_messages("chat").messages]


@pytest.mark.parametrize("displace", DISPLACEMENTS)
def test_no_write_to_a_displaced_database_is_acknowledged(
    client: holdfast.Client, folder: Path, displace: Displace
) -> None:
    put_back = displace(folder)
    for number in range(3):
        with pytest.raises(UnavailableError, match="was moved, replaced or deleted") as caught:
            client.add_message("chat", "user", f"lost {number}")
        assert ("outcome of this call is unknown" in caught.value.message) == (number == 0)
        assert caught.value.details["reason"] == "FileDisplaced"
    with pytest.raises(UnavailableError, match="was moved, replaced or deleted"):
        client.get_messages("chat")
    put_back()
    client.add_message("chat", "user", "after")
    assert texts(client) == ["before", "lost 0", "after"]
    client.close()
    with holdfast.connect(folder) as reopened:
        assert texts(reopened) == ["before", "lost 0", "after"]


def test_a_process_that_uses_a_deleted_database_creates_no_new_one(client: holdfast.Client, folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()
    for _ in range(3):
        with pytest.raises(UnavailableError, match="was moved, replaced or deleted"):
            client.add_message("chat", "user", "lost")
        with pytest.raises(UnavailableError, match="was moved, replaced or deleted"):
            client.get_messages("chat")
    assert list(folder.iterdir()) == []
    client.close()
    assert list(folder.iterdir()) == []


def test_what_was_acknowledged_survives_the_deletion_of_the_write_ahead_log(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_append_and_be_killed, args=(str(tmp_path),))
    process.start()
    process.join(60)
    with holdfast.connect(tmp_path) as client:
        assert texts(client)[:2] == ["before", "acknowledged"]


def _append_and_be_killed(folder: str) -> None:
    client = holdfast.connect(folder)
    client.add_message("chat", "user", "before")
    client.add_message("chat", "user", "acknowledged")
    (Path(folder) / f"{FILE}-wal").unlink()
    with pytest.raises(UnavailableError):
        client.add_message("chat", "user", "refused")
    os._exit(1)


def test_a_database_is_checked_when_it_is_opened_again_after_a_fork(client: holdfast.Client, folder: Path) -> None:
    context = multiprocessing.get_context("fork")
    put_back = move_file(folder)
    process = context.Process(target=_expect_displaced, args=(client,))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    with pytest.raises(UnavailableError, match="was moved, replaced or deleted"):
        client.add_message("chat", "user", "lost")
    put_back()
    assert not (folder / "moved.db").exists()


def _expect_displaced(client: holdfast.Client) -> None:
    with pytest.raises(UnavailableError, match="was moved, replaced or deleted"):
        client.add_message("chat", "user", "lost")


def test_a_forked_child_notices_a_replaced_database_that_its_parent_uses(folder: Path) -> None:
    """The child looks at its own handle of the file, not at that of its parent, which names the new file."""
    context = multiprocessing.get_context("fork")
    client = holdfast.connect(folder)
    client.add_message("chat", "user", "before")
    is_replaced = context.Event()
    process = context.Process(target=_expect_displaced_after, args=(client, is_replaced))
    process.start()
    client.close()
    del client
    gc.collect()  # the handle gets free for the new file
    replace_file(folder)
    with holdfast.connect(folder) as client:
        client.add_message("chat", "user", "in the new file")
        is_replaced.set()
        process.join(60)
        assert process.exitcode == 0
        assert texts(client) == ["in the new file"]


def _expect_displaced_after(client: holdfast.Client, is_replaced: Any) -> None:
    assert is_replaced.wait(60)
    _expect_displaced(client)


def test_a_change_of_the_working_directory_changes_no_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with holdfast.connect("data/holdfast.db") as client:
        client.add_message("chat", "user", "one")
        monkeypatch.chdir(tmp_path / "elsewhere")
        client.add_message("chat", "user", "two")
        assert texts(client) == ["one", "two"]


def test_the_files_of_a_new_database_are_private_in_a_folder_that_existed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with holdfast.connect(tmp_path) as client:
        client.add_message("chat", "user", "hello")
        client.get_messages("chat")
        modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    assert modes == {FILE: 0o600, f"{FILE}-wal": 0o600, f"{FILE}-shm": 0o600}


def test_a_file_that_existed_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / FILE).touch(0o640)
    (tmp_path / FILE).chmod(0o640)
    with holdfast.connect(tmp_path) as client:
        client.add_message("chat", "user", "hello")
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o640


def test_a_link_to_a_missing_file_creates_that_file(tmp_path: Path) -> None:
    (tmp_path / "linked").mkdir()
    (tmp_path / FILE).symlink_to(tmp_path / "linked" / FILE)
    with holdfast.connect(tmp_path) as client:
        client.add_message("chat", "user", "hello")
    assert (tmp_path / "linked" / FILE).stat().st_mode & 0o777 == 0o600


def test_threads_that_create_one_database_share_it(tmp_path: Path) -> None:
    """Closing a new file must not end the locks of a connection that another thread has opened."""
    clients = [open_client(SqliteDatabase(str(tmp_path / f"{number}.db"))) for number in range(4) for _ in range(2)]
    threads = [
        threading.Thread(target=client.add_message, args=("chat", "user", "hello"), daemon=True) for client in clients
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [len(texts(client)) for client in clients] == [2] * len(clients)
    for client in clients:
        client.close()


@pytest.mark.parametrize("displace", [move_file, replace_file])
def test_a_server_refuses_requests_while_its_database_is_displaced(folder: Path, displace: Displace) -> None:
    with running_server(folder) as server, httpx2.Client(base_url=server.url, timeout=10) as http:
        assert _append(http) == 200
        put_back = displace(folder)
        assert [_append(http) for _ in range(10)] == [503] * 10
        assert http.get("/api/v1/sessions/chat/messages").status_code == 503
        put_back()
        assert _append(http) == 200
        assert http.get("/api/v1/sessions/chat/messages").status_code == 200
        assert server.stop() == 0


def _append(http: httpx2.Client) -> int:
    return http.post("/api/v1/sessions/chat/messages", json={"role": "user", "content": "hello"}).status_code
