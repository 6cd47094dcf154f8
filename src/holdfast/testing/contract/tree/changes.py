"""The contract of changes of stored files: write, mkdir, mv, cp, rm, restore and history."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from holdfast.errors import (
    AlreadyExistsError,
    ConflictError,
    FailedPreconditionError,
    HoldfastError,
    InvalidArgumentError,
    InvalidUriError,
    NotFoundError,
    PermissionDeniedError,
)

NOTES = "viking://resources/notes"
NAMES = ("a.md", "with two  spaces.txt", "中文 説明.md", "n" * 200, "50%25 off %23 1.md", "é~@:;,=+!'()$&.md")


def is_there(client: Any, uri: str) -> bool:
    try:
        client.stat(uri)
    except NotFoundError:
        return False
    return True


class FileChangeContract:
    @pytest.mark.parametrize("name", NAMES)
    def test_a_file_of_any_name_is_written_listed_read_moved_and_removed(self, client: Any, name: str) -> None:
        uri, text = f"{NOTES}/{name}", "first\nzweite Zeile: Grüße 你好\n"
        written = client.write(uri, text)
        assert (written.uri, written.version, written.content_updated) == (uri, 1, True)
        entry = client.stat(uri)
        assert (entry.uri, entry.is_dir, entry.size) == (uri, False, len(text.encode()))
        assert [each.uri for each in client.ls(NOTES)] == [uri]
        assert client.read(uri) == text
        moved = f"viking://~/resources/deep/{name}"
        assert client.mv(uri, moved).to_uri == f"viking://user/alice/resources/deep/{name}"
        assert (client.read(moved), is_there(client, uri)) == (text, False)
        client.mkdir(uri)
        assert client.stat(uri).is_dir, "the old address is free"
        assert client.rm(moved).estimated_deleted_count == 1
        assert not is_there(client, moved)

    def test_every_write_is_a_version_that_mv_and_rm_keep(self, client: Any) -> None:
        uri, moved = f"{NOTES}/a.md", f"{NOTES}/b.md"
        client.write(uri, "one\n", mode="create")
        client.write(uri, "two\n", mode="append")
        assert client.write(uri, "one\ntwo\n").content_updated is False
        client.write(uri, "")
        assert [each.change for each in client.history(uri).versions] == ["replace", "append", "create"]
        assert [client.read(uri, version=number) for number in (1, 2, 3)] == ["one\n", "one\ntwo\n", ""]
        client.mv(uri, moved)
        assert [each.version for each in client.history(moved).versions] == [3, 2, 1]
        client.rm(moved)
        assert client.history(moved).removed_at is not None
        assert (client.restore(moved).version, client.read(moved)) == (3, "")
        assert (client.restore(moved, 2).version, client.read(moved)) == (4, "one\ntwo\n")
        assert [each.is_current for each in client.history(moved, limit=2).versions] == [True, False]
        with pytest.raises(NotFoundError):
            client.restore(moved, 9)

    def test_a_folder_is_copied_moved_removed_and_restored_with_its_content(self, client: Any) -> None:
        for path in ("a/1.md", "a/b/2.md", "a/b/c/3.md", "ab/4.md"):
            client.write(f"{NOTES}/{path}", path)
        with pytest.raises(FailedPreconditionError, match="recursive"):
            client.cp(f"{NOTES}/a", f"{NOTES}/copy")
        assert client.cp(f"{NOTES}/a", f"{NOTES}/copy", recursive=True).files_created == 3
        client.mv(f"{NOTES}/a", f"{NOTES}/moved/here")
        client.write(f"{NOTES}/moved/here/b/2.md", " more", mode="append")
        assert client.read(f"{NOTES}/copy/b/2.md") == "a/b/2.md"
        with pytest.raises(FailedPreconditionError, match="recursive"):
            client.rm(f"{NOTES}/moved")
        assert client.rm(f"{NOTES}/moved", recursive=True).estimated_deleted_count == 7
        client.write(f"{NOTES}/moved/here/new.md", "new")
        with pytest.raises(AlreadyExistsError):
            client.mv(f"{NOTES}/copy", f"{NOTES}/ab")
        client.rm(f"{NOTES}/moved", recursive=True)
        client.restore(f"{NOTES}/moved")
        assert [each.uri for each in client.ls(f"{NOTES}/moved", recursive=True)] == [
            f"{NOTES}/moved/here",
            f"{NOTES}/moved/here/new.md",
        ]
        assert client.read(f"{NOTES}/ab/4.md") == "ab/4.md"

    def test_what_cannot_be_changed_is_refused_with_a_reason(self, client: Any) -> None:
        client.write(f"{NOTES}/a.md", "x")
        client.add_message("chat", "user", "hello")
        refused: list[tuple[type[HoldfastError], Callable[[], Any]]] = [
            (PermissionDeniedError, lambda: client.write("viking://resources/../x", "")),
            (InvalidUriError, lambda: client.mkdir("viking://temp/x")),
            (InvalidUriError, lambda: client.mkdir("resources/x")),
            (InvalidArgumentError, lambda: client.write("viking://session/chat/messages.jsonl", "x")),
            (InvalidArgumentError, lambda: client.write(NOTES, "x")),
            (InvalidArgumentError, lambda: client.write(f"{NOTES}/.abstract.md", "x")),
            (FailedPreconditionError, lambda: client.write(f"{NOTES}/a.md/b.md", "x")),
            (AlreadyExistsError, lambda: client.mkdir(f"{NOTES}/a.md")),
            (AlreadyExistsError, lambda: client.write(f"{NOTES}/a.md", "y", mode="create")),
            (InvalidArgumentError, lambda: client.mv(NOTES, f"{NOTES}/in/itself")),
            (NotFoundError, lambda: client.mv(f"{NOTES}/missing", f"{NOTES}/x")),
            (NotFoundError, lambda: client.cp(f"{NOTES}/missing", f"{NOTES}/x")),
            (NotFoundError, lambda: client.restore(f"{NOTES}/missing")),
            (NotFoundError, lambda: client.history(f"{NOTES}/missing")),
            (PermissionDeniedError, lambda: client.rm("viking://resources", recursive=True)),
            (ConflictError, lambda: client.write(f"{NOTES}/a.md", "y", expected_version=7)),
            (ConflictError, lambda: client.write(f"{NOTES}/new.md", "y", expected_version=1)),
        ]
        for error, call in refused:
            with pytest.raises(error):
                call()
        assert client.rm(f"{NOTES}/missing").estimated_deleted_count == 0
        assert client.read(f"{NOTES}/a.md") == "x"
        assert client.write(f"{NOTES}/a.md", "y", expected_version=1).version == 2

    def test_users_share_resources_and_keep_their_own_files(self, client: Any, connect_as: Callable[..., Any]) -> None:
        bob = connect_as("acme", "bob", "user")
        other = connect_as("other", "alice", "user")
        client.write(f"{NOTES}/a.md", "shared secret")
        client.write("viking://~/resources/mine.md", "my secret")
        assert bob.read(f"{NOTES}/a.md") == "shared secret"
        assert bob.write(f"{NOTES}/a.md", "!", mode="append").version == 2
        assert [each.author for each in client.history(f"{NOTES}/a.md").versions] == ["bob", "alice"]
        for caller in (bob, other):
            private = "viking://user/alice/resources/mine.md"
            if caller is bob:
                for call in (caller.stat, caller.read, caller.rm, caller.history, caller.restore, caller.attributes):
                    with pytest.raises((NotFoundError, PermissionDeniedError)):
                        call(private)
                with pytest.raises((NotFoundError, PermissionDeniedError)):
                    caller.mv(private, "viking://~/resources/stolen.md")
            assert caller.grep("viking://", "my secret").matches == []
            assert [uri for uri in caller.glob("**/*.md").matches if "mine" in uri] == []
        assert other.grep("viking://", "secret").matches == []
        with pytest.raises(PermissionDeniedError, match="administrator"):
            bob.write("viking://system/skills/x/SKILL.md", "x")

    def test_parallel_changes_of_one_address_end_in_one_state(
        self, client: Any, connect_as: Callable[..., Any]
    ) -> None:
        clients = [connect_as("acme", "alice") for _ in range(4)]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda each: each.mkdir(f"{NOTES}/made/at/once"), clients))
            assert [each.uri for each in client.ls(f"{NOTES}/made")] == [f"{NOTES}/made/at"]
            list(pool.map(lambda each: each.write(f"{NOTES}/log.md", "line\n", mode="append"), clients))
            assert client.read(f"{NOTES}/log.md") == "line\n" * 4
            actions = [lambda each: each.rm(f"{NOTES}/log.md"), lambda each: each.write(f"{NOTES}/log.md", "new")]
            list(pool.map(lambda pair: pair[0](pair[1]), zip(actions * 2, clients, strict=True)))
        assert not is_there(client, f"{NOTES}/log.md") or client.read(f"{NOTES}/log.md") == "new"
