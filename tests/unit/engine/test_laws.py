"""The three laws: no network inside a transaction, no read without its account, clock and ids from the engine only."""

import re
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast.engine import Engine
from holdfast.engine.gate.ids import Ids
from holdfast.errors import NotFoundError
from holdfast.model.identity import Principal
from holdfast.model.parts import TextPart, ToolPart
from holdfast.ops.administration import (
    CreateAccount,
    CreateKey,
    CreateUser,
    DeleteAccount,
    DeleteUser,
    ListAccounts,
    ListAudit,
    ListKeys,
    ListOperatorAudit,
    ListUsers,
    RevokeKey,
    RotateKey,
    SetRole,
)
from holdfast.ops.commits import (
    CancelTask,
    CommitSession,
    ExpandContext,
    GetSessionArchive,
    GetSessionContext,
    GetTask,
    ListArchives,
    ListTasks,
    RetryArchive,
    RetryTask,
)
from holdfast.ops.files import ListFiles, ReadAbstract, ReadFile, ReadOverview, ShowTree, StatFile
from holdfast.ops.sessions import (
    AddMessage,
    AddMessages,
    ConfigureSession,
    CreateSession,
    DeleteSession,
    ForkSession,
    GetMessages,
    GetSession,
    GetSessionStats,
    ListSessions,
    ListToolResults,
    ListUsage,
    ReadEvents,
    ReadToolResult,
    RecordUse,
    SearchToolResult,
    UpdateSession,
)
from holdfast.ops.system import (
    CheckHealth,
    GetMemoryStats,
    GetSystemStatus,
    ObserveComponent,
    ObserveSystem,
    WaitUntilIdle,
    WhoAmI,
)
from holdfast.ops.table import OPERATIONS, Operation
from holdfast.store.database import EVERY_ACCOUNT, Database, in_transaction
from holdfast.store.drivers import postgres as postgres_store
from holdfast.store.drivers import sqlite
from holdfast.store.drivers.postgres import PostgresDatabase
from holdfast.store.drivers.sqlite import SqliteDatabase
from holdfast.testing.postgres import PostgresServer

ALICE = Principal("acme", "alice", "root")
LARGE = "word " * 4_000
LISTED = "listed"
"""Stands for the tool result, or the key, that was listed last."""


def every_operation() -> list[Operation[Any]]:
    """A story that uses each operation at least once."""
    tool = ToolPart(tool_id="c1", tool_name="t", output=LARGE)
    return [
        CreateAccount(account_id="other"),
        ListAccounts(),
        CreateUser(account_id="other", user_id="bob"),
        SetRole(account_id="other", user_id="bob", role="admin"),
        CreateKey(account_id="other", user_id="bob", expires_in_seconds=60),
        RotateKey(account_id="other", user_id="bob"),
        ListKeys(account_id="other", user_id="bob"),
        RevokeKey(account_id="other", user_id="bob", key_id=LISTED),
        ListUsers(account_id="other"),
        DeleteUser(account_id="other", user_id="bob"),
        WhoAmI(),
        GetSystemStatus(),
        CheckHealth(),
        ObserveSystem(),
        ObserveComponent(component="queue"),
        WaitUntilIdle(),
        CreateSession(session_id="a", title="A", metadata={"k": 1}),
        GetSession(session_id="b", auto_create=True),
        AddMessage(session_id="a", role="user", parts=[TextPart("hello"), tool], id="m1", idempotency_key="k"),
        AddMessage(session_id="a", role="user", parts=[TextPart("hello"), tool], id="m1"),
        AddMessages(session_id="a", messages=[{"role": "user", "content": "x"}]),  # type: ignore[list-item]
        GetMessages(session_id="a", q="hello"),
        ForkSession(session_id="a", at="m1", new_session_id="c"),
        GetMessages(session_id="c"),
        UpdateSession(session_id="a", title="AA", metadata={"k": None}),
        ConfigureSession(session_id="a", auto_commit_policy={"keep_recent_count": 2}),  # type: ignore[arg-type]
        ReadEvents(session_id="a"),
        ReadEvents(session_id="a", after="now"),
        GetSessionStats(session_id="c"),
        GetMemoryStats(),
        RecordUse(session_id="a", contexts=["viking://x"], skill={"uri": "viking://s"}),  # type: ignore[arg-type]
        ListUsage(session_id="a"),
        ListToolResults(session_id="c"),
        ReadToolResult(session_id="c", tool_result_id=LISTED),
        SearchToolResult(session_id="c", tool_result_id=LISTED, q="word"),
        ListSessions(q="a", state="active", cursor="7fffffffffffffff"),
        GetSession(session_id="a"),
        CommitSession(session_id="a", keep_recent_count=1),
        ListTasks(status="pending", resource_id="a"),
        GetTask(task_id=LISTED),
        CancelTask(task_id=LISTED),
        RetryTask(task_id=LISTED),
        RetryArchive(session_id="a", archive_id="archive_001"),
        ListArchives(session_id="a"),
        GetSessionContext(session_id="a"),
        ExpandContext(session_id="a", ref="archive_001"),
        ListFiles(uri="viking://user/alice/sessions", output="agent"),
        ShowTree(uri="viking://", level_limit=9, show_all_hidden=True),
        StatFile(uri="viking://session/a/history/archive_001"),
        ReadFile(uri="viking://session/a/tools/c1/tool.json"),
        ReadFile(uri="viking://session/c/messages.jsonl", offset=0, limit=1),
        ReadFile(uri="viking://session/a/.relations.json"),
        ReadFile(uri="viking://session/a/.meta.json"),
        GetSessionArchive(session_id="a", archive_id="archive_001"),
        ReadAbstract(uri="viking://session/a"),
        ReadOverview(uri="viking://session/a/history/archive_001"),
        DeleteSession(session_id="a"),
        DeleteSession(session_id="c"),
        ListAudit(),
        DeleteAccount(account_id="other"),
        ListOperatorAudit(),
    ]


