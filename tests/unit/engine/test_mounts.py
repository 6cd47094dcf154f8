"""Mounts: a mount that is added to the list is listed, read and exported, without any other change."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Client
from holdfast.engine.tree import mounts
from holdfast.engine.tree.mounts import Mount
from holdfast.engine.tree.nodes import File, Folder, small_folder, text_file
from holdfast.engine.tree.reading import Selection
from holdfast.errors import NotFoundError
from holdfast.exchange import export_sessions, import_path
from holdfast.model.identity import Principal
from holdfast.store.database import Tx

NOTES = "One.\nZwei: Grüße.\n"


def notes_folder(_tx: Tx, principal: Principal, uri: str) -> Folder:
    def children() -> Iterator[File | Folder]:
        yield text_file(uri, ".abstract.md", 7, f"Notes of {principal.user_id}.")
        yield text_file(uri, ".overview.md", 7, "Two notes.")
        yield text_file(uri, "Notes 1.md", 7, NOTES)
        yield small_folder("deep", f"{uri}/deep", 7, lambda: iter([text_file(f"{uri}/deep", "a.md", 7, "a")]))

    return small_folder(uri.rpartition("/")[2], uri, 7, children, lambda: "Notes.")


@pytest.fixture
def client(target: str) -> Iterator[Client]:
    with holdfast.connect(target, user="alice") as client:
        client.add_message("chat", "user", "hello")
        yield client


def mount(monkeypatch: pytest.MonkeyPatch, *added: Mount) -> None:
    monkeypatch.setattr(mounts, "MOUNTS", (*mounts.MOUNTS, *added))


def test_an_added_mount_is_listed_read_and_exported(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount(monkeypatch, Mount("user/{user_id}/notes", notes_folder))
    notes = "viking://user/alice/notes"
    assert client.ls("viking://user/alice", simple=True) == [notes, "viking://user/alice/sessions"]
    assert f"{notes}/deep/a.md" in client.tree("viking://", level_limit=9, simple=True)
    assert (client.stat(notes).is_dir, client.stat(f"{notes}/Notes%201.md").size) == (True, len(NOTES.encode()))
    assert client.read(f"{notes}/Notes%201.md", 1, 1) == "Zwei: Grüße.\n"
    assert (client.abstract(notes), client.overview(notes)) == ("Notes of alice.", "Two notes.")
    assert client.ls("viking://user/alice", output="agent")[0].abstract == "Notes."
    report = export_sessions(client, tmp_path / "out")
    exported = tmp_path / "out/user/alice/notes"
    assert report.others == [notes]
    assert {
        path.relative_to(exported).as_posix(): path.read_text() for path in exported.rglob("*") if path.is_file()
    } == {
        ".abstract.md": "Notes of alice.",
        ".overview.md": "Two notes.",
        "Notes_1_md~441a809c17f2fd11": NOTES,
        "deep/a.md": "a",
    }
    assert [row.state for row in import_path(client, tmp_path / "out").sessions] == ["already there"]


def test_mounts_lie_at_different_depths_in_one_folder_and_in_each_other(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount(
        monkeypatch,
        Mount("resources", notes_folder),
        Mount("user/{user_id}", notes_folder),
        Mount("user/{user_id}/deep", notes_folder),
        Mount("agent/skills/shared", notes_folder),
    )
    assert client.ls("viking://", simple=True) == ["viking://agent", "viking://resources", "viking://user"]
    assert client.ls("viking://agent/skills", simple=True) == ["viking://agent/skills/shared"]
    assert client.stat("viking://agent").mod_time == client.stat("viking://agent/skills/shared").mod_time
    home = [entry.name for entry in client.ls("viking://user/alice")]
    assert home == ["deep", "sessions", "Notes 1.md"], "the mounts in a mount come first, and hide what has their name"
    assert client.read("viking://user/alice/Notes%201.md") == NOTES
    assert client.read("viking://user/alice/deep/deep/a.md") == "a"
    with pytest.raises(NotFoundError):
        client.read("viking://user/alice/deep/a.md")
    assert client.read("viking://session/chat/messages.jsonl").count("\n") == 1
    for missing in ("viking://agent/memories", "viking://user/bob/deep", "viking://resources/x/y"):
        with pytest.raises(NotFoundError):
            client.stat(missing)


def test_a_node_that_can_be_written_says_so_in_its_mode(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(*_arguments: Any) -> None:
        raise NotImplementedError

    def read(_selection: Selection) -> str:
        return ""

    def folder(_tx: Tx, _principal: Principal, uri: str) -> Folder:
        file = File(name="a.md", uri=f"{uri}/a.md", changed_at=0, read=read, write=write)
        return Folder(
            name="resources", uri=uri, changed_at=0, children=lambda: iter([file]), child=lambda _: file, create=write
        )

    mount(monkeypatch, Mount("resources", folder))
    modes = [client.stat(f"viking://{path}").mode for path in ("resources", "resources/a.md")]
    assert modes == [0o755, 0o644]
    modes = [client.stat(f"viking://session/chat{path}").mode for path in ("", "/messages.jsonl")]
    assert modes == [0o555, 0o444], "sessions are read-only"


def test_an_export_replaces_and_removes_what_is_no_longer_mounted(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        mount(patch, Mount("resources", notes_folder), Mount("user/{user_id}/notes", notes_folder))
        export_sessions(client, tmp_path / "out")
        (tmp_path / "out/resources/stale.md").write_text("of an earlier export")
        (tmp_path / "out/resources.txt").write_text("mine")
        assert export_sessions(client, tmp_path / "out", ["chat"]).others == []
        assert (tmp_path / "out/resources/stale.md").exists(), "an export of some sessions leaves the rest unchanged"
        export_sessions(client, tmp_path / "out")
        assert not (tmp_path / "out/resources/stale.md").exists()
    export_sessions(client, tmp_path / "out")
    names = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*")}
    assert not any("notes" in name or name.startswith("resources/") for name in names)
    assert {"resources.txt", "user/alice/sessions/chat/messages.jsonl"} <= names
