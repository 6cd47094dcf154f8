"""The contract of resources: how files, folders, archives and texts are added, updated and watched."""

import io
import os
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from holdfast.errors import (
    DeadlineExceededError,
    HoldfastError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    ProcessingError,
)

DOCS = {
    "readme.md": "# Harbour\n\nThe harbour opens at six.\n",
    "guides/mooring.md": "# Mooring\n\n" + "A bowline holds a boat. " * 60,
    "guides/tides/tables.csv": "day,high\nmonday,06:12\ntuesday,07:01\n",
    "code/pump.py": "def pump(litres):\n    return litres * 2\n",
}


def zipped(entries: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for path, data in entries.items():
            archive.writestr(path, data)
    return file.getvalue()


def paths_below(client: Any, uri: str) -> set[str]:
    entries = client.tree(uri, level_limit=10)
    return {entry.uri.removeprefix(f"{uri}/") for entry in entries if not entry.is_dir}


class ResourceContract:
    @pytest.fixture
    def docs(self) -> Iterator[Path]:
        """A folder of documents, with things that must be left out."""
        with TemporaryDirectory() as temporary:
            folder = Path(temporary, "docs v1.2")
            for path, text in DOCS.items():
                file = folder / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, "utf-8")
            (folder / ".git").mkdir()
            (folder / ".git/config").write_text("[core]")
            yield folder

    def test_a_file_becomes_a_folder_named_after_it(self, client: Any, docs: Path) -> None:
        added = client.add_resource(docs / "guides/mooring.md", reason="for the pilots", wait=True)
        assert (added.status, added.root_uri, added.source_path) == (
            "success",
            "viking://resources/mooring",
            "mooring.md",
        )
        assert (added.added, added.changed, added.unchanged, added.errors, added.context_count) == (1, 0, 0, [], 2)
        assert added.queue_status.semantic.processed == added.queue_status.embedding.processed == 1
        assert client.read(f"{added.root_uri}/mooring.md") == DOCS["guides/mooring.md"]
        for uri in (added.root_uri, f"{added.root_uri}/mooring.md"):
            assert "pilots" in client.abstract(uri)
            assert len(client.abstract(uri)) <= len(client.overview(uri))
        assert f"{added.root_uri}/mooring.md" in {hit.uri.partition("#")[0] for hit in client.find("bowline").resources}
        task = client.get_task(added.task_id)
        assert (task.task_type, task.resource_id, task.status) == ("add_resource", added.root_uri, "completed")
        assert task.result["queue_status"]["Semantic"]["processed"] == 1

    def test_the_same_file_without_an_address_is_another_resource(self, client: Any, docs: Path) -> None:
        file = docs / "readme.md"
        started = [client.add_resource(file) for _ in range(2)]
        assert [each.status for each in started] == ["accepted", "accepted"]
        waited = client.add_resource(file, wait=True)
        roots = [each.root_uri for each in (*started, waited)]
        assert roots == ["viking://resources/readme", "viking://resources/readme_1", "viking://resources/readme_2"]
        client.wait_until_idle()
        assert {client.read(f"{root}/readme.md") for root in roots} == {DOCS["readme.md"]}

    def test_a_folder_keeps_its_structure_and_an_update_changes_only_what_changed(
        self, client: Any, docs: Path
    ) -> None:
        uri = "viking://resources/harbour"
        first = client.add_resource(docs, to=uri, wait=True)
        assert (first.root_uri, first.added, first.errors) == (uri, len(DOCS), [])
        assert paths_below(client, uri) == set(DOCS)
        assert client.abstract(f"{uri}/guides/tides")
        again = client.add_resource(docs, to=uri, wait=True)
        assert (again.added, again.changed, again.unchanged, again.removed) == (0, 0, len(DOCS), 0)
        (docs / "readme.md").write_text("# Harbour\n\nThe harbour opens at seven.\n")
        (docs / "new.txt").write_text("A new pier.")
        (docs / "guides/tides/tables.csv").unlink()
        changed = client.add_resource(docs, to=uri, wait=True)
        assert (changed.added, changed.changed, changed.unchanged, changed.removed) == (1, 1, len(DOCS) - 2, 0)
        assert changed.missing == ["guides/tides/tables.csv"]
        assert [each.version for each in client.history(f"{uri}/readme.md").versions] == [2, 1]
        assert "six" in client.read(f"{uri}/readme.md", version=1)
        assert [each.version for each in client.history(f"{uri}/code/pump.py").versions] == [1]
        synced = client.add_resource(docs, to=uri, sync=True, wait=True)
        assert (synced.removed, synced.unchanged) == (1, len(DOCS))
        assert paths_below(client, uri) == set(DOCS) - {"guides/tides/tables.csv"} | {"new.txt"}
        with pytest.raises(NotFoundError):
            client.stat(f"{uri}/guides/tides")

    def test_a_file_that_was_edited_or_removed_in_the_tree_is_brought_back(self, client: Any, docs: Path) -> None:
        uri = "viking://resources/harbour"
        client.add_resource(docs, to=uri, wait=True)
        client.write(f"{uri}/readme.md", "edited")
        client.rm(f"{uri}/code", recursive=True)
        again = client.add_resource(docs, to=uri, wait=True)
        assert (again.added, again.changed) == (1, 1)
        assert client.read(f"{uri}/readme.md") == DOCS["readme.md"]
        assert client.read(f"{uri}/code/pump.py") == DOCS["code/pump.py"]

    def test_links_and_files_that_cannot_be_read_are_named_and_the_rest_goes_in(self, client: Any, docs: Path) -> None:
        outside = docs.parent / "secret.txt"
        outside.write_text("the secret")
        (docs / "link.txt").symlink_to(outside)
        (docs / "folder-link").symlink_to(docs.parent)
        os.mkfifo(docs / "pipe")
        with pytest.raises(InvalidArgumentError, match="pipe"):
            client.add_resource(docs / "pipe")
        (docs / "broken.pdf").write_bytes(b"\x00\x01 not a document")
        (docs / ".abstract.md").write_text("mine")
        added = client.add_resource(docs, wait=True)
        assert added.root_uri == "viking://resources/docs v1.2"
        assert added.added == len(DOCS)
        problems = {problem.file: problem.message for problem in added.errors}
        assert set(problems) == {"link.txt", "folder-link", "pipe", "broken.pdf", ".abstract.md"}
        assert "symbolic link" in problems["link.txt"]
        assert "symbolic link" in problems["folder-link"]
        assert "pipe" in problems["pipe"]
        assert "broken.pdf" in problems["broken.pdf"]
        assert paths_below(client, added.root_uri) == set(DOCS)
        with pytest.raises(InvalidArgumentError, match="link"):
            client.add_resource(docs, to="viking://resources/strict", strict=True, wait=True)
        with pytest.raises(ProcessingError, match=r"broken\.pdf"):
            client.add_resource(docs, to="viking://resources/strict", include="*.pdf,readme.md", strict=True, wait=True)
        with pytest.raises(NotFoundError):
            client.stat("viking://resources/strict")

    def test_hostile_entries_of_an_archive_are_named_and_the_rest_goes_in(self, client: Any) -> None:
        data = zipped({"ok/a.md": b"# A", "../../evil.md": b"x", "/etc/evil": b"x", "ok\\b.md": b"x", "c.md": b"# C"})
        added = client.add_resource(data, name="mixed.zip", wait=True)
        assert added.root_uri == "viking://resources/mixed"
        assert paths_below(client, added.root_uri) == {"ok/a.md", "c.md"}
        assert {problem.file for problem in added.errors} == {"../../evil.md", "/etc/evil", "ok\\b.md"}
        for name, broken in (("damaged.zip", data[:60]), ("empty.zip", zipped({}))):
            with pytest.raises(HoldfastError, match="nothing was added"):
                client.add_resource(broken, name=name, wait=True)
        assert [entry.name for entry in client.ls("viking://resources")] == ["mixed"]

    def test_nothing_is_appended_to_a_text_of_another_encoding(self, client: Any) -> None:
        data = "Ebbe und Flut: 3 m höher\n".encode("utf-16")
        added = client.add_resource(data, name="tide.txt", wait=True)
        uri = f"{added.root_uri}/tide.txt"
        with pytest.raises(InvalidArgumentError, match="not in UTF-8"):
            client.write(uri, "more", mode="append")
        assert client.read_bytes(uri) == data
        assert client.write(uri, client.read(uri) + "more").version == 2

    def test_a_text_is_added_under_its_name_and_patterns_choose_files(self, client: Any, docs: Path) -> None:
        text = "Änderungen am Kai\n\n" + "Der Kran bleibt. " * 400
        added = client.add_resource(text, name="notizen für märz.md", wait=True)
        assert added.root_uri == "viking://resources/notizen für märz"
        assert client.read(f"{added.root_uri}/notizen für märz.md") == text
        chosen = client.add_resource(docs, include="*.md,*.csv", exclude="guides/moor*", tags=["team=port"], wait=True)
        assert paths_below(client, chosen.root_uri) == {"readme.md", "guides/tides/tables.csv"}
        assert client.stat(f"{chosen.root_uri}/readme.md").tags == ["team=port"]
        with pytest.raises(InvalidArgumentError, match="name"):
            client.add_resource("Just a text with no path")

    def test_a_large_file_is_stored_in_chunks(self, client: Any) -> None:
        line = b"the tide table of the harbour, line %07d\n"
        data = b"".join(line % number for number in range(70_000))
        archive = zipped({"big.txt": data, "small.txt": b"small"})
        added = client.add_resource(archive, name="large.zip", wait=True)
        assert (added.added, added.errors) == (2, [])
        assert client.read_bytes(f"{added.root_uri}/big.txt") == data
        again = client.add_resource(archive + b"", name="large.zip", to=added.root_uri, wait=True)
        assert again.unchanged == 2

    def test_where_a_resource_goes(self, client: Any, docs: Path) -> None:
        file = docs / "readme.md"
        with pytest.raises(NotFoundError):
            client.add_resource(file, parent="viking://resources/missing")
        made = client.add_resource(file, parent="viking://resources/a/b", create_parent=True, wait=True)
        assert made.root_uri == "viking://resources/a/b/readme"
        private = client.add_resource(file, parent="viking://~/resources", wait=True)
        assert private.root_uri == "viking://user/alice/resources/readme"
        with pytest.raises(InvalidArgumentError, match="parent"):
            client.add_resource(file, to="viking://resources/x", parent="viking://resources")
        for uri in ("viking://~/skills/x", "viking://~/sessions/x", "viking://agent/x"):
            with pytest.raises(InvalidArgumentError, match="scope of resources"):
                client.add_resource(file, to=uri)
        with pytest.raises(InvalidArgumentError, match="to"):
            client.add_resource(file, to="viking://resources")
        exact = client.add_resource(file, to="viking://resources/notes/today.md", wait=True)
        assert not client.stat(exact.root_uri).is_dir
        assert client.read(exact.root_uri) == DOCS["readme.md"]
        picture = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde"
        try:
            image = client.add_resource(picture, name="boat.png", wait=True)
        except HoldfastError as error:
            assert "boat.png" in error.message  # noqa: PT017 - the parsers of images are an extra
        else:
            assert image.root_uri.startswith("viking://resources/images/2")

    def test_what_cannot_be_fetched_is_refused_with_the_setting(self, client: Any) -> None:
        for source, setting in (
            ("https://docs.example/a.html", "fetch_urls"),
            ("https://x.example/a.git", "fetch_git"),
        ):
            with pytest.raises(PermissionDeniedError, match=setting):
                client.add_resource(source)
        with pytest.raises(PermissionDeniedError, match="resource_folders"):
            client.add_resource("/etc", to="viking://resources/etc", watch_interval=1)
        with pytest.raises(InvalidArgumentError, match="watch_interval"):
            client.add_resource(b"x", name="x.md", to="viking://resources/x", watch_interval=1)
        assert client.list_watches().total == 0
        with pytest.raises(NotFoundError):
            client.get_watch("watch_0")
        with pytest.raises(NotFoundError):
            client.trigger_watch("viking://resources/x")

    def test_a_wait_ends_at_its_timeout_and_the_task_goes_on(self, client: Any, docs: Path) -> None:
        progress: list[tuple[int, int, str]] = []
        try:
            client.add_resource(docs, wait=True, timeout=0.0001, on_progress=lambda *step: progress.append(step))
        except DeadlineExceededError as error:
            assert client.wait_for_task(error.details["task_id"]).status == "completed"  # noqa: PT017 - it may be fast
        assert progress
        assert paths_below(client, "viking://resources/docs v1.2") == set(DOCS)

    def test_users_share_resources_of_the_account_and_no_others(
        self, client: Any, connect_as: Callable[..., Any], docs: Path
    ) -> None:
        client.add_message("s", "user", "hello")  # creates the account
        bob = connect_as("acme", "bob", role="user")
        shared = bob.add_resource(docs, to="viking://resources/shared", wait=True)
        assert client.read(f"{shared.root_uri}/readme.md") == DOCS["readme.md"]
        own = bob.add_resource(docs, to="viking://~/resources/own", wait=True)
        for uri in (own.root_uri, f"{own.root_uri}/x"):
            with pytest.raises((NotFoundError, PermissionDeniedError)):
                client.add_resource(docs, to=uri)
        with pytest.raises(NotFoundError):
            client.read(f"{own.root_uri}/readme.md")
        found = {hit.uri for hit in client.find("bowline", limit=20).resources}
        assert any(uri.startswith(shared.root_uri) for uri in found)
        assert not any(uri.startswith("viking://user/bob") for uri in found)
        assert any(hit.uri.startswith(own.root_uri) for hit in bob.find("bowline", limit=20).resources)
        with pytest.raises(NotFoundError):
            client.get_task(own.task_id)
