"""Every operation declares what limits the size of its answer."""

from collections.abc import Iterator
from typing import Any, get_type_hints

import msgspec
import pytest

from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.engine.gate.streams import StreamedResult, as_result
from holdfast.model.identity import Principal
from holdfast.model.messages import Message, NewMessage
from holdfast.model.sessions import Event, SkillUse
from holdfast.ops.commits import CommitSession, ExpandContext, GetSessionArchive, GetSessionContext
from holdfast.ops.sessions import AddMessages, GetMessages, GetSession, ListSessions, ListUsage, ReadEvents, RecordUse
from holdfast.ops.system import WaitUntilIdle
from holdfast.ops.table import OPERATIONS, Operation, fields_of, operation
from holdfast.ops.tree.files import ListFiles, ReadFile, ShowTree
from holdfast.store.drivers.sqlite.database import SqliteDatabase
from holdfast.store.read_memory import PAGE_BYTES, LargeReadError

ALICE = Principal("acme", "alice", "root")
MESSAGES = 60
SESSIONS = 600
MAX_RESPONSE_BYTES = 50_000
SESSIONS_URI = "viking://session"
EXAMPLES: dict[type, Operation[Any]] = {
    GetMessages: GetMessages(session_id="live", limit=50),
    ReadEvents: ReadEvents(session_id="live", limit=50),
    ListUsage: ListUsage(session_id="live"),
    ListSessions: ListSessions(),
    ListFiles: ListFiles(uri=SESSIONS_URI, recursive=True, show_all_hidden=True),
    ShowTree: ShowTree(uri=SESSIONS_URI, show_all_hidden=True),
    ReadFile: ReadFile(uri=f"{SESSIONS_URI}/live/messages.jsonl"),
    GetSessionContext: GetSessionContext(session_id="live"),
    GetSessionArchive: GetSessionArchive(session_id="archived", archive_id="archive_001"),
    ExpandContext: ExpandContext(session_id="archived", ref="archive_001", token_budget=10_000_000),
}
"""An operation of each kind with a long answer."""
STREAMED = [cls for cls, entry in OPERATIONS.items() if entry.answer == "streamed"]
PAGED = [cls for cls, entry in OPERATIONS.items() if entry.answer == "paged"]


@pytest.mark.parametrize("cls", OPERATIONS, ids=lambda cls: cls.__name__)
def test_an_answer_with_messages_is_not_bounded(cls: type[Operation[Any]]) -> None:
    entry = OPERATIONS[cls]
    hints = get_type_hints(entry.returns) if isinstance(entry.returns, type) and entry.returns is not str else {}
    has_messages = any(hint in (list[Message], list[Event]) for hint in hints.values())
    assert not has_messages or entry.answer != "bounded"


@pytest.mark.parametrize("cls", PAGED, ids=lambda cls: cls.__name__)
def test_a_paged_answer_has_a_cursor_and_its_operation_a_limit(cls: type[Operation[Any]]) -> None:
    assert {"next_seq", "has_more"} & set(OPERATIONS[cls].returns.__struct_fields__)
    assert "limit" in cls.__struct_fields__


def test_an_operation_with_a_cursor_must_declare_its_answer() -> None:
    class Probe(Operation[list[int]], frozen=True, kw_only=True):
        limit: int

    with pytest.raises(TypeError, match="Probe has the field limit but no answer; use bounded, paged, streamed"):
        operation("GET /probes")(Probe)
    with pytest.raises(TypeError, match="Probe must define following and join if its answer is paged, and only then"):
        operation("GET /probes", answer="paged")(Probe)
    assert Probe not in OPERATIONS


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """An engine with sessions that are larger than a page."""
    settings = Settings(max_response_bytes=MAX_RESPONSE_BYTES, worker_threads=1)
    engine = Engine(SqliteDatabase(str(tmp_path_factory.mktemp("answers") / "holdfast.db")), settings)
    engine.start_workers(polls=False)
    for session_id in ("live", "archived"):
        messages = [NewMessage(role="user", content=f"{number} {'x' * 20_000}") for number in range(MESSAGES)]
        engine.call(ALICE, AddMessages(session_id=session_id, messages=messages))
    for _ in range(MESSAGES):
        skill = SkillUse("viking://skills/a", input="x" * 20_000)
        engine.call(ALICE, RecordUse(session_id="live", skill=skill))
    for number in range(SESSIONS):
        engine.call(ALICE, GetSession(session_id=f"{number}{'n' * 100}", auto_create=True))
    engine.call(ALICE, CommitSession(session_id="archived"))
    engine.call(ALICE, WaitUntilIdle(timeout=60))
    yield engine
    engine.close()


@pytest.mark.parametrize("cls", PAGED, ids=lambda cls: cls.__name__)
def test_a_paged_answer_ends_at_the_size_limit_and_the_rest_follows(engine: Engine, cls: type[Operation[Any]]) -> None:
    assert cls in EXAMPLES, f"add an example of {cls.__name__} with a long answer"
    op = EXAMPLES[cls]
    whole = engine.call(ALICE, op)
    result, pages = read_limited(engine, op), 1
    assert len(msgspec.json.encode(result)) < 2 * MAX_RESPONSE_BYTES
    while (following := op.following(result)) is not None:
        result, pages = op.join(result, read_limited(engine, following)), pages + 1
    assert result == whole
    assert pages > 1


@pytest.mark.parametrize("cls", STREAMED, ids=lambda cls: cls.__name__)
def test_a_streamed_answer_has_several_pages(engine: Engine, cls: type[Operation[Any]]) -> None:
    assert cls in EXAMPLES, f"add an example of {cls.__name__} with a long answer"
    call = engine.prepare(engine.check(ALICE, cls, fields_of(EXAMPLES[cls])))
    try:
        streamed: Any = call.run_transaction(PAGE_BYTES)
    except LargeReadError as error:
        streamed = call.run_transaction(error.size)
    assert isinstance(streamed, StreamedResult)


def read_limited(engine: Engine, op: Operation[Any]) -> Any:
    """Read as a server does, and put the pages of a streamed result together."""
    call = engine.prepare(engine.check(ALICE, type(op), fields_of(op)))
    result: Any = call.run_transaction(PAGE_BYTES)
    if not isinstance(result, StreamedResult):
        return result
    page, items = result.first, list(result.first.items)
    while page.read_next is not None:
        page = call.read_next(page, PAGE_BYTES)
        items += page.items
    return as_result(result.result, result.field, msgspec.structs.replace(page, items=items))