def finish(engine: Engine) -> None:
    """Do all the work in the background that is due."""
    engine.work(polls=False)
    assert engine.workers is not None
    engine.workers.close(30)


def tell(engine: Engine) -> list[Any]:
    results: list[Any] = []
    listed = ""
    for op in every_operation():
        for field in ("tool_result_id", "key_id", "task_id"):
            if getattr(op, field, None) == LISTED:
                op = msgspec.structs.replace(op, **{field: listed})  # noqa: PLW2901 - the same, made specific
        results.append(engine.call(ALICE, op))
        if isinstance(op, ListToolResults):
            listed = results[-1].tool_results[0].tool_result_id
        elif isinstance(op, ListKeys):
            listed = results[-1][0].key_id
        elif isinstance(op, ListTasks):
            listed = results[-1][0].task_id
        elif isinstance(op, ListArchives):
            finish(engine)
    return results


def test_the_story_uses_every_operation() -> None:
    assert {type(op) for op in every_operation()} == set(OPERATIONS)


@pytest.fixture
def forbidden_calls() -> Iterator[list[str]]:
    """Everything that reaches for a network while this thread is inside a transaction."""
    calls: list[str] = []
    watching = True

    def watch(event: str, _args: object) -> None:
        if watching and event.startswith("socket.") and in_transaction():
            calls.append(event)

    sys.addaudithook(watch)
    yield calls
    watching = False


def test_no_network_inside_a_transaction(database: Database, forbidden_calls: list[str]) -> None:
    tell(Engine(database))
    assert forbidden_calls == []


def test_the_watch_for_networks_sees_one(database: Database, forbidden_calls: list[str]) -> None:
    def work(_tx: object) -> None:
        with socket.socket() as probe:
            probe.connect_ex(("127.0.0.1", 9))

    database.write("acme", work)
    assert "socket.connect" in forbidden_calls


NOT_A_TENANTS = {"accounts", "schema_migrations"}
"""Tables that belong to the operator; all others are tenants' and must be asked for by account."""


def is_about_work(sql: str) -> bool:
    """Whether a statement is about what is due or outdated, whose ever it is: workers look for that in all accounts."""
    return set(re.findall(r"\b(?:FROM|UPDATE|JOIN) (\w+)", sql)) - {"SKIP"} <= {"tasks", "watches", "appends"}


def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    seen: list[str] = []

    def listening(method: Callable[..., Any]) -> Callable[..., Any]:
        def heard(self: Any, sql: str, params: Any = ()) -> Any:
            if not (self.account == EVERY_ACCOUNT and is_about_work(sql)):
                seen.append(sql)
            return method(self, sql, params)

        return heard

    for tx in (sqlite.SqliteTx, postgres_store.PostgresTx):
        for name in ("execute", "one", "all"):
            monkeypatch.setattr(tx, name, listening(getattr(tx, name)))
    return seen


def names_its_account(sql: str) -> bool:
    """Whether every SELECT, UPDATE and DELETE on a tenant's table has the account in its WHERE."""
    flat = " ".join(sql.split())
    if flat.startswith(("INSERT INTO", "CREATE", "ALTER", "--", "SELECT pg_")):
        return True
    inner = re.compile(r"\((SELECT [^()]*(?:\([^()]*\)[^()]*)*)\)")
    while found := inner.search(flat):
        if not _names_its_account(found[1]):
            return False
        flat = flat.replace(found[0], "?")
    return _names_its_account(flat)


