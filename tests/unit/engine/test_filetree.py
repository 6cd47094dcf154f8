"""The `viking://` tree as a view of rows: which files there are in which state, and what it costs to look."""

from typing import Any

import msgspec
import pytest

from holdfast.engine import Engine
from holdfast.engine.tree import nodes
from holdfast.errors import TooLargeError
from holdfast.model.files import FilePage
from holdfast.model.identity import Principal
from holdfast.model.parts import ToolPart
from holdfast.ops.commits import CommitSession
from holdfast.ops.files import ListFiles, ReadFile, ShowTree
from holdfast.ops.sessions import AddMessages, RecordUse
from holdfast.store.database import Database
from holdfast.store.tables import archives
from holdfast.store.tables import messages as stored_messages
from holdfast.store.tables import sessions as stored_sessions

ALICE = Principal("acme", "alice", "root")
HERE = "viking://session/chat"
ARCHIVE = f"{HERE}/history/archive_001"


@pytest.fixture
def engine(database: Database) -> Engine:
    """Nobody does its background work."""
    return Engine(database)


def add(engine: Engine, count: int, session_id: str = "chat") -> None:
    tool = [msgspec.to_builtins(ToolPart(tool_id="c1", tool_name="t", output="x", status="completed"))]
    said: Any = [{"role": "user", "parts": tool} for _ in range(count)]
    engine.call(ALICE, AddMessages(session_id=session_id, messages=said))


def names(engine: Engine, uri: str) -> set[str]:
    page: FilePage = engine.call(ALICE, ListFiles(uri=uri, show_all_hidden=True))
    return {entry.name for entry in page.entries if not isinstance(entry, str)}


def mark(engine: Engine, state: Any, failure: str | None = None) -> None:
    def work(tx: Any) -> None:
        session = stored_sessions.find(tx, "alice", "chat")
        assert session is not None
        archives.mark(tx, session.log_id, 1, state, ended_at=engine.clock(), failure=failure)

    engine.db.write("acme", work)


def test_an_archive_has_its_messages_at_once_and_nothing_that_is_yet_to_be_made(engine: Engine) -> None:
    add(engine, 2)
    engine.call(ALICE, CommitSession(session_id="chat"))
    assert names(engine, ARCHIVE) == {"messages.jsonl", ".meta.json"}
    assert engine.call(ALICE, ReadFile(uri=f"{ARCHIVE}/messages.jsonl")).count("\n") == 2
    assert engine.call(ALICE, ReadFile(uri=f"{HERE}/messages.jsonl")) == ""
    assert ".abstract.md" not in names(engine, HERE)


def test_a_failed_archive_says_why_and_a_cancelled_one_has_nothing_to_say(engine: Engine) -> None:
    add(engine, 1)
    engine.call(ALICE, CommitSession(session_id="chat"))
    mark(engine, "failed", '{"error":"no model","attempts":10}')
    assert names(engine, ARCHIVE) == {"messages.jsonl", ".meta.json", ".failed.json"}
    told = msgspec.json.decode(engine.call(ALICE, ReadFile(uri=f"{ARCHIVE}/.failed.json")))
    assert told == {"error": "no model", "attempts": 10}
    mark(engine, "cancelled")
    assert names(engine, ARCHIVE) == {"messages.jsonl", ".meta.json"}


def test_to_list_a_session_reads_none_of_its_messages(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    add(engine, 50)
    engine.call(ALICE, CommitSession(session_id="chat"))
    add(engine, 50)

    def read(*_args: object) -> None:
        raise AssertionError("messages were read")

    monkeypatch.setattr(stored_messages, "read", read)
    shown = engine.call(ALICE, ShowTree(uri="viking://", level_limit=9, show_all_hidden=True)).entries
    assert len(shown) == 14
    with pytest.raises(AssertionError, match="were read"):
        engine.call(ALICE, ReadFile(uri=f"{HERE}/messages.jsonl"))


def test_a_listing_looks_at_no_more_sessions_than_it_shows(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "PAGE", 2)
    for number in range(6):
        add(engine, 1, f"chat_{number}")
    looked_at: list[str] = []
    session_folder = nodes._session

    def looking(tx: Any, session: Any) -> Any:
        looked_at.append(session.session_id)
        return session_folder(tx, session)

    monkeypatch.setattr(nodes, "_session", looking)
    page = engine.call(ALICE, ListFiles(uri="viking://session", limit=1))
    assert (len(page.entries), page.has_more, looked_at) == (1, True, ["chat_5", "chat_4"])


def test_what_is_too_long_to_be_read_at_once_is_refused_and_can_be_read_in_pieces(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(engine, 4)
    engine.call(ALICE, RecordUse(session_id="chat", contexts=[f"viking://{n}" for n in range(4)]))
    monkeypatch.setattr(nodes, "MAX_LINES", 3)
    remedies = {"messages.jsonl": "in pieces", ".relations.json": "list the uses", "tools/c1/tool.json": "the messages"}
    for name, remedy in remedies.items():
        with pytest.raises(TooLargeError, match=remedy):
            engine.call(ALICE, ReadFile(uri=f"{HERE}/{name}"))
    pieces = [engine.call(ALICE, ReadFile(uri=f"{HERE}/messages.jsonl", offset=n, limit=2)) for n in (0, 2, 4)]
    assert [piece.count("\n") for piece in pieces] == [2, 2, 0]
