"""The contract of packs: what is exported comes back the same, and nothing else is imported."""

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import (
    AlreadyExistsError,
    HoldfastError,
    InvalidArgumentError,
    NotFoundError,
)

GUIDE = "viking://resources/guide"
BYTES = bytes(range(256)) * 20


def write_zip(path: Path, entries: dict[str, bytes | str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return path


def read_zip(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def described(client: Any, uri: str) -> dict[str, Any]:
    """Return all that a pack keeps of a subtree, by the paths below it."""
    found: dict[str, Any] = {}
    for entry in client.ls(uri, recursive=True):
        if entry.is_dir:
            found[entry.rel_path] = sorted(entry.tags or [])
            continue
        versions = client.history(entry.uri).versions
        found[entry.rel_path] = (
            sorted(entry.tags or []),
            [(each.version, each.created_at, each.author, each.size, each.sha256) for each in versions],
            [client.read_bytes(entry.uri, version=each.version) for each in versions],
        )
    return found


def make_guide(client: Any, folder: Path) -> None:
    """Make a folder with files of all sorts."""
    plain: dict[str, bytes | str] = {
        "guide/files/日本 notes/α β.txt": "γ\n",
        "guide/files/100% #1?.md": "# Signs\n",
        "guide/files/a:b.md": "colon",
        "guide/files/data.bin": BYTES,
        "guide/files/empty.txt": b"",
        "guide/files/none/": b"",
    }
    client.import_pack(write_zip(folder / "plain.ovpack", plain), "viking://resources")
    client.write(f"{GUIDE}/install.md", "# Install\n\nUse apt.\n", tags=["os=linux"])
    client.write(f"{GUIDE}/install.md", "# Install\n\nUse dnf.\n")
    client.write(f"{GUIDE}/install.md", "# Install\n\nUse apt.\n")
    client.write(f"{GUIDE}/deep/er/a.md", "one")
    client.write("viking://resources/other.md", "other")
    client.link(f"{GUIDE}/install.md", [f"{GUIDE}/deep/er", "viking://resources/other.md"], reason="see also")


class PackContract:
    def test_a_pack_brings_back_files_of_all_sorts_with_their_history(
        self, client: Any, connect_as: Callable[..., Any], tmp_path: Path
    ) -> None:
        make_guide(client, tmp_path)
        done = client.export_pack(GUIDE, tmp_path / "guide.ovpack")
        assert (done.files, done.folders, done.versions) == (7, 5, 9)
        rival = connect_as("rival", "rob")
        for reader, parent in ((client, "viking://resources/copies"), (rival, "viking://~/resources")):
            imported = reader.import_pack(tmp_path / "guide.ovpack", parent)
            assert imported.uri == f"{parent.replace('~', 'user/rob')}/guide"
            assert (imported.files, imported.folders, imported.versions, imported.relations) == (7, 5, 9, 2)
            assert described(reader, imported.uri) == described(client, GUIDE)
            assert {each.change for each in reader.history(f"{imported.uri}/install.md").versions} == {"import"}
        assert [each.uri for each in client.relations("viking://resources/copies/guide/install.md")] == [
            "viking://resources/copies/guide/deep/er",
            "viking://resources/other.md",
        ]
        assert client.read_bytes("viking://resources/copies/guide/data.bin") == BYTES

    def test_a_pack_is_a_zip_archive_with_the_files_and_each_other_version_once(
        self, client: Any, tmp_path: Path
    ) -> None:
        make_guide(client, tmp_path)
        for name in ("one", "two"):
            client.export_pack(GUIDE, tmp_path / name)
        first, second = read_zip(tmp_path / "one"), read_zip(tmp_path / "two")
        manifests = [json.loads(found.pop("guide/_ovpack/manifest.json")) for found in (first, second)]
        dnf = hashlib.sha256(b"# Install\n\nUse dnf.\n").hexdigest()
        assert first == second
        assert list(first)[-1] == f"guide/_ovpack/blobs/{dnf}"
        assert len(first) == 8
        assert first["guide/files/日本 notes/α β.txt"].decode() == "γ\n"
        assert first["guide/files/100%25 %231%3F.md"] == b"# Signs\n"
        assert manifests[0] | {"exported_at": ""} == manifests[1] | {"exported_at": ""}
        client.export_pack(GUIDE, tmp_path / "one", versions=False, overwrite=True)
        assert len(read_zip(tmp_path / "one")) == 8
        with pytest.raises(AlreadyExistsError):
            client.export_pack(GUIDE, tmp_path / "one")

    def test_one_file_is_a_pack_too(self, client: Any, tmp_path: Path) -> None:
        client.write(f"{GUIDE}/a b.md", "one", tags=["k=v"])
        client.export_pack(f"{GUIDE}/a b.md", tmp_path / "file.ovpack")
        assert "a b.md/files/a b.md" in read_zip(tmp_path / "file.ovpack")
        imported = client.import_pack(tmp_path / "file.ovpack", "viking://~/resources/mine")
        assert imported.uri == "viking://user/alice/resources/mine/a b.md"
        assert client.read(imported.uri) == "one"
        assert client.stat(imported.uri).tags == ["k=v"]

    def test_an_import_overwrites_only_if_it_is_told_to_and_then_loses_nothing(
        self, client: Any, tmp_path: Path
    ) -> None:
        for name in ("a.md", "b.md", "c/d.md"):
            client.write(f"{GUIDE}/{name}", f"packed {name}")
        pack = tmp_path / "guide.ovpack"
        client.export_pack(GUIDE, pack)
        client.write(f"{GUIDE}/a.md", "mine")
        client.rm(f"{GUIDE}/c", recursive=True)
        with pytest.raises(AlreadyExistsError, match="guide exists already; nothing was imported"):
            client.import_pack(pack, "viking://resources")
        assert sorted(client.ls(GUIDE, simple=True)) == [f"{GUIDE}/a.md", f"{GUIDE}/b.md"]
        skipped = client.import_pack(pack, "viking://resources", on_conflict="skip")
        assert (skipped.files, skipped.folders, skipped.updated, skipped.skipped) == (1, 1, 0, 2)
        assert client.read(f"{GUIDE}/a.md") == "mine"
        assert client.read(f"{GUIDE}/c/d.md") == "packed c/d.md"
        overwritten = client.import_pack(pack, "viking://resources", on_conflict="overwrite")
        assert (overwritten.files, overwritten.updated, overwritten.skipped) == (0, 1, 2)
        assert client.read(f"{GUIDE}/a.md") == "packed a.md"
        assert client.read(f"{GUIDE}/a.md", version=2) == "mine"

    def test_a_file_in_place_of_a_folder_is_a_conflict(self, client: Any, tmp_path: Path) -> None:
        client.write(f"{GUIDE}/c/d.md", "packed")
        client.write(f"{GUIDE}/e.md", "packed")
        client.export_pack(GUIDE, tmp_path / "guide.ovpack")
        client.rm(GUIDE, recursive=True)
        client.write(f"{GUIDE}/c", "a file")
        client.write(f"{GUIDE}/e.md/inside.md", "a folder")
        with pytest.raises(AlreadyExistsError):
            client.import_pack(tmp_path / "guide.ovpack", "viking://resources", on_conflict="overwrite")
        skipped = client.import_pack(tmp_path / "guide.ovpack", "viking://resources", on_conflict="skip")
        assert (skipped.files, skipped.skipped) == (0, 2)
        assert client.read(f"{GUIDE}/c") == "a file"

    def test_a_backup_has_what_the_caller_may_write_and_goes_back_there(
        self, client: Any, connect_as: Callable[..., Any], tmp_path: Path
    ) -> None:
        bob = connect_as("acme", "bob", role="user")
        client.write(f"{GUIDE}/a.md", "shared")
        client.write("viking://~/resources/mine.md", "private")
        bob.write("viking://~/resources/secret.md", "bob's")
        client.backup_pack(tmp_path / "all.ovpack")
        assert {each.partition("/files/")[2] for each in read_zip(tmp_path / "all.ovpack")} == {
            *("", "resources/guide/a.md", "user/resources/mine.md")
        }
        with pytest.raises(AlreadyExistsError):
            client.restore_pack(tmp_path / "all.ovpack")
        client.rm(GUIDE, recursive=True)
        restored = client.restore_pack(tmp_path / "all.ovpack", on_conflict="skip")
        assert (restored.uri, restored.files, restored.skipped) == ("viking://", 1, 1)
        assert client.read(f"{GUIDE}/a.md") == "shared"
        assert bob.restore_pack(tmp_path / "all.ovpack", on_conflict="skip").files == 1
        assert bob.read("viking://~/resources/mine.md") == "private"

    def test_a_pack_is_exported_and_imported_with_the_rights_of_the_caller(
        self, client: Any, connect_as: Callable[..., Any], tmp_path: Path
    ) -> None:
        client.write("viking://~/resources/a.md", "private")
        client.write(f"{GUIDE}/a.md", "shared")
        bob = connect_as("acme", "bob", role="user")
        pack = tmp_path / "guide.ovpack"
        bob.export_pack(GUIDE, pack)
        for uri in ("viking://user/alice/resources", "viking://user/alice/resources/a.md", "viking://resources/no"):
            with pytest.raises(NotFoundError):
                bob.export_pack(uri, tmp_path / "no.ovpack")
        client.add_message("chat", "user", "hello")
        for uri in ("viking://", "viking://session/chat", "https://example.org"):
            with pytest.raises(HoldfastError) as refused:
                client.export_pack(uri, tmp_path / "no.ovpack")
            assert refused.value.status == 400
        assert not (tmp_path / "no.ovpack").exists()
        for parent in ("viking://user/alice/resources", "viking://system/skills", "viking://session/chat", "viking://"):
            with pytest.raises(HoldfastError) as refused:
                bob.import_pack(pack, parent)
            assert refused.value.status in {400, 403, 404}

    def test_a_hostile_pack_is_refused_with_the_reason_and_changes_nothing(self, client: Any, tmp_path: Path) -> None:
        client.write(f"{GUIDE}/a.md", "one")
        client.write(f"{GUIDE}/a.md", "two")
        client.export_pack(GUIDE, tmp_path / "good.ovpack")
        good = read_zip(tmp_path / "good.ovpack")
        before = client.ls("viking://resources", recursive=True, simple=True)
        for reason, entries in hostile_packs(good).items():
            pack = write_zip(tmp_path / "bad.ovpack", entries) if isinstance(entries, dict) else tmp_path / "bad.ovpack"
            if isinstance(entries, bytes):
                pack.write_bytes(entries)
            with pytest.raises(InvalidArgumentError) as refused:
                client.import_pack(pack, "viking://resources/copies")
            assert reason in refused.value.message, (reason, refused.value.message)
        assert client.ls("viking://resources", recursive=True, simple=True) == before
        with pytest.raises(InvalidArgumentError, match="is not a backup"):
            client.restore_pack(tmp_path / "good.ovpack")


def hostile_packs(good: dict[str, bytes]) -> dict[str, dict[str, bytes | str] | bytes]:
    """Return packs that lie, by a part of the reason why they are refused."""
    name = "guide/_ovpack/manifest.json"
    blob = next(each for each in good if "/blobs/" in each)

    def with_manifest(change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> dict[str, bytes | str]:
        manifest = json.loads(good[name])
        change(manifest, manifest["nodes"][-1])
        return {**good, name: json.dumps(manifest)}

    def node(**fields: Any) -> dict[str, bytes | str]:
        return with_manifest(lambda manifest, last: manifest["nodes"].append({**last, **fields}))

    def version(**fields: Any) -> dict[str, bytes | str]:
        return with_manifest(lambda _, last: last["versions"][0].update(fields))

    folder = {"is_folder": True, "versions": []}
    other: dict[str, bytes | str] = {"guide/files/a.md": "other bytes", "guide/files/../../a.md": "up"}
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("guide/files/zeros.bin", bytes(8 << 20))
    return {
        "is no pack: it is not a zip archive": b"name,price\nplum,3\n",
        "is no pack: it is a zip archive whose end is missing": b"PK\x03\x04 and no end",
        "is no pack: it has no folder {name}/files": {"readme.md": "hello"},
        "so it may leave its folder": other,
        "as a zip bomb does": bomb.getvalue(),
        "is not a JSON object": {**good, name: "[" * 100_000},
        "has the format number 2": with_manifest(lambda manifest, _: manifest.update(number=2)),
        "is not valid: Object missing required field `nodes`": with_manifest(lambda manifest, _: manifest.pop("nodes")),
        "has other bytes than its manifest says": {**good, "guide/files/a.md": "TWO"},
        "has 5 bytes, but 3 in the manifest": {**good, "guide/files/a.md": "three"},
        "has no entry": {each: content for each, content in good.items() if each != blob},
        "which its manifest does not name": {**good, "guide/files/b.md": "extra"},
        "twice": node(),
        "'../a.md', which is not a path below the pack": node(path="../a.md"),
        "'%2e%2e/a.md', which is not a path": node(path="%2e%2e/a.md"),
        "'/a.md', which is not a path": node(path="/a.md"),
        "whose folder is missing or a file": node(path="a.md/b.md"),
        "'.abstract.md', which cannot be stored": node(path=".abstract.md", **folder),
        "has no version of the file": node(path="c.md", versions=[]),
        "has versions of the folder": node(path="c", is_folder=True),
        "after 2; they come in order": version(version=2),
        "has two sizes for the same hash": version(size=4, sha256=hashlib.sha256(b"two").hexdigest()),
        "Expected `str` matching regex": version(sha256="../../etc/passwd"),
        "has a text with a NUL character": version(author="a\0b"),
        "Invalid RFC3339": version(created_at="yesterday"),
        "is no address": with_manifest(
            lambda manifest, _: manifest.update(
                relations=[{"from_path": "a.md", "to_uri": "file:///etc", "created_at": "2026-01-01T00:00:00Z"}]
            )
        ),
        "which it does not have as a file": with_manifest(
            lambda manifest, _: manifest.update(
                relations=[{"from_path": "x.md", "to_path": "", "created_at": "2026-01-01T00:00:00Z"}]
            )
        ),
        "is a backup; restore it": {name: json.dumps(json.loads(good[name]) | {"kind": "backup", "nodes": []})},
    }