def _names_its_account(statement: str) -> bool:
    tables = re.findall(r"\b(?:FROM|UPDATE|JOIN) (\w+)", statement)
    if tables == ["message_text_docsize"] or (
        tables == ["message_text"] and ("MATCH ?" in statement or "rowid IN ?" in statement)
    ):
        return True  # SQLite's text index knows messages by number; the statement around it names the account
    return not set(tables) - NOT_A_TENANTS or re.search(r"WHERE .*?\baccount_id = ", statement) is not None


def test_no_row_is_read_without_its_account(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = statements(monkeypatch)
    tell(Engine(database))
    assert len(set(seen)) > 35
    assert [sql for sql in set(seen) if not names_its_account(sql)] == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM messages WHERE log_id = ?",
        "DELETE FROM sessions",
        "UPDATE blobs SET refs = 0 WHERE hash = ?",
        "SELECT 1 FROM sessions WHERE account_id = ? AND x IN (SELECT id FROM messages)",
    ],
)
def test_the_check_of_statements_sees_one_that_forgets(sql: str) -> None:
    assert not names_its_account(sql)


def test_row_level_security_is_a_second_wall(postgres: PostgresServer) -> None:
    """Even a statement without a WHERE sees only its own account, and a transaction without one sees nothing."""
    database = PostgresDatabase(postgres.new_database())
    engine = Engine(database)
    for account in ("acme", "rival"):
        engine.call(Principal(account, "alice", "root"), AddMessage(session_id="s", role="user", content=account))

    def accounts_in(table: str, account: str) -> list[Any]:
        return database.read(account, lambda tx: tx.all(f"SELECT account_id FROM {table} ORDER BY 1"))

    for table in ("accounts", "sessions", "messages", "message_text"):
        assert accounts_in(table, "acme") == [("acme",)]
        assert accounts_in(table, "*") == [("acme",), ("rival",)]
        assert accounts_in(table, "") == []
    database.write("acme", lambda tx: tx.execute("DELETE FROM messages"))
    assert database.read("*", lambda tx: tx.all("SELECT account_id FROM messages")) == [("rival",)]
    with pytest.raises(Exception, match="row-level security"):
        database.write("acme", lambda tx: tx.execute("INSERT INTO accounts VALUES ('rival2', 1)"))
    database.close()


def test_an_account_that_is_deleted_leaves_nothing_in_any_table(database: Database) -> None:
    engine = Engine(database)
    for op in every_operation()[:-8]:
        if not {"tool_result_id", "key_id", "task_id"} & set(op.__struct_fields__):
            engine.call(ALICE, op)
    columns = {
        "sqlite": "SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c ON c.name = 'account_id'"
        " WHERE m.type = 'table'",
        "postgres": "SELECT table_name FROM information_schema.columns"
        " WHERE column_name = 'account_id' AND table_schema = current_schema()",
    }

    def left(tx: Any) -> dict[str, int]:
        tables = [row[0] for row in tx.all(columns[tx.dialect.name])]
        rows = {table: tx.one(f"SELECT COUNT(*) FROM {table} WHERE account_id = 'acme'")[0] for table in tables}
        return {table: count for table, count in rows.items() if count}

    assert len(database.read("*", left)) >= 10
    engine.call(Principal("elsewhere", "operator", "root"), DeleteAccount(account_id="acme"))
    assert database.read("*", left) == {}
    with pytest.raises(NotFoundError):
        engine.call(ALICE, GetMessages(session_id="a", q="hello"))


def test_every_table_has_row_level_security(postgres: PostgresServer) -> None:
    database = PostgresDatabase(postgres.new_database())
    database.migrate(0)
    rows = database.read(
        "*",
        lambda tx: tx.all(
            "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
            " AND NOT (relrowsecurity AND relforcerowsecurity)"
        ),
    )
    database.close()
    assert rows == [("schema_migrations",)]


def fixed_engine(file: Path) -> Engine:
    ticks = iter(range(1_700_000_000_000_000, 1_800_000_000_000_000, 1_000))
    numbers = iter(range(1, 1_000_000))

    def clock() -> int:
        return next(ticks)

    ids = Ids(clock, lambda _bits: next(numbers), lambda size: next(numbers).to_bytes(size, "big"))
    return Engine(SqliteDatabase(str(file)), clock=clock, ids=ids)


def test_with_a_fixed_clock_and_fixed_ids_the_same_story_gives_the_same_bytes(tmp_path: Path) -> None:
    results, files = [], []
    for name in ("first.db", "second.db"):
        engine = fixed_engine(tmp_path / name)
        results.append(tell(engine))
        engine.close()
        files.append((tmp_path / name).read_bytes())
    assert results[0] == results[1]
    assert files[0] == files[1]


def test_only_one_module_registers_hooks_for_forks() -> None:
    """The order of the hooks is documented there, and platforms without fork are handled there."""
    package = Path(holdfast.__file__).parent
    calls = [path for path in package.rglob("*.py") if "register_at_fork" in path.read_text()]
    assert calls == [package / "forking.py"]
