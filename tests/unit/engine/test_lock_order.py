"""On PostgreSQL, transactions lock rows in one order.

The row of a shared session comes before any other row. What changes the tree locks roots, then blobs, then documents.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest

from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.model.identity import OPERATOR, Principal
from holdfast.ops.commits import CommitSession
from holdfast.ops.sessions import AddMessage, DeleteSession, ForkSession, RecordUse, UpdateSession
from holdfast.ops.sharing import (
    CreateShareLink,
    RevokeShareLink,
    ShareSession,
    TransferSession,
    UnshareSession,
)
from holdfast.ops.system import WaitUntilIdle
from holdfast.ops.table import Operation
from holdfast.ops.tree.file_changes import (
    BatchOperation,
    CopyFile,
    MakeFolder,
    MoveFile,
    RemoveFile,
    RestoreFile,
    WriteFile,
    WriteFiles,
)
from holdfast.ops.tree.skills import AddSkill
from holdfast.store.drivers.postgres.database import PostgresDatabase
from holdfast.store.drivers.postgres.transactions import PostgresTx
from holdfast.testing.postgres import PostgresServer

ALICE = Principal("acme", "alice", "root")
BOB = Principal("acme", "bob", "user")
SHARED: dict[str, Any] = {"session_id": "plan", "owner": "alice"}


def make_operations(engine: Engine) -> list[tuple[Principal, Operation[Any]]]:
    """Return an operation of each kind, in an order in which each is possible."""
    engine.call(ALICE, AddMessage(session_id="plan", role="user", content="hello"))
    engine.call(ALICE, ShareSession(session_id="plan", user_id="bob", rights=["read", "write", "invoke"]))
    link = engine.call(ALICE, CreateShareLink(session_id="plan"))
    return [
        (ALICE, ShareSession(session_id="plan", user_id="carol")),
        (ALICE, CreateShareLink(session_id="plan")),
        (ALICE, RevokeShareLink(session_id="plan", link_id=link.id)),
        (BOB, AddMessage(**SHARED, role="user", content="from bob")),
        (BOB, RecordUse(**SHARED, contexts=["viking://x"])),
        (BOB, UpdateSession(**SHARED, title="The plan")),
        (BOB, ForkSession(**SHARED, new_session_id="mine")),
        (BOB, CommitSession(**SHARED)),
        (BOB, UnshareSession(**SHARED, user_id="bob")),
        (ALICE, UnshareSession(session_id="plan", user_id="carol")),
        (ALICE, TransferSession(session_id="plan", user_id="bob")),
        (BOB, DeleteSession(session_id="plan")),
    ]


class Locking(NamedTuple):
    """A statement that changes or locks rows."""

    sql: str
    params: tuple[Any, ...]


def record_locks(monkeypatch: pytest.MonkeyPatch) -> dict[PostgresTx, list[Locking]]:
    """Record the statements of each transaction that change rows or wait for a lock."""
    recorded: dict[PostgresTx, list[Locking]] = {}

    def record(tx: PostgresTx, statements: Sequence[tuple[str, Any]]) -> None:
        changes = ("INSERT", "UPDATE", "DELETE")
        recorded.setdefault(tx, []).extend(
            Locking(sql, tuple(params))
            for sql, params in statements
            if sql.startswith(changes) or sql.endswith(" FOR NO KEY UPDATE")
        )

    def recording(method: Callable[..., Any]) -> Callable[..., Any]:
        def record_and_run(self: PostgresTx, sql: str, params: Any = ()) -> Any:
            record(self, [(sql, params)])
            return method(self, sql, params)

        return record_and_run

    run_all = PostgresTx.all_of

    def record_and_run_all(self: PostgresTx, statements: Any) -> Any:
        record(self, statements)
        return run_all(self, statements)

    for name in ("execute", "one", "all"):
        monkeypatch.setattr(PostgresTx, name, recording(getattr(PostgresTx, name)))
    monkeypatch.setattr(PostgresTx, "all_of", record_and_run_all)
    return recorded


def locks_session(statement: Locking) -> bool:
    return statement.sql.startswith("SELECT") and " FROM sessions s WHERE " in statement.sql


def test_the_row_of_a_session_is_locked_before_any_other(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(PostgresDatabase(postgres.new_database()))
    operations = make_operations(engine)
    recorded = record_locks(monkeypatch)
    for principal, op in operations:
        recorded.clear()
        engine.call(principal, op)
        of_session = [statements for statements in recorded.values() if any(map(locks_session, statements))]
        assert of_session, type(op).__name__
        assert all(locks_session(statements[0]) for statements in of_session), (type(op).__name__, of_session)
    engine.close()


SHARED_TABLES = ("tree_roots", "file_blobs", "index_owners")
"""The tables whose rows transactions on different nodes share, in the order in which they are locked."""
TOP = "viking://resources"
PAGES = [f"<html><body><h1>Shore {number}</h1><p>limpet</p></body></html>" for number in range(7)]


def tree_operations() -> list[Operation[Any]]:
    """Return operations that change the tree, in an order in which each is possible."""
    batch = [BatchOperation(uri=f"{TOP}/top/{place}.html", content=text) for place, text in enumerate(PAGES)]
    return [
        MakeFolder(uri=f"{TOP}/top"),
        WriteFile(uri=f"{TOP}/top/one.md", content="# One"),
        WriteFile(uri=f"{TOP}/top/one.md", content=" and more", mode="append"),
        WriteFiles(root_uri=f"{TOP}/top", operations=batch),
        CopyFile(from_uri=f"{TOP}/top", to_uri="viking://user/alice/resources/copy", recursive=True),
        MoveFile(from_uri=f"{TOP}/top/one.md", to_uri="viking://user/alice/resources/one.md"),
        MoveFile(from_uri="viking://user/alice/resources/copy", to_uri=f"{TOP}/other"),
        RemoveFile(uri=f"{TOP}/other", recursive=True),
        RestoreFile(uri=f"{TOP}/other"),
        RestoreFile(uri="viking://user/alice/resources/one.md", version=1),
        AddSkill(data="---\nname: helper\ndescription: It helps.\n---\nHelp."),
    ]


def tables_of(statements: Sequence[Locking]) -> list[str]:
    """Return the tables of the tree that statements change or lock, in their order."""
    found = [re.search(r"(?:INTO|UPDATE|FROM) (\w+)", each.sql) for each in statements]
    return [match[1] for match in found if match and match[1] in (*SHARED_TABLES, "nodes")]


def check_order(name: str, statements: Sequence[Locking]) -> None:
    tables = tables_of(statements)
    shared = [table for table in tables if table in SHARED_TABLES]
    assert shared == sorted(shared, key=SHARED_TABLES.index), (name, tables)
    staged = any("staging/" in str(each.params) for each in statements)  # only its own task changes such a root
    assert staged or "nodes" not in tables or tables[0] == "tree_roots", (name, tables)
    hashes = [each.params[1] for each in statements if each.sql.startswith("INSERT INTO file_blobs")]
    first = list(dict.fromkeys(hashes))
    assert first == sorted(first), name


def test_roots_are_locked_before_nodes_and_blobs_before_documents(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(PostgresDatabase(postgres.new_database()), Settings(worker_threads=1))
    recorded = record_locks(monkeypatch)
    for op in tree_operations():
        engine.call(ALICE, op)
    engine.start_workers(polls=False)
    engine.call(OPERATOR, WaitUntilIdle())
    engine.call(ALICE, MoveFile(from_uri=f"{TOP}/top", to_uri="viking://user/alice/resources/moved"))
    engine.call(ALICE, RemoveFile(uri=f"{TOP}/other", recursive=True))
    engine.call(OPERATOR, WaitUntilIdle())
    engine.stop_workers()
    for statements in recorded.values():
        check_order(str([each.sql[:60] for each in statements]), statements)
    orders = {tuple(dict.fromkeys(tables_of(statements))) for statements in recorded.values()}
    assert ("tree_roots", "nodes", "file_blobs", "index_owners") in orders
    engine.close()
