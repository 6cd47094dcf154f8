"""What a search finds and how it ranks depends only on what the caller may read, at the time of the call."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.engine.gate.keys import KeyOwner
from holdfast.engine.recall import document_search
from holdfast.model.identity import OPERATOR, Principal
from holdfast.model.messages import NewMessage
from holdfast.ops.administration import CreateAccount, CreateUser, DeleteAccount, DeleteUser
from holdfast.ops.search import Search
from holdfast.ops.sessions import AddMessages, DeleteSession, ForkSession
from holdfast.ops.sharing import (
    CreateShareLink,
    ListShareLinks,
    RevokeShareLink,
    ShareSession,
    TransferSession,
    UnshareSession,
)
from holdfast.store.access import accounts
from holdfast.store.access.search import readable_documents
from holdfast.store.database import Database
from holdfast.testing.faults.watching import wait_for

ALICE, BOB, CAROL = (Principal("acme", user, "user", internal_id=user) for user in ("alice", "bob", "carol"))
RIVAL = Principal("rival", "alice", "user", internal_id="alice")
START = datetime(2026, 3, 1, 9, tzinfo=UTC)
AS_OF = "2026-06-01T00:00:00Z"
QUERIES = [
    "Where did Ann put the harpoon?",
    "What did we say about the lighthouse two months ago?",
    "ORD-4711 config.yaml",
    "what did you recommend about the harbour?",
    "狐狸 harpoon",
    "zeppelin",
]
RunTasks = Callable[..., None]


@pytest.fixture(autouse=True)
def other_accounts(engine: Engine) -> None:
    engine.db.write("rival", lambda tx: accounts.insert(tx, "rival", 1))


def turns(count: int, salt: int = 0) -> list[NewMessage]:
    """Messages with the same words, speakers and times for everyone, in another order for each salt."""
    names = ["Ann: ", "Bob: ", ""]
    subjects = ["harpoon", "lighthouse", "harbour", "ORD-4711", "config.yaml", "狐狸在花园里", "weather", "zeppelin"]
    return [
        NewMessage(
            role="assistant" if (number + salt) % 3 == 1 else "user",
            content=f"{names[(number + salt) % 3]}the {subjects[(number * (salt + 1)) % 8]} is {number}",
            created_at=START + timedelta(hours=7 * number),
        )
        for number in range(count)
    ]


def add(engine: Engine, principal: Principal, session_id: str, messages: Sequence[NewMessage], **fields: Any) -> None:
    for first in range(0, len(messages), 100):
        op = AddMessages(session_id=session_id, messages=list(messages[first : first + 100]), **fields)
        engine.call(principal, op)


def texts(*contents: str) -> list[NewMessage]:
    return [NewMessage(role="user", content=text, created_at=START) for text in contents]


def search(engine: Engine, principal: Principal, query: str, **fields: Any) -> Any:
    return engine.call(principal, Search(query=query, as_of=AS_OF, **fields))


def found(engine: Engine, principal: Principal, query: str, **fields: Any) -> set[tuple[str, int]]:
    return {(hit.session_id, hit.seq) for hit in search(engine, principal, query, **fields).messages}


def answers(engine: Engine, principal: Principal, **fields: Any) -> list[bytes]:
    """The whole answers as bytes: hits, scores, reasons, neighbours, and the counts of the receipt."""
    return [
        msgspec.json.encode(search(engine, principal, query, mode="context", limit=50, **fields)) for query in QUERIES
    ]


def guest_of(engine: Engine, owner: Principal, session_id: str) -> Principal:
    link = engine.call(owner, CreateShareLink(session_id=session_id, rights=["read"]))
    guest = engine.find_key_owner(link.token)
    assert isinstance(guest, KeyOwner)
    return guest.principal


def test_others_documents_change_no_byte_of_an_answer(
    engine: Engine, run_tasks: RunTasks, open_database: Callable[[], Database]
) -> None:
    add(engine, ALICE, "own", turns(70))
    add(engine, BOB, "shared", turns(40, salt=1))
    add(engine, BOB, "base", turns(30, salt=2))
    for session_id in ("shared", "base"):
        engine.call(BOB, ShareSession(session_id=session_id, user_id="alice", rights=["read"]))
    engine.call(ALICE, ForkSession(session_id="base", owner="bob", at=10, new_session_id="fork"))
    engine.call(BOB, UnshareSession(session_id="base", user_id="alice"))
    run_tasks()
    callers = (ALICE, guest_of(engine, BOB, "shared"))
    another = Engine(open_database(), Settings(worker_threads=0))

    def add_others(salt: int) -> None:
        for other in (BOB, CAROL, RIVAL):
            add(engine, other, f"noise{salt}", turns(250, salt))
        add(engine, BOB, "base", turns(50, salt))

    before = [answers(engine, caller) for caller in callers]
    assert all(b'"score":0.' in answer for answer in before[0][:4])
    for salt in (1, 2):
        add_others(salt)
        assert [answers(engine, caller) for caller in callers] == before  # those of others are pending
        run_tasks()
        assert [answers(engine, caller) for caller in callers] == before
        assert [answers(another, caller) for caller in callers] == before
    add(engine, ALICE, "own", turns(5, salt=3))
    add(engine, BOB, "shared", turns(5, salt=4))
    with_pending = [answers(engine, caller) for caller in callers]
    assert with_pending != before
    add_others(5)
    assert [answers(engine, caller) for caller in callers] == with_pending
    assert [answers(another, caller) for caller in callers] == with_pending


def test_the_message_after_what_a_fork_inherited_changes_no_score(engine: Engine, run_tasks: RunTasks) -> None:
    add(engine, BOB, "base", turns(10))
    engine.call(BOB, ShareSession(session_id="base", user_id="alice", rights=["read"]))
    engine.call(ALICE, ForkSession(session_id="base", owner="bob", at=10, new_session_id="fork"))
    engine.call(BOB, UnshareSession(session_id="base", user_id="alice"))
    before = answers(engine, ALICE)
    assert found(engine, ALICE, "harpoon lighthouse harbour") >= {("fork", 1)}
    secret = NewMessage(
        role="user", content="the harpoon and the lighthouse of the harbour, ORD-4711", created_at=START
    )
    add(engine, BOB, "base", [secret])
    assert answers(engine, ALICE) == before
    run_tasks()
    indexed = answers(engine, ALICE)
    add(engine, BOB, "base", [secret, secret])
    assert answers(engine, ALICE) == indexed
    run_tasks()
    assert answers(engine, ALICE) == indexed
    assert all(seq <= 10 for _, seq in found(engine, ALICE, "harpoon"))


@pytest.mark.parametrize("is_indexed", [False, True])
def test_what_is_not_shared_any_more_is_not_found_by_the_next_call(
    engine: Engine, run_tasks: RunTasks, is_indexed: bool
) -> None:
    secret = texts("the zeppelin leaves at dawn", "from the old tower")

    def settle() -> None:
        if is_indexed:
            run_tasks()

    def nothing(principal: Principal) -> bool:
        result = search(engine, principal, "zeppelin old tower", mode="context")
        return (result.total, result.stats.searched) == (0, 0)

    for session_id in ("unshared", "left", "linked", "deleted"):
        add(engine, ALICE, session_id, secret)
    for session_id in ("unshared", "left", "deleted"):
        engine.call(ALICE, ShareSession(session_id=session_id, user_id="bob", rights=["read"]))
    expiring = ShareSession(session_id="linked", user_id="carol", rights=["read"], expires_in_seconds=1)
    engine.call(ALICE, expiring)
    guest = guest_of(engine, ALICE, "linked")
    settle()
    assert found(engine, guest, "zeppelin") == {("linked", 1), ("linked", 2)}
    assert {session for session, _ in found(engine, BOB, "zeppelin")} == {"unshared", "left", "deleted"}
    engine.call(ALICE, UnshareSession(session_id="unshared", user_id="bob"))
    assert {session for session, _ in found(engine, BOB, "zeppelin")} == {"left", "deleted"}
    engine.call(BOB, UnshareSession(session_id="left", owner="alice", user_id="bob"))
    assert {session for session, _ in found(engine, BOB, "zeppelin")} == {"deleted"}
    engine.call(ALICE, DeleteSession(session_id="deleted"))
    assert nothing(BOB)
    (link,) = engine.call(ALICE, ListShareLinks(session_id="linked")).links
    engine.call(ALICE, RevokeShareLink(session_id="linked", link_id=link.id))
    assert nothing(guest)
    wait_for(lambda: nothing(CAROL))
    for session_id in ("unshared", "left"):
        engine.call(ALICE, DeleteSession(session_id=session_id))
    assert {session for session, _ in found(engine, ALICE, "zeppelin")} == {"linked"}
    settle()
    assert nothing(BOB)


@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_transferred_session_is_found_by_its_new_owner_alone(
    engine: Engine, run_tasks: RunTasks, is_indexed: bool
) -> None:
    add(engine, ALICE, "plans", texts("the zeppelin", "leaves at dawn", "from the old tower", "without us"))
    engine.call(ALICE, ForkSession(session_id="plans", at=2, new_session_id="fork"))
    add(engine, BOB, "own", texts("hello"))
    if is_indexed:
        run_tasks()
    everything = {("plans", number) for number in range(1, 5)}
    assert found(engine, ALICE, "zeppelin tower") == everything  # so that caches have it
    inherited = {("fork", 1), ("fork", 2)}
    engine.call(ALICE, TransferSession(session_id="plans", user_id="bob", keep_rights=[]))
    for _ in range(2):
        assert found(engine, BOB, "zeppelin tower") == {*everything, ("own", 1)}
        assert found(engine, ALICE, "zeppelin tower") == inherited
        scores = [hit.score for hit in search(engine, ALICE, "zeppelin").messages]
        add(engine, BOB, "plans", texts("a secret zeppelin"))
        assert [hit.score for hit in search(engine, ALICE, "zeppelin").messages] == scores
        engine.call(BOB, DeleteSession(session_id="own"))
        run_tasks()
        add(engine, BOB, "own", texts("hello"))
        everything |= {("plans", len(everything) + 1)}


def test_what_was_transferred_changes_no_score_of_what_a_fork_has_inherited(
    engine: Engine, run_tasks: RunTasks
) -> None:
    found_scores = []
    for text in ("nothing of interest", "the old zeppelin"):
        add(engine, ALICE, "plans", texts("the zeppelin", "leaves at dawn", text))
        engine.call(ALICE, ForkSession(session_id="plans", at=2, new_session_id="fork"))
        run_tasks()
        search(engine, ALICE, "zeppelin at dawn")  # so that caches have it
        engine.call(ALICE, TransferSession(session_id="plans", user_id="bob", keep_rights=[]))
        hits = search(engine, ALICE, "zeppelin at dawn").messages
        found_scores.append([(hit.session_id, hit.seq, hit.score, hit.reasons) for hit in hits])
        engine.call(ALICE, DeleteSession(session_id="fork"))
        engine.call(BOB, DeleteSession(session_id="plans"))
        run_tasks()
    assert [(session_id, seq) for session_id, seq, *_ in sorted(found_scores[0], key=lambda hit: hit[1])] == [
        ("fork", 1),
        ("fork", 2),
    ]
    assert found_scores[0] == found_scores[1]


def test_an_account_or_a_user_with_the_name_of_a_deleted_one_finds_nothing_old(
    engine: Engine, run_tasks: RunTasks
) -> None:
    def new_user(name: str) -> Principal:
        key = engine.call(OPERATOR, CreateUser(account_id="firm", user_id=name, role="user")).user_key
        owner = engine.find_key_owner(key)
        assert isinstance(owner, KeyOwner)
        return owner.principal

    for round_number in range(3):
        engine.call(OPERATOR, CreateAccount(account_id="firm"))
        dora = new_user("dora")
        for text in ("the zeppelin leaves", "from the old tower"):
            assert search(engine, dora, "zeppelin tower", mode="context").stats.searched == 0
            add(engine, dora, "plans", texts(f"{text} {round_number}", "another one"))
            if round_number != 1:
                run_tasks()
            hits = search(engine, dora, "zeppelin tower").messages
            assert {hit.seq for hit in hits} == {1, 2}
            assert {hit.text for hit in hits} == {f"{text} {round_number}", "another one"}
            engine.call(OPERATOR, DeleteUser(account_id="firm", user_id="dora"))
            dora = new_user("dora")
        engine.call(OPERATOR, DeleteAccount(account_id="firm"))


def test_two_databases_in_one_process_do_not_share_what_was_read(
    engine: Engine, run_tasks: RunTasks, tmp_path: Any
) -> None:
    """A copy of a database has the same accounts, with the same times of creation, and the same sessions."""
    from holdfast.store.drivers.sqlite.database import SqliteDatabase  # noqa: PLC0415

    other_database = SqliteDatabase(str(tmp_path / "other.db"))
    other_database.migrate(0)
    other_database.write("acme", lambda tx: accounts.insert(tx, "acme", 1))
    other = Engine(other_database, Settings(worker_threads=0))
    for each, text in ((engine, "the red zeppelin"), (other, "a green balloon")):
        add(each, ALICE, "s", texts(text, "and so on"))
    run_tasks()
    worker = Engine(other_database, Settings(worker_threads=1))
    other_database.write("*", lambda tx: tx.execute("UPDATE unindexed SET due_at = 0"))
    worker.start_workers(polls=False)
    assert worker.workers is not None
    worker.workers.close(30)
    first = search(engine, ALICE, "red zeppelin").messages[0]
    second = search(other, ALICE, "red zeppelin").messages
    assert first.text == "the red zeppelin"
    assert first.score > 0.2 > max(hit.score for hit in second)
    other.close()


def test_many_shared_sessions_are_searched_exactly_among_any_number_of_others(
    engine: Engine, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readable_documents, "MAX_SCOPES", 3)
    monkeypatch.setattr(readable_documents, "MAX_HITS", 100)
    for number in range(8):
        add(engine, BOB, f"shared{number}", turns(9, salt=number))
        engine.call(BOB, ShareSession(session_id=f"shared{number}", user_id="alice", rights=["read"]))
    run_tasks()
    before = answers(engine, ALICE)
    assert len({session for session, _ in found(engine, ALICE, "harpoon lighthouse weather", limit=100)}) == 8
    for number in range(3):
        add(engine, CAROL, f"noise{number}", turns(300, salt=number))
    run_tasks()
    assert answers(engine, ALICE) == before


def test_own_and_shared_pending_messages_are_found_however_many_others_are_pending(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readable_documents, "MAX_PENDING_LOGS", 4)
    for number in range(2):
        add(engine, ALICE, f"own{number}", turns(6, salt=number))
        add(engine, BOB, f"shared{number}", turns(6, salt=number))
        engine.call(BOB, ShareSession(session_id=f"shared{number}", user_id="alice", rights=["read"]))
    before = answers(engine, ALICE)
    assert {session for session, _ in found(engine, ALICE, "harpoon", limit=50)} == {
        *("own0", "own1", "shared0", "shared1")
    }
    for number in range(12):
        add(engine, (BOB, CAROL)[number % 2], f"noise{number}", turns(6, salt=number))
    assert answers(engine, ALICE) == before


def test_a_full_vocabulary_and_full_caches_change_no_byte_of_an_answer(
    engine: Engine, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(engine, ALICE, "own", turns(60))
    run_tasks()
    before = answers(engine, ALICE)
    with monkeypatch.context() as patched:
        patched.setattr("holdfast.search.terms.MAX_WORDS", 0)
        patched.setattr("holdfast.engine.recall.document_pool.MAX_CACHED", 7)
        patched.setattr("holdfast.engine.recall.owner_tables.MAX_ROWS", 1)
        assert answers(engine, ALICE) == before
    assert answers(engine, ALICE) == before
    document_search._vocabulary._clear()
    assert answers(engine, ALICE) == before
