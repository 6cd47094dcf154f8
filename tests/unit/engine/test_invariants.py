"""Invariants: no network in a transaction, no read without its account, clock and ids only from the engine; audits."""

import re
import socket
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.engine.gate.ids import Ids
from holdfast.errors import NotFoundError
from holdfast.model.identity import OPERATOR, Principal
from holdfast.model.parts import TextPart, ToolPart
from holdfast.ops.administration import (
    CreateAccount,
    CreateKey,
    CreateUser,
    DeleteAccount,
    DeleteUser,
    GetAccount,
    GetUser,
    ListAccounts,
    ListKeys,
    ListUsers,
    RevokeKey,
    RotateKey,
    SetRole,
)
from holdfast.ops.audit import EraseAudit, ExportAudit, ExportOperatorAudit, ListAudit, ListOperatorAudit, RecordExport
from holdfast.ops.commits import (
    CommitSession,
    ExpandContext,
    GetSessionArchive,
    GetSessionContext,
    ListArchives,
    ResummariseSession,
    RetryArchive,
)
from holdfast.ops.search import Find, Search
from holdfast.ops.sessions import (
    AddMessage,
    AddMessages,
    ConfigureSession,
    CreateSession,
    DeleteSession,
    ExtractMemories,
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
from holdfast.ops.sharing import (
    CreateShareLink,
    ListCollaborators,
    ListShareLinks,
    RevokeShareLink,
    ShareSession,
    TransferSession,
    UnshareSession,
)
from holdfast.ops.system import (
    CheckConsistency,
    CheckHealth,
    GetMemoryStats,
    GetSystemStatus,
    ObserveComponent,
    ObserveSystem,
    WaitUntilIdle,
    WhoAmI,
)
from holdfast.ops.table import OPERATIONS, Operation, fields_of, operation
from holdfast.ops.tasks import CancelTask, GetTask, ListTasks, RetryTask
from holdfast.ops.tree.attributes import LinkFiles, ListRelations, ReadAttributes, SetTags, UnlinkFiles
from holdfast.ops.tree.file_changes import (
    BatchOperation,
    CopyFile,
    MakeFolder,
    MoveFile,
    ReadHistory,
    RemoveFile,
    RestoreFile,
    WriteFile,
    WriteFiles,
)
from holdfast.ops.tree.files import ListFiles, ReadAbstract, ReadFile, ReadOverview, ShowTree, StatFile
from holdfast.ops.tree.packs import ImportPack, ListPackNodes, RestorePack
from holdfast.ops.tree.patterns import Glob, Grep
from holdfast.ops.tree.reindexing import ReindexFiles
from holdfast.ops.tree.resources import (
    AddResource,
    DeleteWatch,
    DeleteWatchOf,
    GetWatch,
    ListWatches,
    TriggerWatch,
    TriggerWatchOf,
    UpdateWatch,
    UpdateWatchOf,
)
from holdfast.ops.tree.skills import (
    AddSkill,
    FindSkills,
    GetSkill,
    ListSkills,
    PublishSkill,
    RemoveSkill,
    UnpublishSkill,
    UpdateSkill,
    ValidateSkill,
)
from holdfast.ops.tree.uploads import AppendUpload, CancelUpload, FinishUpload, ReadBytes, StartUpload
from holdfast.ops.vectors import ReembedDocuments
from holdfast.store.access import audit
from holdfast.store.database import EVERY_ACCOUNT, Database, in_transaction
from holdfast.store.drivers.postgres.database import PostgresDatabase
from holdfast.store.drivers.postgres.transactions import PostgresTx
from holdfast.store.drivers.sqlite.clock import BootClock
from holdfast.store.drivers.sqlite.database import SqliteDatabase
from holdfast.store.drivers.sqlite.transactions import SqliteTx
from holdfast.testing.example_packs import example_packs
from holdfast.testing.postgres import PostgresServer

ALICE = Principal("acme", "alice", "root")
LARGE = "word " * 4_000
WATCHED_FOLDER = "/srv/documents"
SETTINGS = Settings(resource_folders=WATCHED_FOLDER)
LISTED = "listed"
"""A placeholder for the id that was listed last: of a tool result, a key or a task."""


def tree_operations() -> list[Operation[Any]]:
    """Calls that change stored files and search them by patterns."""
    notes = "viking://resources/notes"
    return [
        MakeFolder(uri=notes, description="Notes of the team."),
        WriteFile(uri=f"{notes}/a.md", content="hello\nworld\n", tags=["team=ops"]),
        WriteFile(uri=f"{notes}/a.md", content="again\n", mode="append"),
        ReadHistory(uri=f"{notes}/a.md"),
        ReadFile(uri=f"{notes}/a.md", version=1),
        RestoreFile(uri=f"{notes}/a.md", version=1),
        ReindexFiles(uri=notes, wait=False),
        CopyFile(from_uri=notes, to_uri="viking://~/resources/notes", recursive=True),
        MoveFile(from_uri=f"{notes}/a.md", to_uri=f"{notes}/b.md"),
        Grep(uri="viking://", pattern="^hel+o", before_context=1),
        Glob(pattern="**/*.md", include_tags=True),
        SetTags(uri=notes, tags="x=1,y", mode="append", recursive=True),
        ReadAttributes(uri=notes),
        LinkFiles(from_uri=f"{notes}/b.md", to_uris=["viking://session/a", notes], reason="said there"),
        ListRelations(uri=f"{notes}/b.md"),
        ReadFile(uri=f"{notes}/.relations.json"),
        UnlinkFiles(from_uri=f"{notes}/b.md", to_uri=notes),
        ListFiles(uri=notes, sort_by="mtime"),
        RemoveFile(uri=notes, recursive=True),
        RestoreFile(uri=notes),
    ]


def watch_operations() -> list[Operation[Any]]:
    """Calls on the watches of two resources."""
    handbook, rules = "viking://resources/handbook", "viking://~/resources/rules"
    return [
        AddResource(path=f"{WATCHED_FOLDER}/handbook", to=handbook, watch_interval=5),
        AddResource(path=f"{WATCHED_FOLDER}/rules", to=rules, watch_interval=0.5),
        UpdateWatchOf(to_uri=rules, is_active=False),
        TriggerWatchOf(to_uri=rules),
        DeleteWatchOf(to_uri=rules),
        ListWatches(active_only=True),
        GetWatch(watch_id=LISTED),
        UpdateWatch(watch_id=LISTED, watch_interval=7, reason="weekly"),
        TriggerWatch(watch_id=LISTED),
        DeleteWatch(watch_id=LISTED),
    ]


def pack_operations() -> list[Operation[Any]]:
    """Uploads of packs, and their imports."""
    packs = example_packs()
    return [
        StartUpload(name="folder.ovpack"),
        AppendUpload(upload_id=LISTED, number=0, data=packs.folder),
        FinishUpload(upload_id=LISTED),
        ImportPack(temp_file_id=LISTED, parent="viking://resources/imported"),
        ListPackNodes(uri="viking://resources/imported"),
        StartUpload(name="backup.ovpack"),
        AppendUpload(upload_id=LISTED, number=0, data=packs.backup),
        FinishUpload(upload_id=LISTED),
        RestorePack(temp_file_id=LISTED, on_conflict="overwrite"),
    ]


def skill_operations() -> list[Operation[Any]]:
    skill = {"name": "greet", "description": "Says hello.", "content": "# Greet"}
    return [
        ValidateSkill(data=skill),
        AddSkill(data=skill),
        RecordUse(session_id="a", skill={"uri": "viking://agent/skills/greet"}),  # type: ignore[arg-type]
        UpdateSkill(name="greet", data={**skill, "content": "# Greet again"}),
        PublishSkill(name="greet"),
        ListSkills(),
        GetSkill(name="greet", include_files=True, include_source=True),
        FindSkills(query="hello"),
        RemoveSkill(name="greet"),
        RecordUse(session_id="a", skill={"uri": "viking://agent/skills/greet"}),  # type: ignore[arg-type]
        UnpublishSkill(name="greet"),
    ]


def all_operations() -> list[Operation[Any]]:
    """A sequence of calls that uses each operation at least once."""
    tool = ToolPart(tool_id="c1", tool_name="t", output=LARGE)
    return [
        CreateAccount(account_id="other"),
        ListAccounts(name="oth", limit=5, page=1),
        GetAccount(account_id="other"),
        CreateUser(account_id="other", user_id="bob"),
        SetRole(account_id="other", user_id="bob", role="admin"),
        CreateKey(account_id="other", user_id="bob", expires_in_seconds=60),
        RotateKey(account_id="other", user_id="bob"),
        ListKeys(account_id="other", user_id="bob"),
        RevokeKey(account_id="other", user_id="bob", key_id=LISTED),
        ListUsers(account_id="other", name="b", role="admin"),
        GetUser(account_id="other", user_id="bob"),
        DeleteUser(account_id="other", user_id="bob"),
        WhoAmI(),
        GetSystemStatus(),
        CheckHealth(),
        ObserveSystem(),
        ObserveComponent(component="queue", format="json"),
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
        ShareSession(session_id="a", user_id="bob", rights=["read", "write"]),
        ListCollaborators(session_id="a"),
        UnshareSession(session_id="a", user_id="bob"),
        CreateShareLink(session_id="a", expires_in_seconds=60),
        ListShareLinks(session_id="a"),
        RevokeShareLink(session_id="a", link_id=LISTED),
        CreateSession(session_id="given"),
        TransferSession(session_id="given", user_id="bob"),
        ReadEvents(session_id="a"),
        ReadEvents(session_id="a", after="now"),
        GetSessionStats(session_id="c"),
        GetMemoryStats(),
        CheckConsistency(),
        CheckConsistency(uri="viking://session/a"),
        ExtractMemories(session_id="a"),
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
        ResummariseSession(session_id="a"),
        ReadAbstract(uri="viking://session/a"),
        ReadOverview(uri="viking://session/a/history/archive_001"),
        *tree_operations(),
        StartUpload(name="notes.md"),
        AppendUpload(upload_id=LISTED, number=0, data=b"hello"),
        FinishUpload(upload_id=LISTED),
        AddResource(temp_file_id=LISTED, reason="for the team"),
        CancelUpload(upload_id=LISTED),
        *watch_operations(),
        *pack_operations(),
        WriteFiles(root_uri="viking://resources", operations=[BatchOperation(uri="viking://resources/a.md")]),
        ReadBytes(uri="viking://resources/a.md"),
        *skill_operations(),
        Find(query="hello"),
        Search(query="hello", session_id="a", target_uri="viking://user/alice/sessions"),
        ReembedDocuments(),
        DeleteSession(session_id="a"),
        DeleteSession(session_id="c"),
        RecordExport(session_ids=["a", "b"]),
        ListAudit(resource="a", action="CreateSession", since=datetime(2020, 1, 1, tzinfo=UTC)),
        EraseAudit(ids=[LISTED]),
        ExportAudit(),
        ExportOperatorAudit(),
        DeleteAccount(account_id="other"),
        ListOperatorAudit(),
    ]


def run_due_tasks(engine: Engine) -> None:
    """Run all background tasks that are due."""
    engine.start_workers(polls=False)
    assert engine.workers is not None
    engine.workers.close(30)


ID_OF_FIRST: dict[type[Operation[Any]], Callable[[Any], str]] = {
    ListToolResults: lambda page: page.tool_results[0].tool_result_id,
    ListKeys: lambda keys: keys[0].key_id,
    ListShareLinks: lambda page: page.links[0].id,
    ListTasks: lambda tasks: tasks[0].task_id,
    StartUpload: lambda upload: upload.upload_id,
    ListWatches: lambda found: found.tasks[0].task_id,
    ListAudit: lambda page: page.records[0].id,
}
"""The id of the first item of a list, which a later operation of the sequence uses."""


def run_all_operations(
    engine: Engine, after_each: Callable[[], None] = lambda: None
) -> list[tuple[Operation[Any], Any]]:
    """Run the sequence. Returns each operation with its result."""
    calls: list[tuple[Operation[Any], Any]] = []
    listed = ""
    for op in all_operations():
        for field in ("tool_result_id", "key_id", "task_id", "link_id", "upload_id", "temp_file_id", "watch_id"):
            if getattr(op, field, None) == LISTED:
                op = msgspec.structs.replace(op, **{field: listed})  # noqa: PLW2901 - fills in the id
        if isinstance(op, EraseAudit):
            op = EraseAudit(ids=[listed])  # noqa: PLW2901 - as above
        result = engine.call(ALICE, op)
        engine.audit_log.seal_now(ALICE.account_id)
        calls.append((op, result))
        after_each()
        if type(op) in ID_OF_FIRST:
            listed = ID_OF_FIRST[type(op)](result)
        elif isinstance(op, ListArchives):
            run_due_tasks(engine)
    return calls


def test_the_sequence_uses_every_operation() -> None:
    assert {type(op) for op in all_operations()} == set(OPERATIONS)


@pytest.fixture
def forbidden_calls() -> Iterator[list[str]]:
    """Records every use of a socket while this thread is inside a transaction."""
    calls: list[str] = []
    enabled = True

    def watch(event: str, _args: object) -> None:
        if enabled and event.startswith("socket.") and in_transaction():
            calls.append(event)

    sys.addaudithook(watch)
    yield calls
    enabled = False


def test_no_network_inside_a_transaction(database: Database, forbidden_calls: list[str]) -> None:
    run_all_operations(Engine(database, SETTINGS))
    assert forbidden_calls == []


def test_the_socket_check_detects_a_connection(database: Database, forbidden_calls: list[str]) -> None:
    def work(_tx: object) -> None:
        with socket.socket() as probe:
            probe.connect_ex(("127.0.0.1", 9))

    database.write("acme", work)
    assert "socket.connect" in forbidden_calls


OPERATOR_TABLES = {"accounts", "clock", "schema_migrations", "sqlite_sequence", "unchecked_tables"}
"""Tables of the operator. All others belong to tenants, and each statement on them must name the account."""


def is_maintenance(sql: str) -> bool:
    """Whether a statement reads only due or expired rows, which workers read in all accounts.

    `watches` has the scheduled checks for automatic commits, `appends` the results of appends for retries, `unindexed`
    the logs that are to be indexed, `unembedded` the owners of documents that are to be embedded, `unprocessed` the
    files and folders that are to be processed, `uploads` those that expire, `resource_watches` the resources that are
    to be read again. Bytes of files that nothing refers to are deleted in all accounts.
    """
    not_tables = {"SKIP", "OF"}  # of FOR UPDATE OF b SKIP LOCKED
    return set(re.findall(r"\b(?:FROM|UPDATE|JOIN) (\w+)", sql)) - not_tables <= {
        "unprocessed",
        "file_blobs",
        "file_chunks",
        "contents",
        "due",
        "tasks",
        "watches",
        "appends",
        "audit_heads",
        "audit_unsealed",
        "unindexed",
        "unembedded",
        "uploads",
        "resource_watches",
    }


def record_statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    recorded: list[str] = []

    def record(account: str, sql: str) -> None:
        if not (account == EVERY_ACCOUNT and is_maintenance(sql)):
            recorded.append(sql)

    def recording(method: Callable[..., Any]) -> Callable[..., Any]:
        def record_and_run(self: Any, sql: str, params: Any = ()) -> Any:
            record(self.account, sql)
            return method(self, sql, params)

        return record_and_run

    def recording_all(method: Callable[..., Any]) -> Callable[..., Any]:
        def record_and_run(self: Any, statements: Any) -> Any:
            for sql, _ in statements:
                record(self.account, sql)
            return method(self, statements)

        return record_and_run

    for tx in (SqliteTx, PostgresTx):
        for name in ("execute", "one", "all"):
            monkeypatch.setattr(tx, name, recording(getattr(tx, name)))
        monkeypatch.setattr(tx, "all_of", recording_all(tx.all_of))
    return recorded


def names_its_account(sql: str) -> bool:
    """Whether every SELECT, UPDATE and DELETE on a tenant's table has the account in its WHERE."""
    flat = " ".join(sql.split())
    if flat.startswith(("INSERT INTO", "CREATE", "ALTER", "--", "SELECT pg_")):
        return True
    inner = re.compile(r"\((SELECT [^()]*(?:\([^()]*\)[^()]*)*)\)")
    own_names = set(re.findall(r"\b(\w+)(?: \([\w, ]+\))? AS \(SELECT", flat))  # of its common table expressions
    while found := inner.search(flat):
        if not _names_its_account(found[1], own_names):
            return False
        flat = flat.replace(found[0], "?")
    return _names_its_account(flat, own_names)


def _names_its_account(statement: str, own_names: set[str]) -> bool:
    found = re.findall(r"\b(?:FROM|UPDATE|JOIN) (?!LATERAL )(\w+)\b(?!\()", statement)  # a function is not a table
    tables = [name for name in found if name not in own_names]
    if tables in (["document_text"], ["document_words"]):
        return True  # the text index has only row numbers; the rows are read by a statement that names the account
    return not set(tables) - OPERATOR_TABLES or re.search(r"WHERE .*?\baccount_id = ", statement) is not None


def test_no_row_is_read_without_its_account(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = record_statements(monkeypatch)
    run_all_operations(Engine(database, SETTINGS))
    assert len(set(recorded)) > 35
    assert [sql for sql in set(recorded) if not names_its_account(sql)] == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM messages WHERE log_id = ?",
        "DELETE FROM sessions",
        "UPDATE blobs SET refs = 0 WHERE hash = ?",
        "SELECT 1 FROM sessions WHERE account_id = ? AND x IN (SELECT id FROM messages)",
    ],
)
def test_the_statement_check_detects_a_missing_account(sql: str) -> None:
    assert not names_its_account(sql)


