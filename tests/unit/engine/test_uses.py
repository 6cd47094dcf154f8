"""Uses count when a session is committed, for the user who used something, and survive a restart."""

from collections.abc import Callable

import pytest

from holdfast.engine import Engine
from holdfast.engine.recall.uses import hotness
from holdfast.model.identity import Principal
from holdfast.ops.administration import CreateUser, DeleteUser
from holdfast.ops.commits import CommitSession
from holdfast.ops.sessions import AddMessage, DeleteSession, RecordUse
from holdfast.ops.sharing import ShareSession
from holdfast.store.database import Database

DAY = 86_400_000_000
ALICE = Principal("acme", "alice", "root")
NOTE = "viking://user/alice/sessions/notes#3"


@pytest.fixture
def engine(database: Database) -> Engine:
    return Engine(database)


def use(engine: Engine, principal: Principal, session_id: str, *uris: str, owner: str | None = None) -> None:
    engine.call(principal, RecordUse(session_id=session_id, owner=owner, contexts=list(uris)))


def commit(engine: Engine, session_id: str) -> None:
    engine.call(ALICE, AddMessage(session_id=session_id, role="user", content="hello"))
    engine.call(ALICE, CommitSession(session_id=session_id))


def heat(engine: Engine, user: str, *uris: str, after: int = 0) -> list[float]:
    principal = engine.prepare(engine.check(Principal("acme", user, "root"), AddMessage, MESSAGE)).principal
    found = engine.db.read("acme", lambda tx: hotness(tx, principal, uris, engine.clock() + after))
    return [round(found.get(uri, 0.0), 2) for uri in uris]


MESSAGE = {"session_id": "any", "role": "user", "content": "hello"}


def test_a_use_counts_with_the_next_commit_and_once_per_commit(engine: Engine) -> None:
    use(engine, ALICE, "chat", NOTE, NOTE, "viking://session/notes#3/")
    assert heat(engine, "alice", NOTE) == [0]
    commit(engine, "chat")
    assert heat(engine, "alice", NOTE) == [0.5]
    commit(engine, "chat")
    assert heat(engine, "alice", NOTE) == [0.5]
    for session_id in ("other", "third"):
        use(engine, ALICE, session_id, NOTE)
        commit(engine, session_id)
    assert heat(engine, "alice", NOTE) == [0.75]


def test_a_document_cools_down(engine: Engine) -> None:
    use(engine, ALICE, "chat", NOTE)
    commit(engine, "chat")
    assert [heat(engine, "alice", NOTE, after=days * DAY)[0] for days in (0, 7, 14)] == [0.5, 0.25, 0.12]


def test_uses_count_for_the_user_who_used_something(engine: Engine) -> None:
    engine.call(ALICE, AddMessage(session_id="chat", role="user", content="hello"))
    engine.call(ALICE, ShareSession(session_id="chat", user_id="bob", rights=["read", "write"]))
    use(engine, Principal("acme", "bob", "user"), "chat", NOTE, "viking://~/memories/x", owner="alice")
    commit(engine, "chat")
    bobs = "viking://user/bob/memories/x"
    assert heat(engine, "bob", NOTE, bobs) == [0.5, 0.5]
    assert heat(engine, "alice", NOTE, bobs) == [0, 0]


def test_a_name_that_is_given_again_does_not_inherit_uses(engine: Engine) -> None:
    engine.call(ALICE, AddMessage(session_id="chat", role="user", content="hello"))
    engine.call(ALICE, CreateUser(account_id="acme", user_id="bob"))
    engine.call(ALICE, ShareSession(session_id="chat", user_id="bob", rights=["read", "write"]))
    use(engine, Principal("acme", "bob", "user"), "chat", NOTE, owner="alice")
    commit(engine, "chat")
    engine.call(ALICE, DeleteUser(account_id="acme", user_id="bob"))
    engine.call(ALICE, CreateUser(account_id="acme", user_id="bob"))
    assert heat(engine, "bob", NOTE) == [0]


def test_a_new_session_with_the_name_of_a_deleted_one_is_cold(engine: Engine) -> None:
    commit(engine, "notes")
    commit(engine, "notes2")
    archive = "viking://user/alice/sessions/notes/history/archive_001"
    similar = "viking://user/alice/sessions/notes2#3"
    use(engine, ALICE, "chat", NOTE, archive, similar)
    commit(engine, "chat")
    assert heat(engine, "alice", NOTE, archive, similar) == [0.5, 0.5, 0.5]
    engine.call(ALICE, DeleteSession(session_id="notes"))
    assert heat(engine, "alice", NOTE, archive, similar) == [0, 0, 0.5]


def test_the_uses_of_others_are_forgotten_with_a_session_too(engine: Engine) -> None:
    commit(engine, "notes")
    engine.call(ALICE, AddMessage(session_id="chat", role="user", content="hello"))
    engine.call(ALICE, ShareSession(session_id="chat", user_id="bob", rights=["read", "write"]))
    kept = "viking://user/bob/memories/x"
    use(engine, Principal("acme", "bob", "user"), "chat", NOTE, kept, owner="alice")
    commit(engine, "chat")
    assert heat(engine, "bob", NOTE, kept) == [0.5, 0.5]
    engine.call(ALICE, DeleteSession(session_id="notes"))
    assert heat(engine, "bob", NOTE, kept) == [0, 0.5]


def test_uses_survive_a_restart(open_database: Callable[[], Database]) -> None:
    engine = Engine(open_database())
    use(engine, ALICE, "chat", NOTE)
    commit(engine, "chat")
    engine.close()
    restarted = Engine(open_database())
    assert heat(restarted, "alice", NOTE) == [0.5]
    restarted.close()
