"""Indexing in the background: each message becomes one document of the owner of its session, and leaves with it."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.engine.recall import indexing, pending
from holdfast.engine.recall.document_kinds import DOCUMENT_KINDS, DocumentKind, PendingDocument
from holdfast.engine.recall.index_kind import start_indexing
from holdfast.engine.sessions import messages as session_messages
from holdfast.errors import NotFoundError
from holdfast.model.identity import OPERATOR, Principal
from holdfast.model.messages import NewMessage
from holdfast.ops.administration import DeleteAccount
from holdfast.ops.commits import CommitSession, ResummariseSession
from holdfast.ops.sessions import AddMessage, AddMessages, DeleteSession, ForkSession, GetMessages
from holdfast.ops.sharing import TransferSession
from holdfast.ops.system import WaitUntilIdle
from holdfast.ops.tasks import GetTask, ListTasks
from holdfast.store.database import Database, Tx
from holdfast.store.tables import unindexed
from holdfast.store.tables.documents import NOBODY
from holdfast.testing.faults.verification import INCONSISTENCIES, TEXT_INDEX_DIFFERENCES
from holdfast.testing.faults.watching import wait_for

ALICE = Principal("acme", "alice", "root", internal_id="alice")
BOB = Principal("acme", "bob", "root", internal_id="bob")
FIELDS = "owner_id, kind, number, level, role, speaker, flags, dates, words, content_id"


@pytest.fixture
def engine(database: Database) -> Engine:
    """An engine that runs no tasks by itself."""
    return Engine(database, Settings(worker_threads=0))


def add(engine: Engine, session_id: str, *texts: str, **fields: Any) -> None:
    for text in texts:
        engine.call(ALICE, AddMessage(session_id=session_id, role="user", content=text, **fields))


def run_workers(engine: Engine) -> None:
    worker = Engine(engine.db, Settings(worker_threads=1))
    worker.start_workers(polls=False)
    worker.call(OPERATOR, WaitUntilIdle())
    worker.stop_workers()
    engine.db.read("*", _check_consistency)


def _check_consistency(tx: Tx) -> None:
    for problem, sql in INCONSISTENCIES.items():
        if "document" in problem or "pending" in problem:
            assert not tx.all(sql, ("acme",)), problem
    assert not tx.all(TEXT_INDEX_DIFFERENCES[tx.dialect.name])


def rows(engine: Engine, sql: str, *params: Any) -> list[Any]:
    return engine.db.read("acme", lambda tx: tx.all(sql, params))


def documents_of(engine: Engine, fields: str = "owner_id, kind, number") -> list[Any]:
    return rows(engine, f"SELECT {fields} FROM documents WHERE account_id = 'acme' ORDER BY log_id, kind, number")


def unindexed_logs(engine: Engine) -> list[Any]:
    return rows(engine, "SELECT log_id, is_stale FROM unindexed WHERE account_id = 'acme'")


def found(engine: Engine, session_id: str, q: str, principal: Principal = ALICE) -> list[int]:
    return [message.seq for message in engine.call(principal, GetMessages(session_id=session_id, q=q)).messages]


def test_a_message_becomes_a_document_with_its_terms_dates_role_and_speaker(engine: Engine) -> None:
    at = datetime(2026, 3, 24, 9, 10, 11, tzinfo=UTC)
    add(engine, "s", "Maria Lopez: is the web_search down?", created_at=at)
    engine.call(
        ALICE,
        AddMessage(
            session_id="s",
            role="assistant",
            content="Since 2026-03-20.",
            peer_id="Helper",
            created_at=at,
        ),
    )
    run_workers(engine)
    first, second = documents_of(engine, FIELDS)
    words = "maria lopez is the web search down web_search"
    assert first == ("alice", "message", 1, 2, "user", "maria lopez", 1, "[]", words, None)
    assert second[:7] == ("alice", "message", 2, 2, "assistant", "helper", 0)
    assert second[7] == "[[20532,20532]]"
    assert documents_of(engine, "created_at")[0] == (1_774_343_411_000_000,)
    statistics = rows(engine, "SELECT removed_version, documents, words FROM index_owners")
    assert statistics == [(0, 2, len(words.split()) + len(second[8].split()))]


def test_a_finished_archive_becomes_a_document_and_again_when_it_is_summarised_again(engine: Engine) -> None:
    add(engine, "s", "We decided to paint the harbour wall blue.", "The order is ORD-4711.")
    engine.call(ALICE, CommitSession(session_id="s"))
    run_workers(engine)
    (overview,) = [row for row in documents_of(engine, f"version, {FIELDS}") if row[2] == "overview"]
    assert overview[1:6] == ("alice", "overview", 1, 1, "")
    assert "ord-4711" in overview[9].split()
    engine.call(ALICE, ResummariseSession(session_id="s"))
    run_workers(engine)
    (again,) = [row for row in documents_of(engine, f"version, {FIELDS}") if row[2] == "overview"]
    assert (again[0] > overview[0], again[1:]) == (True, overview[1:])
    engine.call(ALICE, ForkSession(session_id="s", at=2, new_session_id="fork"))
    run_workers(engine)
    assert [row[1:] for row in documents_of(engine)].count(("overview", 1)) == 2


def test_an_append_registers_its_session_only_if_nothing_of_it_waits(engine: Engine) -> None:
    add(engine, "s", "one")
    ((log_id, is_stale),) = unindexed_logs(engine)
    due = rows(engine, "SELECT due_at FROM unindexed")
    add(engine, "s", "two")
    assert (rows(engine, "SELECT due_at FROM unindexed"), is_stale) == (due, 0)
    run_workers(engine)
    assert unindexed_logs(engine) == []
    add(engine, "s", "three")
    assert unindexed_logs(engine) == [(log_id, 0)]


def test_a_message_is_found_by_the_next_call_without_any_worker(engine: Engine) -> None:
    for number in range(1, 5):
        add(engine, "s", f"word{number} again")
        assert (found(engine, "s", f"word{number}"), found(engine, "s", "again")) == ([number], [*range(1, number + 1)])


def test_a_search_indexes_the_messages_of_its_session_itself_if_many_are_pending(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_messages, "MAX_PENDING", 5)
    monkeypatch.setattr(indexing, "SLICE_DOCUMENTS", 3)
    add(engine, "s", *(f"word{number}" for number in range(1, 8)))
    add(engine, "other", "word1", "word2")
    engine.call(ALICE, ForkSession(session_id="s", at=7, new_session_id="fork"))
    assert found(engine, "fork", "word7") == [7]
    assert documents_of(engine) == [("alice", "message", number) for number in range(1, 8)]
    assert found(engine, "other", "word2") == [2]
    assert len(documents_of(engine)) == 7


def test_documents_of_a_deleted_session_leave_with_it_and_forks_keep_what_they_share(engine: Engine) -> None:
    add(engine, "s", "fox one", "fox two", "fox three")
    add(engine, "kept", "hen")
    run_workers(engine)
    engine.call(ALICE, ForkSession(session_id="s", at=2, new_session_id="fork"))
    add(engine, "fork", "fox four")
    engine.call(ALICE, DeleteSession(session_id="s"))
    assert found(engine, "fork", "fox") == [1, 2, 3]
    assert sorted(documents_of(engine)) == [("alice", "message", 1), ("alice", "message", 1), ("alice", "message", 2)]
    run_workers(engine)
    kept = [(NOBODY, "message", 1), (NOBODY, "message", 2), ("alice", "message", 1), ("alice", "message", 3)]
    assert sorted(documents_of(engine)) == kept
    assert found(engine, "fork", "fox") == [1, 2, 3]
    engine.call(ALICE, DeleteSession(session_id="fork"))
    run_workers(engine)
    assert documents_of(engine) == [("alice", "message", 1)]
    assert unindexed_logs(engine) == []


def test_a_transferred_session_is_indexed_again_for_its_new_owner(engine: Engine) -> None:
    add(engine, "s", "fox one", "fox two")
    run_workers(engine)
    engine.call(BOB, AddMessage(session_id="t", role="user", content="hen"))
    engine.call(ALICE, TransferSession(session_id="s", user_id="bob"))
    ((_, is_stale),) = [row for row in unindexed_logs(engine) if row[1]]
    assert (is_stale, found(engine, "s", "fox", BOB)) == (1, [1, 2])
    engine.call(BOB, AddMessage(session_id="s", role="user", content="fox three"))
    assert found(engine, "s", "fox", BOB) == [1, 2, 3]
    run_workers(engine)
    assert sorted(documents_of(engine)) == [("bob", "message", number) for number in (1, 1, 2, 3)]
    assert found(engine, "s", "fox", BOB) == [1, 2, 3]


def test_deleting_an_account_deletes_its_documents_and_leaves_those_of_others(engine: Engine) -> None:
    add(engine, "s", "fox")
    other = Principal("rival", "alice", "root", internal_id="alice")
    engine.call(other, AddMessage(session_id="s", role="user", content="fox"))
    run_workers(engine)
    engine.call(OPERATOR, DeleteAccount(account_id="acme"))
    table = "document_words" if engine.db.read("*", lambda tx: bool(tx.dialect.lock_row)) else "document_text_docsize"
    count = f"SELECT (SELECT COUNT(*) FROM documents), (SELECT COUNT(*) FROM {table})"
    assert engine.db.read("*", lambda tx: tx.all(count)) == [(1, 1)]
    assert found(engine, "s", "fox", other) == [1]


def test_a_slice_that_another_process_has_written_meanwhile_is_not_written_again(engine: Engine) -> None:
    add(engine, "s", "one", "two")
    read, write = partial(engine.db.read, "acme"), partial(engine.db.write, "acme")
    logs = read(lambda tx: unindexed.find(tx, [row[0] for row in unindexed_logs(engine)]))

    def write_after_others(transaction: Callable[[Tx], Any]) -> Any:
        indexing.index_slice(read, write, logs)
        add(engine, "s", "three")
        return write(transaction)

    late = indexing.index_slice(read, write_after_others, logs)
    assert (late.documents, late.unfinished) == (0, [logs[0].log_id])
    run_workers(engine)
    assert documents_of(engine) == [("alice", "message", number) for number in (1, 2, 3)]


def test_a_session_that_is_deleted_while_a_slice_is_analysed_leaves_no_document(engine: Engine) -> None:
    add(engine, "s", "one", "two")
    read, write = partial(engine.db.read, "acme"), partial(engine.db.write, "acme")
    logs = read(lambda tx: unindexed.find(tx, [row[0] for row in unindexed_logs(engine)]))

    def write_after_deletion(transaction: Callable[[Tx], Any]) -> Any:
        engine.call(ALICE, DeleteSession(session_id="s"))
        return write(transaction)

    indexing.index_slice(read, write_after_deletion, logs)
    assert (documents_of(engine), unindexed_logs(engine)) == ([], [])


def test_long_logs_and_many_logs_are_indexed_in_small_transactions(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "SLICE_DOCUMENTS", 7)
    texts = [NewMessage(role="user", content=f"word{number}") for number in range(30)]
    engine.call(ALICE, AddMessages(session_id="long", messages=texts))
    for number in range(25):
        add(engine, f"s{number}", "short")
    run_workers(engine)
    assert len(documents_of(engine)) == 55
    per_version = rows(engine, "SELECT COUNT(*) FROM documents WHERE account_id = 'acme' GROUP BY version")
    assert max(count for (count,) in per_version) <= 7


def test_a_large_message_is_indexed_in_part_and_does_not_delay_others(engine: Engine) -> None:
    add(engine, "s", "small", "large " * 300_000 + "end", "small again")
    run_workers(engine)
    assert [count for (count,) in documents_of(engine, "word_count")] == [1, 2_000, 2]
    assert found(engine, "s", "large") == [2]


def test_the_task_of_an_account_is_visible_to_the_operator_only_and_used_again(engine: Engine) -> None:
    add(engine, "s", "one")
    for _ in range(3):
        engine.db.write("acme", lambda tx: start_indexing(tx, engine.new_context()))
    (task,) = engine.call(OPERATOR, ListTasks(task_type="index"))
    assert (task.task_id, task.status, task.account_id) == ("task_index_acme", "pending", "acme")
    assert engine.call(ALICE, ListTasks(task_type="index")) == []
    with pytest.raises(NotFoundError):
        engine.call(ALICE, GetTask(task_id=task.task_id))
    run_workers(engine)
    assert documents_of(engine) == [("alice", "message", 1)]
    engine.delete_expired()
    assert engine.call(OPERATOR, ListTasks(task_type="index")) == []


def test_after_a_failure_everything_is_indexed_by_a_later_task(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise OSError("the disk is full")

    add(engine, "s", "one")
    settings = Settings(worker_threads=1, task_backoff_seconds=0.001, task_attempts=2)
    with monkeypatch.context() as patched:
        patched.setattr(indexing, "index_slice", fail)
        worker = Engine(engine.db, settings)
        engine.db.write("*", lambda tx: unindexed.make_due(tx, None))
        worker.start_workers(polls=False)
        wait_for(lambda: [task.status for task in engine.call(OPERATOR, ListTasks(task_type="index"))] == ["failed"])
        worker.stop_workers()
    assert rows(engine, "SELECT due_at > holdfast_now() + 60000000 FROM unindexed") == [(True,)]
    run_workers(engine)
    assert documents_of(engine) == [("alice", "message", 1)]


def test_a_new_kind_of_documents_needs_one_entry(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_titles(tx: Tx, log: Any, _limit: int) -> list[PendingDocument]:
        sql = "SELECT 1 FROM documents WHERE account_id = ? AND log_id = ? AND kind = 'title'"
        if tx.one(sql, (tx.account, log.log_id)):
            return []
        return [PendingDocument(number=1, created_at=5, text="A Title")]

    kind = DocumentKind(
        level=0, read_pending=read_titles, read_texts=lambda *_: {}, uri=lambda session, _number: f"{session}/title"
    )
    monkeypatch.setitem(DOCUMENT_KINDS, "title", kind)
    add(engine, "s", "one")
    run_workers(engine)
    assert documents_of(engine) == [("alice", "message", 1), ("alice", "title", 1)]
    assert documents_of(engine, "level, words")[1] == (0, "a title")


def test_logs_are_indexed_at_once_until_a_deadline(engine: Engine) -> None:
    add(engine, "s", "one")
    add(engine, "t", "two")
    log_ids = [row[0] for row in unindexed_logs(engine)]
    pending.index_now(engine._resources, "acme", log_ids, 0.0)
    assert documents_of(engine) == []
    pending.index_now(engine._resources, "acme", log_ids[:1], float("inf"))
    assert len(documents_of(engine)) == 1