def test_row_level_security_hides_other_accounts_from_any_statement(postgres: PostgresServer) -> None:
    """A statement without a WHERE sees only its own account. A transaction without an account sees nothing."""
    database = PostgresDatabase(postgres.new_database())
    engine = Engine(database, SETTINGS)
    engine.start_workers(polls=False)
    for account in ("acme", "rival"):
        principal = Principal(account, "alice", "root")
        engine.call(principal, AddMessage(session_id="s", role="user", content="hello"))
        engine.call(principal, WaitUntilIdle())
    engine.stop_workers()

    def accounts_in(table: str, account: str) -> list[Any]:
        return database.read(account, lambda tx: tx.all(f"SELECT account_id FROM {table} ORDER BY 1"))

    for table in ("accounts", "sessions", "messages", "documents", "index_owners"):
        assert accounts_in(table, "acme") == [("acme",)]
        assert accounts_in(table, "*") == [("acme",), ("rival",)]
        assert accounts_in(table, "") == []
    database.write("acme", lambda tx: tx.execute("DELETE FROM messages"))
    assert database.read("*", lambda tx: tx.all("SELECT account_id FROM messages")) == [("rival",)]
    with pytest.raises(Exception, match="row-level security"):
        database.write("acme", lambda tx: tx.execute("INSERT INTO accounts VALUES ('rival2', 1)"))
    database.close()


