"""On PostgreSQL, everything that changes a shared session locks its row before any other row."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from holdfast.engine import Engine
from holdfast.model.identity import Principal
from holdfast.ops.commits import CommitSession
from holdfast.ops.sessions import AddMessage, DeleteSession, ForkSession, RecordUse, UpdateSession
from holdfast.ops.sharing import (
    CreateShareLink,
    RevokeShareLink,
    ShareSession,
    TransferSession,
    UnshareSession,
)
from holdfast.ops.table import Operation
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


def record_locks(monkeypatch: pytest.MonkeyPatch) -> dict[PostgresTx, list[str]]:
    """Record the statements of each transaction that change rows or wait for a lock."""
    recorded: dict[PostgresTx, list[str]] = {}

    def record(tx: PostgresTx, statements: Sequence[str]) -> None:
        changes = ("INSERT", "UPDATE", "DELETE")
        recorded.setdefault(tx, []).extend(
            sql for sql in statements if sql.startswith(changes) or sql.endswith(" FOR NO KEY UPDATE")
        )

    def recording(method: Callable[..., Any]) -> Callable[..., Any]:
        def record_and_run(self: PostgresTx, sql: str, params: Any = ()) -> Any:
            record(self, [sql])
            return method(self, sql, params)

        return record_and_run

    run_all = PostgresTx.all_of

    def record_and_run_all(self: PostgresTx, statements: Any) -> Any:
        record(self, [sql for sql, _ in statements])
        return run_all(self, statements)

    for name in ("execute", "one", "all"):
        monkeypatch.setattr(PostgresTx, name, recording(getattr(PostgresTx, name)))
    monkeypatch.setattr(PostgresTx, "all_of", record_and_run_all)
    return recorded


def locks_session(sql: str) -> bool:
    return sql.startswith("SELECT") and " FROM sessions s WHERE " in sql


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
