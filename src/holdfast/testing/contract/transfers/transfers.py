"""The contract of files that are sent and read as they are, whatever their size."""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
)

MIB = 1024 * 1024
FOLDER = "viking://resources/transfers"
LONG_TEXT = "Zeile mit Ümlaut und 漢字\n" * 60_000
"""Longer than one stored chunk. Some of its characters lie across the boundary of two chunks."""


class TransferContract:
    def test_an_uploaded_file_is_known_by_its_hash(self, client: Any, tmp_path: Path) -> None:
        data = bytes(range(256)) * (10 * MIB // 1024) + b"end"
        file = tmp_path / "Über den Fluß.TAR.GZ"
        file.write_bytes(data)
        progress: list[tuple[int, int, str]] = []
        uploaded = client.upload(file, progress=lambda *each: progress.append(each))
        assert re.fullmatch(r"upload_[0-9a-f]{32}\.gz", uploaded.temp_file_id)
        assert (uploaded.size, uploaded.sha256) == (len(data), hashlib.sha256(data).hexdigest())
        assert [done for done, _, _ in progress] == [MIB, 2 * MIB, len(data)]
        assert {each[1:] for each in progress} == {(len(data), file.name)}
        again = client.upload(str(file), name="no extension")
        assert again.sha256 == uploaded.sha256
        assert re.fullmatch(r"upload_[0-9a-f]{32}", again.temp_file_id)
        assert again.temp_file_id != uploaded.temp_file_id

    def test_an_empty_file_can_be_uploaded(self, client: Any, tmp_path: Path) -> None:
        (tmp_path / "empty.txt").touch()
        uploaded = client.upload(tmp_path / "empty.txt")
        assert (uploaded.size, uploaded.sha256) == (0, hashlib.sha256().hexdigest())

    def test_an_upload_belongs_to_its_user(self, client: Any, connect_as: Callable[..., Any], tmp_path: Path) -> None:
        (tmp_path / "plan.md").write_text("secret", "utf-8")
        uploaded = client.upload(tmp_path / "plan.md")
        for other in (connect_as("acme", "bob", "user"), connect_as("rival", "alice")):
            with pytest.raises(PermissionDeniedError, match="is not an upload of"):
                other.cancel_upload(uploaded.temp_file_id)
        client.cancel_upload(uploaded.temp_file_id)
        with pytest.raises(PermissionDeniedError, match="is not an upload of alice"):
            client.cancel_upload(uploaded.temp_file_id)
        with pytest.raises(InvalidArgumentError, match="cannot be read"):
            client.upload(tmp_path / "missing.md")

    def test_a_stored_file_is_downloaded_as_it_is(self, client: Any, tmp_path: Path) -> None:
        uri, target = f"{FOLDER}/long.md", tmp_path / "long.md"
        client.write(uri, LONG_TEXT)
        client.write(uri, "short\r\n")
        assert client.read_bytes(uri) == b"short\r\n"
        assert client.read_bytes(uri, version=1) == LONG_TEXT.encode()
        progress: list[tuple[int, int, str]] = []
        done = client.download(uri, target, version=1, progress=lambda *each: progress.append(each))
        assert target.read_bytes() == LONG_TEXT.encode()
        assert done.size == len(LONG_TEXT.encode())
        assert progress[-1] == (done.size, done.size, "long.md")
        assert len(progress) == 2
        with pytest.raises(AlreadyExistsError, match="exists already"):
            client.download(uri, target)
        client.download(uri, str(target), overwrite=True)
        assert target.read_bytes() == b"short\r\n"

    def test_a_removed_file_can_be_downloaded_by_its_version(self, client: Any) -> None:
        client.write(f"{FOLDER}/gone.md", "still there")
        client.rm(f"{FOLDER}/gone.md")
        assert client.read_bytes(f"{FOLDER}/gone.md", version=1) == b"still there"
        with pytest.raises(NotFoundError):
            client.read_bytes(f"{FOLDER}/gone.md")
        with pytest.raises(NotFoundError):
            client.read_bytes(f"{FOLDER}/gone.md", version=2)

    @pytest.mark.parametrize("length", [3, 400_000])
    def test_a_view_is_downloaded_as_its_text(self, client: Any, tmp_path: Path, length: int) -> None:
        for number in range(3):
            client.add_message("chat", "user", f"{number} {'ß' * length}")
        uri = "viking://session/chat/messages.jsonl"
        client.download(uri, tmp_path / "chat.jsonl")
        text = client.read(uri)
        assert (tmp_path / "chat.jsonl").read_text("utf-8") == text
        assert client.read_bytes(uri) == text.encode()

    def test_a_failed_download_leaves_no_file(self, client: Any, tmp_path: Path) -> None:
        client.mkdir(FOLDER)
        for uri, error in ((f"{FOLDER}/missing.md", NotFoundError), (FOLDER, FailedPreconditionError)):
            with pytest.raises(error):
                client.download(uri, tmp_path / "target")
        with pytest.raises(InvalidArgumentError, match="is a folder"):
            client.download(f"{FOLDER}/missing.md", tmp_path)
        assert list(tmp_path.iterdir()) == []

    def test_the_files_of_a_user_are_private(self, client: Any, connect_as: Callable[..., Any]) -> None:
        client.write("viking://user/alice/resources/diary.md", "private")
        bob = connect_as("acme", "bob", "user")
        with pytest.raises((NotFoundError, PermissionDeniedError)):
            bob.read_bytes("viking://user/alice/resources/diary.md")

    def test_a_batch_writes_all_files_or_none(self, client: Any) -> None:
        client.write(f"{FOLDER}/a.md", "a")
        written = client.batch_write(
            FOLDER,
            [
                {"uri": f"{FOLDER}/a.md", "content": "+", "mode": "append"},
                {"uri": f"{FOLDER}/deep/er/b.md", "content": "b", "mode": "create"},
                {"uri": f"{FOLDER}/empty.md"},
            ],
            wait=True,
        )
        assert {each.semantic_status for each in written.results} == {"complete"}
        assert [each.version for each in written.results] == [2, 1, 1]
        assert [client.read(each.uri) for each in written.results] == ["a+", "b", ""]
        operations = [
            {"uri": f"{FOLDER}/c.md", "content": "c"},
            {"uri": f"{FOLDER}/a.md", "content": "x", "expected_sha256": "0" * 64},
            {"uri": f"{FOLDER}/deep/er/b.md", "content": "x", "mode": "create"},
        ]
        with pytest.raises(Exception, match="expected_sha256"):
            client.batch_write(FOLDER, operations)
        with pytest.raises(NotFoundError):
            client.stat(f"{FOLDER}/c.md")
        written = client.batch_write(FOLDER, operations, skip_conflicts=True)
        assert [each.uri for each in written.results] == [f"{FOLDER}/c.md"]
        assert written.skipped == [f"{FOLDER}/a.md", f"{FOLDER}/deep/er/b.md"]
        assert client.read(f"{FOLDER}/a.md") == "a+"

    def test_a_batch_stays_in_its_folder(self, client: Any) -> None:
        file = {"uri": f"{FOLDER}/a.md", "content": "a"}
        with pytest.raises(NotFoundError):
            client.batch_write(FOLDER, [file])
        client.mkdir(FOLDER)
        for operations, field in (
            ([file, {"uri": f"{FOLDER}-other/a.md", "content": "a"}], r"operations\[1\].uri"),
            ([{**file, "colour": "red"}], "colour"),
            ([{"content": "a"}], "uri"),
            ([file] * 101, "operations"),
            ([], "operations"),
            ([{"uri": FOLDER, "content": "a"}], "uri"),
        ):
            with pytest.raises(InvalidArgumentError, match=field):
                client.batch_write(FOLDER, operations)
        assert client.ls(FOLDER) == []