def test_deleting_an_account_deletes_its_rows_in_every_table(database: Database) -> None:
    engine = Engine(database, SETTINGS)
    operations = all_operations()
    # From this one on, operations need a summary, which no worker makes here, or they delete rows.
    end = next(at for at, op in enumerate(operations) if isinstance(op, GetSessionArchive))
    for op in operations[:end]:
        if not {"tool_result_id", "key_id", "task_id", "link_id"} & set(op.__struct_fields__):
            engine.call(ALICE, op)
    columns = {
        "sqlite": "SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c ON c.name = 'account_id'"
        " WHERE m.type = 'table'",
        "postgres": "SELECT table_name FROM information_schema.columns"
        " WHERE column_name = 'account_id' AND table_schema = current_schema()",
    }

    def remaining_rows(tx: Any) -> dict[str, int]:
        tables = [row[0] for row in tx.all(columns[tx.dialect.name])]
        rows = {table: tx.one(f"SELECT COUNT(*) FROM {table} WHERE account_id = 'acme'")[0] for table in tables}
        return {table: count for table, count in rows.items() if count}

    assert len(database.read("*", remaining_rows)) >= 10
    engine.call(Principal("elsewhere", "operator", "root"), DeleteAccount(account_id="acme"))
    assert database.read("*", remaining_rows) == {}
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
    # They have no rows of tenants, or only words without texts, with numbers that lead to rows which are protected.
    assert sorted(rows) == [("document_words",), ("schema_migrations",), ("unchecked_tables",)]


