"""The internal ids of callers who are known by name."""

from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.model.identity import Principal
from holdfast.ops.administration import CreateUser, DeleteUser
from holdfast.ops.sessions import AddMessage, ListSessions
from holdfast.store.database import Database

ALICE = Principal("acme", "alice", "root")
BOB = Principal("acme", "bob", "user")


def sessions_of(engine: Engine, principal: Principal) -> list[str]:
    return [row.session_id for row in engine.call(principal, ListSessions()).sessions]


def test_an_engine_sees_at_once_that_a_name_has_another_holder(database: Database) -> None:
    engine = Engine(database, Settings(key_cache_seconds=3600))
    engine.call(ALICE, AddMessage(session_id="plan", role="user", content="hello"))
    engine.call(ALICE, CreateUser(account_id="acme", user_id="bob"))
    engine.call(BOB, AddMessage(session_id="own", role="user", content="bob's secret"))
    assert sessions_of(engine, BOB) == ["own"]
    removed = engine.call(ALICE, DeleteUser(account_id="acme", user_id="bob"))
    assert sessions_of(engine, BOB) == []
    engine.call(ALICE, CreateUser(account_id="acme", user_id="bob"))
    assert sessions_of(engine, BOB) == []
    engine.call(ALICE, DeleteUser(account_id="acme", user_id="bob"))
    engine.call(ALICE, CreateUser(account_id="acme", user_id="bob", internal_id=removed.internal_id))
    assert sessions_of(engine, BOB) == ["own"]
