"""Mounts: a mount that is added to the list is listed, read and exported, without any other change."""

import json
import re
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import pytest

import holdfast
from holdfast import Client
from holdfast.engine.tree import mounts
from holdfast.engine.tree.mounts import Mount
from holdfast.engine.tree.nodes import File, Folder, small_folder, text_file
from holdfast.errors import InvalidUriError, NotFoundError
from holdfast.exchange import export_sessions, import_path
from holdfast.http.openapi import document
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
    """Add mounts. One with the path of another replaces it, and those below it."""
    kept = [each for each in mounts.MOUNTS if not any(f"{new.path}/".startswith(f"{each.path}/") for new in added)]
    monkeypatch.setattr(mounts, "MOUNTS", (*kept, *added))


def test_an_added_mount_is_listed_read_and_exported(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount(monkeypatch, Mount("user/{user_id}/notes", notes_folder))
    notes = "viking://user/alice/notes"
    assert client.ls("viking://user/alice", simple=True)[:2] == [notes, "viking://user/alice/resources"]
    assert f"{notes}/deep/a.md" in client.tree("viking://", level_limit=9, simple=True)
    assert (client.stat(notes).is_dir, client.stat(f"{notes}/Notes 1.md").size) == (True, len(NOTES.encode()))
    assert client.read(f"{notes}/Notes 1.md", 1, 1) == "Zwei: Grüße.\n"
    assert (client.abstract(notes), client.overview(notes)) == ("Notes of alice.", "Two notes.")
    assert client.ls("viking://user/alice", output="agent")[0].abstract == "Notes."
    report = export_sessions(client, tmp_path / "out")
    exported = tmp_path / "out/user/alice/notes"
    assert notes in report.other_mounts
    assert {
        path.relative_to(exported).as_posix(): path.read_text() for path in exported.rglob("*") if path.is_file()
    } == {
        ".abstract.md": "Notes of alice.",
        ".overview.md": "Two notes.",
        "Notes_1_md~441a809c17f2fd11": NOTES,
        "deep/a.md": "a",
    }
    assert [row.state for row in import_path(client, tmp_path / "out").sessions] == ["already there"]


def test_a_mount_at_a_new_top_level_path_is_listed_read_and_exported(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifacts = "viking://artifacts"
    with pytest.raises(InvalidUriError, match="use one of agent, resources, session, system, user, ~"):
        client.ls(artifacts)
    mount(monkeypatch, Mount("artifacts", notes_folder))
    assert artifacts in client.ls("viking://", simple=True)
    assert client.ls(artifacts, simple=True) == [f"{artifacts}/Notes 1.md", f"{artifacts}/deep"]
    assert f"{artifacts}/deep/a.md" in client.tree(artifacts, simple=True)
    assert (client.stat(artifacts).is_dir, client.stat(f"{artifacts}/deep/a.md").size) == (True, 1)
    assert client.read(f"{artifacts}/Notes 1.md") == NOTES
    assert (client.abstract(artifacts), client.overview(artifacts)) == ("Notes of alice.", "Two notes.")
    with pytest.raises(NotFoundError):
        client.stat(f"{artifacts}/nothing")
    with pytest.raises(InvalidUriError, match="use one of agent, artifacts, resources"):
        client.ls("viking://elsewhere")
    assert artifacts in export_sessions(client, tmp_path / "out").other_mounts
    assert (tmp_path / "out/artifacts/deep/a.md").read_text() == "a"


def test_the_openapi_document_accepts_the_uris_of_a_new_top_level_mount(monkeypatch: pytest.MonkeyPatch) -> None:
    def accepts(uri: str) -> bool:
        (schema,) = [
            parameter["schema"]
            for parameter in json.loads(document("1", "dev"))["paths"]["/api/v1/fs/ls"]["get"]["parameters"]
            if parameter["name"] == "uri"
        ]
        return re.search(schema["pattern"], uri) is not None

    assert not accepts("viking://artifacts/a.md")
    mount(monkeypatch, Mount("artifacts", notes_folder))
    assert accepts("viking://artifacts/a.md")
    assert accepts("viking://session/chat/")
    assert not accepts("viking://elsewhere")


def test_mounts_lie_at_different_depths(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    mount(monkeypatch, Mount("resources", notes_folder), Mount("tools/all/shared", notes_folder))
    roots = ["agent", "resources", "system", "tools", "user"]
    assert client.ls("viking://", simple=True) == [f"viking://{root}" for root in roots]
    assert client.ls("viking://tools/all", simple=True) == ["viking://tools/all/shared"]
    assert client.stat("viking://tools").mod_time == client.stat("viking://tools/all/shared").mod_time
    assert client.read("viking://session/chat/messages.jsonl").count("\n") == 1
    for missing in ("viking://agent/memories", "viking://user/bob/sessions", "viking://resources/x/y"):
        with pytest.raises(NotFoundError):
            client.stat(missing)


def test_no_mount_lies_in_another_or_is_hidden_by_the_alias_of_the_sessions() -> None:
    paths = [f"{each.path}/" for each in mounts.MOUNTS]
    assert [(a, b) for a, b in permutations(paths, 2) if a.startswith(b)] == []
    assert [path for path in paths if path.startswith("session/")] == []


@pytest.mark.parametrize(
    ("call", "path", "expected"),
    [
        ("ls", "", ["agent/skills", "resources"]),
        ("tree", "", ["agent/skills", "resources"]),
        ("stat", "", ["agent/skills", "resources"]),
        ("ls", "agent", ["agent/skills"]),
        ("stat", "resources/deep", ["resources"]),
        ("ls", "user/alice/sessions", []),
    ],
)
def test_a_call_builds_only_the_mounts_that_it_needs_and_each_once(
    client: Client, monkeypatch: pytest.MonkeyPatch, call: str, path: str, expected: list[str]
) -> None:
    built: list[str] = []

    def folder(tx: Tx, principal: Principal, uri: str) -> Folder:
        built.append(uri.removeprefix("viking://"))
        return notes_folder(tx, principal, uri)

    mount(monkeypatch, Mount("resources", folder), Mount("agent/skills", folder))
    getattr(client, call)(f"viking://{path}")
    assert built == expected


def test_a_missing_path_beside_the_mounts_builds_none_of_them(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def folder(_tx: Tx, _principal: Principal, uri: str) -> Folder:
        raise AssertionError(uri)

    mount(monkeypatch, Mount("system/tools", folder))
    for missing in ("viking://agent/memories", "viking://system/none", "viking://user/bob"):
        with pytest.raises(NotFoundError):
            client.stat(missing)


def test_a_node_that_can_be_written_says_so_in_its_mode(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def folder(_tx: Tx, _principal: Principal, uri: str) -> Folder:
        file = File(name="a.md", uri=f"{uri}/a.md", changed_at=0, read=lambda _: "", writable=True)
        return Folder(
            name="resources", uri=uri, changed_at=0, children=lambda: iter([file]), child=lambda _: file, writable=True
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
        assert export_sessions(client, tmp_path / "out", ["chat"]).other_mounts == []
        assert (tmp_path / "out/resources/stale.md").exists(), "an export of some sessions leaves the rest unchanged"
        export_sessions(client, tmp_path / "out")
        assert not (tmp_path / "out/resources/stale.md").exists()
    export_sessions(client, tmp_path / "out")
    names = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*")}
    assert not any("notes" in name or name.startswith("resources/") for name in names)
    assert {"resources.txt", "user/alice/sessions/chat/messages.jsonl"} <= names