def engine_with_fixed_clock_and_ids(file: Path) -> Engine:
    ticks = iter(range(1_700_000_000_000_000, 1_800_000_000_000_000, 1_000))
    numbers = iter(range(1, 1_000_000))

    def clock() -> int:
        return next(ticks)

    ids = Ids(clock, lambda _bits: next(numbers), lambda size: next(numbers).to_bytes(size, "big"))
    database = SqliteDatabase(str(file), boot_clock=BootClock("boot", lambda: 0))
    return Engine(database, SETTINGS, clock=clock, elapsed=lambda: 0.0, ids=ids)


def test_the_same_calls_with_a_fixed_clock_and_fixed_ids_write_the_same_bytes(tmp_path: Path) -> None:
    results, files = [], []
    for name in ("first.db", "second.db"):
        engine = engine_with_fixed_clock_and_ids(tmp_path / name)
        results.append(run_all_operations(engine))
        engine.close()
        files.append((tmp_path / name).read_bytes())
    assert results[0] == results[1]
    assert files[0] == files[1]


def test_only_one_module_registers_hooks_for_forks() -> None:
    """That module documents the order of the hooks, and handles platforms without fork."""
    package = Path(holdfast.__file__).parent
    calls = [path for path in package.rglob("*.py") if "register_at_fork" in path.read_text()]
    assert calls == [package / "forking.py"]


