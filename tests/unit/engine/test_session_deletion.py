"""Deleting a large session: gone at once for every reader, its rows removed in slices between other writes."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.engine.commits.auto_commits import check_session
from holdfast.engine.kinds import QUEUES, TASK_KINDS
from holdfast.engine.sessions import deletion
from holdfast.engine.tasks.workers import Workers
from holdfast.errors import FailedPreconditionError, NotFoundError
from holdfast.model.identity import OPERATOR, Principal
from holdfast.model.parts import TextPart, ToolPart
from holdfast.ops.administration import DeleteAccount
from holdfast.ops.commits import CommitSession
from holdfast.ops.sessions import (
    AddMessage,
    DeleteSession,
    ForkSession,
    GetMessages,
    GetSession,
    ListSessions,
    ListToolResults,
    ReadToolResult,
    RecordUse,
)
from holdfast.ops.system import GetMemoryStats
from holdfast.ops.table import Operation
from holdfast.ops.tasks import CancelTask, GetTask, ListTasks
from holdfast.store.database import EVERY_ACCOUNT, Database, Tx
from holdfast.store.tables import deleted_logs
from holdfast.testing.faults.watching import wait_for

ALICE = Principal("acme", "alice", "root")
BOB = Principal("acme", "bob", "root")
OUTPUT = "shared output " * 2_000
FIRST_SLICE, SLICE = 10, 6
LOG_TABLES = ("messages", "appends", "usages", "changes", "archives", "tool_results", "calls", "lineage", "watches")


@pytest.fixture
def engine(database: Database, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """An engine that runs no tasks by itself, with small slices."""
    monkeypatch.setattr(deletion, "FIRST_SLICE_ROWS", FIRST_SLICE)
    monkeypatch.setattr(deletion, "SLICE_ROWS", SLICE)
    return Engine(database, Settings(worker_threads=0, task_backoff_seconds=0.001))


def add(engine: Engine, session_id: str, count: int) -> None:
    for number in range(count):
        engine.call(
            ALICE,
            AddMessage(session_id=session_id, role="user", content=f"zebra {number}", idempotency_key=f"k{number}"),
        )


def fill(engine: Engine, session_id: str, count: int = 40) -> None:
    """A session with rows in every table."""
    tool = ToolPart(tool_id="c1", tool_name="t", tool_status="completed", tool_output=OUTPUT)
    engine.call(ALICE, AddMessage(session_id=session_id, role="assistant", parts=[TextPart("see"), tool]))
    engine.call(ALICE, RecordUse(session_id=session_id, contexts=["viking://x"]))
    engine.call(ALICE, CommitSession(session_id=session_id))
    add(engine, session_id, count)


def rows_of(engine: Engine, *log_ids: int) -> dict[str, int]:
    """The number of rows of the logs in each table that has some."""
    marks = ", ".join("?" * len(log_ids))

    def count(tx: Tx) -> dict[str, int]:
        counts = {}
        for table in LOG_TABLES:
            row = tx.one(f"SELECT COUNT(*) FROM {table} WHERE account_id = 'acme' AND log_id IN ({marks})", log_ids)
            counts[table] = 0 if row is None else row[0]
        return {table: rows for table, rows in counts.items() if rows}

    return engine.db.read(EVERY_ACCOUNT, count)


def log_of(engine: Engine, session_id: str) -> int:
    row = engine.db.read("acme", lambda tx: tx.one("SELECT log_id FROM sessions WHERE session_id = ?", (session_id,)))
    assert row is not None
    return int(row[0])


def scalar(engine: Engine, sql: str) -> Any:
    row = engine.db.read(EVERY_ACCOUNT, lambda tx: tx.one(sql))
    return None if row is None else row[0]


def run_tasks(engine: Engine, observe: Callable[[str], None] = lambda _boundary: None) -> None:
    settings = Settings(worker_threads=1, task_backoff_seconds=0.001, worker_poll_seconds=0.01)
    workers = Workers(
        engine.db,
        settings,
        engine.new_context,
        engine.models,
        TASK_KINDS,
        check_session,
        QUEUES,
        polls=True,
        observe=observe,
    )
    workers.start()
    wait_for(lambda: not engine.has_work())
    workers.close(30)


def test_a_large_session_is_gone_for_every_reader_before_its_rows_are(engine: Engine) -> None:
    fill(engine, "s")
    log_id = log_of(engine, "s")
    (output,) = engine.call(ALICE, ListToolResults(session_id="s")).tool_results
    engine.call(ALICE, DeleteSession(session_id="s"))
    assert rows_of(engine, log_id)["messages"] > 0
    assert engine.call(ALICE, ListSessions()).sessions == []
    stats = engine.call(ALICE, GetMemoryStats())
    assert (stats.sessions, stats.messages, stats.tokens) == (0, 0, 0)
    ops: list[Operation[Any]] = [GetSession(session_id="s"), GetMessages(session_id="s"), DeleteSession(session_id="s")]
    for op in ops:
        with pytest.raises(NotFoundError):
            engine.call(ALICE, op)
    engine.call(ALICE, AddMessage(session_id="s", role="user", content="a new session with the same id"))
    assert engine.call(ALICE, GetMessages(session_id="s", q="zebra")).messages == []
    assert engine.call(ALICE, GetSession(session_id="s")).total_message_count == 1
    with pytest.raises(NotFoundError):
        engine.call(ALICE, ReadToolResult(session_id="s", tool_result_id=output.tool_result_id))
    run_tasks(engine)
    assert rows_of(engine, log_id) == {}
    assert scalar(engine, "SELECT COUNT(*) FROM blobs") == 0
    assert [message.text for message in engine.call(ALICE, GetMessages(session_id="s")).messages] == [
        "a new session with the same id"
    ]


def test_a_small_session_needs_no_task(engine: Engine) -> None:
    add(engine, "s", 3)
    log_id = log_of(engine, "s")
    engine.call(ALICE, DeleteSession(session_id="s"))
    assert (rows_of(engine, log_id), engine.call(ALICE, ListTasks())) == ({}, [])


def test_each_transaction_deletes_a_slice_and_others_write_in_between(engine: Engine) -> None:
    fill(engine, "s")
    fill(engine, "other")
    log_id = log_of(engine, "s")
    engine.call(ALICE, DeleteSession(session_id="s"))
    left = [sum(rows_of(engine, log_id).values())]

    def append_to_another_session(boundary: str) -> None:
        if boundary == "slice is written":
            engine.call(ALICE, AddMessage(session_id="other", role="user", content="between two slices"))
            left.append(sum(rows_of(engine, log_id).values()))

    run_tasks(engine, append_to_another_session)
    assert left[-1] == 0
    assert len(left) > 10
    assert max(before - after for before, after in pairwise(left)) <= 2 * SLICE
    between = engine.call(ALICE, GetMessages(session_id="other", q="slices")).messages
    assert len(between) == len(left) - 1


def test_the_task_of_a_deletion_belongs_to_the_user_and_shows_its_progress(engine: Engine) -> None:
    fill(engine, "s")
    engine.call(ALICE, DeleteSession(session_id="s"))
    (task,) = engine.call(ALICE, ListTasks(task_type="session_delete", resource_id="s"))
    assert (task.subject, task.archive_uri, task.status) == ("viking://user/alice/sessions/s", None, "pending")
    assert (task.progress.done, task.progress.total) == (0, 41 - FIRST_SLICE)
    assert engine.call(BOB, ListTasks()) == []
    run_tasks(engine)
    task = engine.call(ALICE, GetTask(task_id=task.task_id))
    assert (task.status, task.result) == ("completed", {"session_id": "s", "messages": 41 - FIRST_SLICE})
    assert task.progress.done == task.progress.total


def test_a_deletion_that_fails_continues_where_it_ended(engine: Engine) -> None:
    fill(engine, "s")
    log_id = log_of(engine, "s")
    engine.call(ALICE, DeleteSession(session_id="s"))
    slices = 0

    def fail_at_the_third_slice(boundary: str) -> None:
        nonlocal slices
        slices += boundary == "slice begins"
        if slices == 3:
            slices += 1
            raise OSError

    run_tasks(engine, fail_at_the_third_slice)
    (task,) = engine.call(ALICE, ListTasks())
    assert (task.attempts, task.result) == (2, {"session_id": "s", "messages": 41 - FIRST_SLICE})
    assert rows_of(engine, log_id) == {}


def test_a_deletion_cannot_be_cancelled(engine: Engine) -> None:
    fill(engine, "s")
    engine.call(ALICE, DeleteSession(session_id="s"))
    (task,) = engine.call(ALICE, ListTasks())
    for principal in (ALICE, OPERATOR):
        with pytest.raises(FailedPreconditionError, match="Session s is deleted already"):
            engine.call(principal, CancelTask(task_id=task.task_id))
    assert engine.call(ALICE, GetTask(task_id=task.task_id)).status == "pending"


def test_a_fork_keeps_the_messages_it_shares_until_it_is_deleted_too(engine: Engine) -> None:
    fill(engine, "s")
    engine.call(ALICE, ForkSession(session_id="s", at=30, new_session_id="fork"))
    log_ids = log_of(engine, "s"), log_of(engine, "fork")
    engine.call(ALICE, DeleteSession(session_id="s"))
    run_tasks(engine)
    shared = engine.call(ALICE, GetMessages(session_id="fork", limit=100)).messages
    assert [message.seq for message in shared] == list(range(1, 31))
    assert [message.seq for message in engine.call(ALICE, GetMessages(session_id="fork", q="zebra")).messages]
    (output,) = engine.call(ALICE, ListToolResults(session_id="fork")).tool_results
    assert engine.call(ALICE, ReadToolResult(session_id="fork", tool_result_id=output.tool_result_id)).content
    engine.call(ALICE, DeleteSession(session_id="fork"))
    run_tasks(engine)
    assert rows_of(engine, *log_ids) == {}
    assert scalar(engine, "SELECT COUNT(*) FROM blobs") == 0


def test_a_fork_that_is_deleted_during_the_deletion_of_its_parent_leaves_nothing(engine: Engine) -> None:
    fill(engine, "s")
    fill(engine, "kept")
    engine.call(ALICE, ForkSession(session_id="s", at=30, new_session_id="fork"))
    log_ids = log_of(engine, "s"), log_of(engine, "fork")
    for session_id in ("s", "fork"):
        engine.call(ALICE, DeleteSession(session_id=session_id))
    assert len(engine.call(ALICE, ListTasks(task_type="session_delete"))) == 2
    run_tasks(engine)
    assert rows_of(engine, *log_ids) == {}
    assert scalar(engine, "SELECT refs FROM blobs") == 1
    assert len(engine.call(ALICE, ListToolResults(session_id="kept")).tool_results) == 1


def test_an_account_that_is_deleted_during_a_deletion_has_no_row_left(engine: Engine) -> None:
    fill(engine, "s")
    log_id = log_of(engine, "s")
    engine.call(ALICE, DeleteSession(session_id="s"))

    def delete_account(boundary: str) -> None:
        if boundary == "slice is written" and rows_of(engine, log_id):
            engine.call(Principal("elsewhere", "root", "root"), DeleteAccount(account_id="acme"))

    run_tasks(engine, delete_account)
    assert rows_of(engine, log_id) == {}
    for table in ("tasks", "steps", "blobs", "accounts"):
        assert scalar(engine, f"SELECT COUNT(*) FROM {table}") == 0
    assert engine.call(OPERATOR, ListTasks()) == []


def test_large_messages_and_outputs_are_deleted_in_smaller_slices(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deleted_logs, "MAX_SLICE_CHARS", 50_000)
    monkeypatch.setattr(deletion, "FIRST_SLICE_ROWS", 1_000)
    for number in range(5):
        outputs = [f"{number}{part}" * 20_000 for part in (1, 2)]
        parts = [ToolPart(tool_id=output[:2], tool_name="t", output=output) for output in outputs]
        engine.call(ALICE, AddMessage(session_id="s", role="tool", parts=[*parts]))
    log_id = log_of(engine, "s")
    engine.call(ALICE, DeleteSession(session_id="s"))
    assert rows_of(engine, log_id)["messages"] == 4
    run_tasks(engine)
    assert rows_of(engine, log_id) == {}
