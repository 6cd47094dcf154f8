"""The `viking://` tree: which files exist in which state, and how many rows a listing reads."""

from typing import Any

import msgspec
import pytest

from holdfast.engine import Engine
from holdfast.engine.tree import reading, session_nodes
from holdfast.errors import TooLargeError
from holdfast.model.identity import Principal
from holdfast.model.parts import ToolPart
from holdfast.model.tree.files import FilePage
from holdfast.ops.commits import CommitSession
from holdfast.ops.sessions import AddMessages, RecordUse
from holdfast.ops.tree.files import ListFiles, ReadFile, ShowTree
from holdfast.store.checked import salvage
from holdfast.store.database import Database
from holdfast.store.tables import archives
from holdfast.store.tables import sessions as stored_sessions

ALICE = Principal("acme", "alice", "root")
SESSION = "viking://session/chat"
ARCHIVE = f"{SESSION}/history/archive_001"


@pytest.fixture
def engine(database: Database) -> Engine:
    """An engine without workers: commits stay pending."""
    return Engine(database)


def add(engine: Engine, count: int, session_id: str = "chat") -> None:
    tool = [msgspec.to_builtins(ToolPart(tool_id="c1", tool_name="t", output="x", status="completed"))]
    messages: Any = [{"role": "user", "parts": tool} for _ in range(count)]
    engine.call(ALICE, AddMessages(session_id=session_id, messages=messages))


def names(engine: Engine, uri: str) -> set[str]:
    page: FilePage = engine.call(ALICE, ListFiles(uri=uri, show_all_hidden=True))
    return {entry.name for entry in page.entries if not isinstance(entry, str)}


def set_archive_state(engine: Engine, state: Any, failure: str | None = None) -> None:
    def work(tx: Any) -> None:
        session = stored_sessions.find(tx, "alice", "chat")
        assert session is not None
        archives.set_state(tx, session.log_id, 1, state, ended_at=engine.clock(), failure=failure)

    engine.db.write("acme", work)


def test_a_pending_archive_has_its_messages_but_no_summary_files(engine: Engine) -> None:
    add(engine, 2)
    engine.call(ALICE, CommitSession(session_id="chat"))
    assert names(engine, ARCHIVE) == {"messages.jsonl", ".meta.json"}
    assert engine.call(ALICE, ReadFile(uri=f"{ARCHIVE}/messages.jsonl")).count("\n") == 2
    assert engine.call(ALICE, ReadFile(uri=f"{SESSION}/messages.jsonl")) == ""
    assert ".abstract.md" not in names(engine, SESSION)


def test_a_failed_archive_has_a_file_with_the_reason_and_a_cancelled_one_has_none(engine: Engine) -> None:
    add(engine, 1)
    engine.call(ALICE, CommitSession(session_id="chat"))
    set_archive_state(engine, "failed", '{"error":"no model","attempts":10}')
    assert names(engine, ARCHIVE) == {"messages.jsonl", ".meta.json", ".failed.json"}
    failure = msgspec.json.decode(engine.call(ALICE, ReadFile(uri=f"{ARCHIVE}/.failed.json")))
    assert failure == {"error": "no model", "attempts": 10}
    set_archive_state(engine, "cancelled")
    assert names(engine, ARCHIVE) == {"messages.jsonl", ".meta.json"}


def test_listing_a_session_reads_no_messages(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    add(engine, 50)
    engine.call(ALICE, CommitSession(session_id="chat"))
    add(engine, 50)

    def read(*_args: object) -> None:
        raise AssertionError("messages were read")

    monkeypatch.setattr(salvage, "decode", read)
    entries = engine.call(ALICE, ShowTree(uri="viking://", level_limit=9, show_all_hidden=True)).entries
    assert {"messages.jsonl", ".meta.json", "archive_001"} <= {
        entry.name for entry in entries if not isinstance(entry, str)
    }
    with pytest.raises(AssertionError, match="were read"):
        engine.call(ALICE, ReadFile(uri=f"{SESSION}/messages.jsonl"))


def test_a_listing_reads_only_the_sessions_of_its_page(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_nodes, "PAGE_SIZE", 2)
    for number in range(6):
        add(engine, 1, f"chat_{number}")
    sessions_read: list[str] = []
    session_folder = session_nodes._session_folder

    def recording(tx: Any, session: Any, uri: str) -> Any:
        sessions_read.append(session.session_id)
        return session_folder(tx, session, uri)

    monkeypatch.setattr(session_nodes, "_session_folder", recording)
    page = engine.call(ALICE, ListFiles(uri="viking://session", limit=1))
    assert (len(page.entries), page.has_more, sessions_read) == (1, True, ["chat_5", "chat_4"])


def test_a_read_of_too_many_lines_is_rejected_and_works_in_several_parts(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(engine, 4)
    engine.call(ALICE, RecordUse(session_id="chat", contexts=[f"viking://{n}" for n in range(4)]))
    monkeypatch.setattr(reading, "MAX_LINES", 3)
    for name in ("messages.jsonl", ".relations.json", "tools/c1/tool.json", ".meta.json"):
        with pytest.raises(TooLargeError, match="in several parts"):
            engine.call(ALICE, ReadFile(uri=f"{SESSION}/{name}"))
    parts = [engine.call(ALICE, ReadFile(uri=f"{SESSION}/messages.jsonl", offset=n, limit=2)) for n in (0, 2, 4)]
    assert [part.count("\n") for part in parts] == [2, 2, 0]