RECORDED_ELSEWHERE = {"AddMessage", "AddMessages", "RecordUse", "AppendUpload"}
"""Not audited: the rows that they add say who added them. The records of an upload are its beginning and its end."""


def audit_records(engine: Engine) -> set[tuple[str, str]]:
    """The action and the resource of each audit record, of both accounts and of the operator."""
    records = []
    for account in ("acme", "other", EVERY_ACCOUNT):
        records += engine.db.read(account, lambda tx: audit.page(tx, 1_000))
    return {(record.action, record.resource) for record in records}


def test_every_operation_that_changes_something_declares_what_its_audit_record_names() -> None:
    """The record names the new role and each field of the route, except the account: each account has its own audit."""
    for cls, entry in OPERATIONS.items():
        changes = not entry.reads and entry.scope != "system" and cls.__name__ not in RECORDED_ELSEWHERE
        assert (entry.audit is not None) == changes, cls.__name__
        identifying = set(re.findall(r"{(\w+)}", entry.path)) | ({"role"} & set(cls.__struct_fields__))
        identifying -= {"account_id"} if entry.scope == "account" else set()
        assert entry.audit is None or all(f"{{{name}}}" in entry.audit for name in identifying), cls.__name__


def test_the_audit_record_of_every_operation_names_what_it_changed(database: Database) -> None:
    engine = Engine(database, SETTINGS)
    seen: set[tuple[str, str]] = set()
    for op, result in run_all_operations(engine, lambda: seen.update(audit_records(engine))):
        audit_format = OPERATIONS[type(op)].audit
        if audit_format is not None:
            expected = audit_format.format(result=result, **msgspec.structs.asdict(op))
            assert (type(op).__name__, expected) in seen
            assert "None" not in expected
    assert ("SetRole", "bob role=admin") in seen
    assert any(re.fullmatch(r"CreateKey: bob key=[0-9a-f]{16}", f"{action}: {named}") for action, named in seen)
    assert any(re.fullmatch(r"CancelTask: task_\w+ session=a", f"{action}: {named}") for action, named in seen)


