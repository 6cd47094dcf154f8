"""Archives and summaries in an export. An import reads the messages of the archives and ignores the rest."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast
from holdfast import Client, ToolPart
from holdfast.exchange import export_sessions, file_parts, import_path
from holdfast.exchange.exporting import copying, session_copy

SESSION_URI = "viking://session/chat"


@pytest.fixture
def client(target: str) -> Client:
    return holdfast.connect(target)


def commit(client: Client, text: str) -> None:
    client.add_message("chat", "user", text)
    committed = client.commit_session("chat")
    assert client.wait_for_task(str(committed.task_id)).status == "completed"


def export_files(client: Client, folder: Path) -> dict[str, bytes]:
    export_sessions(client, folder)
    session_folder = folder / "user/default/sessions/chat"
    return {
        str(file.relative_to(session_folder)): file.read_bytes() for file in session_folder.rglob("*") if file.is_file()
    }


def test_every_exported_file_equals_the_file_of_the_viking_tree(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "PAGE_SIZE", 2)
    monkeypatch.setattr(file_parts, "PART_CHARS", 100)
    with client:
        for text in ("Deploy the billing service, never on Fridays.", "Grüße an Frau Larsen", "The invoice is 1,250."):
            client.add_message("chat", "assistant", f"Before: {text}")
            client.add_message("chat", "tool", parts=[ToolPart(tool_id="call_1", output="über\n" * 3_000)])
            commit(client, text)
        client.session_used("chat", contexts=["viking://resources/a.md"])
        client.add_message("chat", "user", "Thanks.")
        files = export_files(client, tmp_path / "out")
        listed = client.ls(SESSION_URI, recursive=True, show_all_hidden=True)
        expected = {entry.rel_path: client.read(entry.uri).encode() for entry in listed if not entry.is_dir}
        session_files, archives, files_per_archive = 7, 3, 6
        assert len(expected) == session_files + archives * files_per_archive
        assert files == expected
        assert files["messages.jsonl"].count(b"\n") == 1, "archived messages are in the files of the archives"


def test_an_unfinished_archive_is_exported_without_summaries(target: str, tmp_path: Path) -> None:
    with holdfast.connect(target, settings=holdfast.Settings(worker_threads=0)) as client:
        client.add_message("chat", "user", "hello")
        client.commit_session("chat")
        files = export_files(client, tmp_path / "out")
    assert {name for name in files if name.startswith("history")} == {
        "history/archive_001/messages.jsonl",
        "history/archive_001/.meta.json",
    }
    assert ".overview.md" not in files


def test_a_session_without_archives_has_no_history(client: Client, tmp_path: Path) -> None:
    with client:
        client.add_message("chat", "user", "hello")
        assert set(export_files(client, tmp_path / "out")) == {"messages.jsonl", ".meta.json", ".relations.json"}


def test_an_import_restores_all_messages_as_live_messages(client: Client, tmp_path: Path) -> None:
    with client, holdfast.connect(":memory:") as destination:
        commit(client, "Deploy the billing service, never on Fridays.")
        client.add_message("chat", "user", "And now?")
        export_sessions(client, tmp_path / "out")
        for state in ("imported", "already there"):
            assert [row.state for row in import_path(destination, tmp_path / "out").sessions] == [state]
        assert destination.get_messages("chat") == client.get_messages("chat")
        assert len(destination.session("chat").messages) == 2
        assert destination.list_archives("chat") == []


def test_an_archive_created_after_the_export_began_is_not_in_it(client: Client, tmp_path: Path) -> None:
    with client:
        commit(client, "one")
        client.add_message("chat", "user", "two")
        for count in session_copy.write_session(client, "chat", tmp_path / "chat"):
            if count == 2:
                client.add_message("chat", "user", "three")
                client.commit_session("chat")
    assert [folder.name for folder in (tmp_path / "chat/history").iterdir()] == ["archive_001"]
    assert (tmp_path / "chat/messages.jsonl").read_bytes().count(b"\n") == 1


def test_forks_of_archived_sessions_are_forks_again_after_an_import(client: Client, tmp_path: Path) -> None:
    """A fork has its own archives and live messages, which differ from those of its origin."""
    with client, holdfast.connect(":memory:") as destination:
        for text in ("one", "two", "three"):
            client.add_message("chat", "user", f"before {text}")
            commit(client, text)
        client.add_message("chat", "user", "live")
        for at in (2, 3, 7):
            client.fork_session("chat", at, new_session_id=f"fork-{at}")
            client.add_message(f"fork-{at}", "user", "only in the fork")
        client.wait_for_task(str(client.commit_session("fork-3").task_id))
        export_sessions(client, tmp_path / "out")
        assert {row.reason for row in import_path(destination, tmp_path / "out").sessions} == {""}
        for row in client.list_sessions():
            assert destination.get_messages(row.session_id) == client.get_messages(row.session_id)
            assert destination.get_session(row.session_id).forked_from == client.get_session(row.session_id).forked_from


def remove_an_archive(session: Path) -> None:
    shutil.rmtree(session / "history/archive_002")


def truncate_an_archive(session: Path) -> None:
    file = session / "history/archive_002/messages.jsonl"
    file.write_bytes(file.read_bytes()[:-30])


def empty_an_archive(session: Path) -> None:
    (session / "history/archive_002/messages.jsonl").write_bytes(b"")


def remove_the_file_of_an_archive(session: Path) -> None:
    (session / "history/archive_002/messages.jsonl").unlink()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (remove_an_archive, "line 1: has seq 4 instead of 2"),
        (truncate_an_archive, "archive_002/messages.jsonl, line 1: is damaged"),
        (empty_an_archive, "archive_003/messages.jsonl, line 1: has seq 3 instead of 2"),
        (remove_the_file_of_an_archive, "archive_002/messages.jsonl: is missing"),
    ],
)
def test_an_export_that_lacks_archived_messages_is_rejected(
    tmp_path: Path, damage: Callable[[Path], None], reason: str
) -> None:
    with holdfast.connect(":memory:") as client:
        for text in ("one", "two", "three"):
            commit(client, text)
        client.add_message("chat", "user", "live")
        export_sessions(client, tmp_path / "out")
    damage(tmp_path / "out/user/default/sessions/chat")
    with holdfast.connect(":memory:") as destination:
        (row,) = import_path(destination, tmp_path / "out").sessions
        assert (row.state, destination.list_sessions()) == ("failed", [])
        assert reason in row.reason
