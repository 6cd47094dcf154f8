"""Archives and summaries in an export: the files that `viking://` names, to read; an import passes them by."""

from pathlib import Path

import pytest

import holdfast
from holdfast import Client
from holdfast.exchange import export_sessions, import_path
from holdfast.exchange.exporting import session_files

HERE = "viking://session/chat"


@pytest.fixture
def client(target: str) -> Client:
    return holdfast.connect(target)


def commit(client: Client, text: str) -> None:
    client.add_message("chat", "user", text)
    done = client.commit_session("chat")
    assert client.wait_for_task(str(done.task_id)).status == "completed"


def exported(client: Client, folder: Path) -> dict[str, bytes]:
    export_sessions(client, folder)
    place = folder / "user/default/sessions/chat"
    return {str(file.relative_to(place)): file.read_bytes() for file in place.rglob("*") if file.is_file()}


def test_what_an_export_has_of_archives_and_summaries_is_what_viking_shows(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_files, "PAGE", 2)
    with client:
        for text in ("Deploy the billing service, never on Fridays.", "Grüße an Frau Larsen", "The invoice is 1,250."):
            client.add_message("chat", "assistant", f"Before: {text}")
            client.add_message("chat", "assistant", "And more.")
            commit(client, text)
        files = exported(client, tmp_path / "out")
        listed = client.ls(HERE, recursive=True, show_all_hidden=True)
        there = {entry.rel_path: client.read(entry.uri).encode() for entry in listed if not entry.is_dir}
        for name in ("messages.jsonl", ".meta.json", ".relations.json"):
            del there[name]
        assert len(there) == 2 + 3 * 6
        assert {name: files.get(name) for name in there} == there
        assert files["messages.jsonl"].count(b"\n") == 9, "all messages are there, sealed or live: an import needs them"


def test_an_archive_that_is_not_done_is_exported_with_its_messages_alone(target: str, tmp_path: Path) -> None:
    with holdfast.connect(target, settings=holdfast.Settings(worker_threads=0)) as client:
        client.add_message("chat", "user", "hello")
        client.commit_session("chat")
        files = exported(client, tmp_path / "out")
    assert {name for name in files if name.startswith("history")} == {
        "history/archive_001/messages.jsonl",
        "history/archive_001/.meta.json",
    }
    assert ".overview.md" not in files


def test_a_session_without_archives_has_no_history(client: Client, tmp_path: Path) -> None:
    with client:
        client.add_message("chat", "user", "hello")
        assert set(exported(client, tmp_path / "out")) == {"messages.jsonl", ".meta.json", ".relations.json"}


def test_an_import_brings_the_messages_back_as_live_ones(client: Client, tmp_path: Path) -> None:
    with client, holdfast.connect(":memory:") as elsewhere:
        commit(client, "Deploy the billing service, never on Fridays.")
        client.add_message("chat", "user", "And now?")
        export_sessions(client, tmp_path / "out")
        for state in ("imported", "already there"):
            assert [row.state for row in import_path(elsewhere, tmp_path / "out").sessions] == [state]
        assert elsewhere.get_messages("chat") == client.get_messages("chat")
        assert len(elsewhere.session("chat").messages) == 2
        assert elsewhere.list_archives("chat") == []


def test_what_was_sealed_after_an_export_began_is_not_in_it(client: Client, tmp_path: Path) -> None:
    with client:
        commit(client, "one")
        info = client.get_session("chat")
        commit(client, "two")
        list(session_files.write_session(client, info, tmp_path / "chat"))
    assert [folder.name for folder in (tmp_path / "chat/history").iterdir()] == ["archive_001"]
    assert (tmp_path / "chat/messages.jsonl").read_bytes().count(b"\n") == 1