@pytest.mark.parametrize(
    ("audit_format", "problem"), [("{nothing}", "has no field nothing"), ("{result.id} {result}", None)]
)
def test_the_fields_in_an_audit_format_are_checked(audit_format: str, problem: str | None) -> None:
    class Probe(Operation[None], frozen=True, kw_only=True):
        probe_id: str

    try:
        declare = operation("POST /probes", audit=audit_format)
        if problem is None:
            declare(Probe)
        else:
            with pytest.raises(TypeError, match=problem):
                declare(Probe)
    finally:
        OPERATIONS.pop(Probe, None)


def test_checking_an_operation_uses_neither_the_database_nor_new_ids(database: Database) -> None:
    """A server checks on its event loop, and a client before it sends. Waiting is for `prepare`."""

    def refuse(_bits: int) -> int:
        raise AssertionError("no id may be made")

    engine = Engine(database, SETTINGS, ids=Ids(lambda: 0, refuse))
    database.close()
    for principal in (msgspec.structs.replace(ALICE, internal_id="alice"), OPERATOR):
        for op in all_operations():
            ids = {field: "0" * 16 for field in ("key_id", "link_id") if hasattr(op, field)}
            fields = {**fields_of(op), **ids}
            call = engine.check(principal, type(op), fields)
            waits_for_account = principal == OPERATOR and hasattr(op, "task_id")
            seals_first = type(op).__name__ in {
                "ListAudit",
                "ListOperatorAudit",
                "ExportAudit",
                "ExportOperatorAudit",
                "EraseAudit",
            }
            searches = type(op).__name__ in {"Find", "Search", "FindSkills"} or (
                isinstance(op, GetMessages) and op.q is not None
            )
            opens_embedder = isinstance(op, ReembedDocuments)
            hashes = isinstance(op, FinishUpload)
            reads_pack = isinstance(op, ImportPack | RestorePack)
            waits = waits_for_account or seals_first or searches or opens_embedder or hashes or reads_pack
            assert call.may_wait == waits, op
