"""The contract of processing: a written file gets a summary and parts, and so do the folders above it."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError

GUIDE = "# Mooring\n\nA bowline holds a boat.\n\n" + "".join(
    f"## Berth {number}\n\n"
    + f"The berth {number} is {number * 3} metres long and has a yellow bollard. " * 20
    + "\n\n"
    for number in range(1, 5)
)


class ProcessingContract:
    def test_a_written_file_gets_a_summary_and_parts(self, client: Any) -> None:
        client.write("viking://resources/harbour/guide.md", GUIDE, wait=True)
        uri = "viking://resources/harbour/guide.md"
        abstract, overview = client.abstract(uri), client.overview(uri)
        assert 0 < len(abstract) <= len(overview) <= len(GUIDE)
        assert "bowline" in abstract
        assert "Berth 3" in overview
        parts = [client.read(f"{uri}#{number}") for number in range(1, 5)]
        assert "".join(parts) == GUIDE
        assert parts[2].startswith("## Berth 3")
        with pytest.raises(NotFoundError, match="#99"):
            client.read(f"{uri}#99")

    def test_the_folders_above_a_file_are_summarised_from_their_entries(self, client: Any) -> None:
        client.write("viking://resources/a/b/c/notes.txt", "The keeper of the lighthouse is Ada.")
        client.write("viking://resources/a/plan.txt", "Paint the tower in May.")
        client.wait_until_idle()
        assert "lighthouse" in client.abstract("viking://resources/a/b/c")
        assert "Ada" in client.overview("viking://resources/a/b")
        assert "plan.txt" in client.abstract("viking://resources/a")
        client.write("viking://resources/a/b/c/notes.txt", "The keeper is Bob now.")
        client.rm("viking://resources/a/plan.txt")
        client.wait_until_idle()
        assert "Bob" in client.abstract("viking://resources/a/b/c")
        assert "Ada" not in client.overview("viking://resources/a/b")
        assert "plan.txt" not in client.overview("viking://resources/a")
        assert client.read("viking://resources/a/b/.abstract.md") == client.abstract("viking://resources/a/b")

    def test_every_listed_folder_has_a_summary(self, client: Any) -> None:
        client.mkdir("viking://resources/empty")
        client.add_message("chat", "user", "hello")
        client.write("viking://~/resources/own.txt", "mine")
        client.wait_until_idle()
        listed = ["viking://", *client.tree("viking://", simple=True, level_limit=5)]
        for uri in listed:
            assert isinstance(client.abstract(uri), str)
            assert len(client.abstract(uri)) <= len(client.overview(uri)) or "chat" in uri

    def test_a_file_that_cannot_be_parsed_keeps_its_bytes_and_says_why(self, client: Any) -> None:
        uri = "viking://resources/broken.pdf"
        client.write(uri, "%PDF-1.7 and nothing else", wait=True)
        assert client.read_bytes(uri) == b"%PDF-1.7 and nothing else"
        assert client.stat(uri).version == 1
        assert client.abstract(uri)

    def test_a_moved_a_removed_and_a_restored_file_keep_their_summaries(self, client: Any) -> None:
        client.write("viking://resources/x/guide.md", GUIDE, wait=True)
        abstract = client.abstract("viking://resources/x/guide.md")
        client.mv("viking://resources/x", "viking://~/resources/y")
        assert client.abstract("viking://~/resources/y/guide.md") == abstract
        client.rm("viking://~/resources/y", recursive=True)
        client.wait_until_idle()
        client.restore("viking://~/resources/y")
        client.wait_until_idle()
        assert client.abstract("viking://~/resources/y/guide.md") == abstract
        assert client.read("viking://~/resources/y/guide.md#1").startswith("# Mooring")

    def test_files_are_indexed_again_on_request(self, client: Any) -> None:
        for number in range(3):
            client.write(f"viking://resources/again/{number}.md", f"# File {number}\n\nText {number}.")
        client.wait_until_idle()
        result = client.reindex("viking://resources/again", mode="semantic_and_vectors")
        assert (result.status, result.scanned_records, result.object_type) == ("completed", 4, "resource")
        assert client.get_task(result.task_id).status == "completed"
        assert client.abstract("viking://resources/again/1.md") == "File 1: Text 1."
        started = client.reindex("viking://resources/again/0.md", wait=False)
        assert started.status == "accepted"
        client.wait_for_task(started.task_id)
        with pytest.raises(NotFoundError, match="nowhere"):
            client.reindex("viking://resources/nowhere")

    def test_names_of_folders_of_the_tree_are_not_given_to_users(self, client: Any) -> None:
        client.create_session("s")  # also creates the account
        for name in ("memories", "sessions", "skills", "resources", "peers"):
            with pytest.raises(InvalidArgumentError, match="folder of the tree"):
                client.admin.create_user("acme", name)
            with pytest.raises(InvalidArgumentError, match="folder of the tree"):
                client.admin.create_account("globex2", name)

    def test_the_folder_of_a_user_is_a_part_of_the_old_address_of_a_session(self, client: Any) -> None:
        client.add_message("trip", "user", "hello")
        assert client.stat("viking://session/alice/trip").uri == "viking://user/alice/sessions/trip"
        assert client.ls("viking://session/alice", simple=True) == ["viking://user/alice/sessions/trip"]
        client.create_session("alice")
        assert client.stat("viking://session/alice").uri == "viking://user/alice/sessions/alice"

    def test_a_folder_is_not_read_and_a_file_not_listed(self, client: Any) -> None:
        client.write("viking://resources/one/file.txt", "text")
        with pytest.raises(FailedPreconditionError, match="folder"):
            client.read("viking://resources/one")
        with pytest.raises(FailedPreconditionError, match="file"):
            client.ls("viking://resources/one/file.txt")

    def test_private_files_are_seen_by_their_owner_alone(self, client: Any, connect_as: Callable[..., Any]) -> None:
        client.write("viking://~/resources/diary.txt", "secret", wait=True)
        client.write("viking://resources/notice.txt", "for all", wait=True)
        bob, stranger = connect_as("acme", "bob"), connect_as("globex", "alice")
        assert bob.read("viking://resources/notice.txt") == "for all"
        for other in (bob, stranger):
            with pytest.raises(NotFoundError):
                other.read("viking://user/alice/resources/diary.txt")
            with pytest.raises(NotFoundError):
                other.history("viking://user/alice/resources/diary.txt")
        with pytest.raises(NotFoundError):
            bob.write("viking://user/alice/resources/diary.txt", "changed")
        assert stranger.ls("viking://resources") == []

    def test_a_file_is_found_before_the_folder_whose_summary_repeats_its_words(self, client: Any) -> None:
        for number in range(5):
            client.write(f"viking://resources/words/f{number}.md", f"# Note {number}\n\nThe word is zqx{number}vv.\n")
        client.wait_until_idle()
        for number in range(5):
            hits = client.find(f"zqx{number}vv").resources
            assert hits[0].uri == f"viking://resources/words/f{number}.md"
            assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
            assert abs(sum(reason.share for reason in hits[0].reasons) - hits[0].score) < 1e-9
