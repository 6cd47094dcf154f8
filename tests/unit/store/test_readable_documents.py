"""Which documents a caller may read: own ones, those of shared sessions, and what forks have inherited."""

from functools import partial
from typing import Any

import pytest

from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.model.identity import OPERATOR, Principal
from holdfast.ops.commits import CommitSession
from holdfast.ops.sessions import AddMessage, DeleteSession, ForkSession
from holdfast.ops.sharing import ShareSession, TransferSession, UnshareSession
from holdfast.ops.system import WaitUntilIdle
from holdfast.store.access.grants import Grantee
from holdfast.store.access.search import readable_documents, search_state
from holdfast.store.access.search.readable_documents import DocumentFilter
from holdfast.store.database import Database, Tx

ALICE, BOB, CAROL = (Principal("acme", user, "root", internal_id=user) for user in ("alice", "bob", "carol"))
EVERYTHING = DocumentFilter()


@pytest.fixture
def engine(database: Database) -> Engine:
    """Alice has two sessions: `open`, of which Bob may read four messages about foxes, and `closed`."""
    engine = Engine(database, Settings(worker_threads=0))
    for number in range(1, 5):
        add(engine, ALICE, "open", f"fox {number}")
    add(engine, ALICE, "closed", "fox secret")
    engine.call(ALICE, ShareSession(session_id="open", user_id="bob", rights=["read"]))
    run_workers(engine)
    return engine


def add(engine: Engine, principal: Principal, session_id: str, text: str, owner: str | None = None) -> None:
    engine.call(principal, AddMessage(session_id=session_id, role="user", content=text, owner=owner))


def run_workers(engine: Engine) -> None:
    worker = Engine(engine.db, Settings(worker_threads=1))
    worker.start_workers(polls=False)
    worker.call(OPERATOR, WaitUntilIdle())
    worker.stop_workers()


def shared(engine: Engine, principal: Principal, wanted: DocumentFilter = EVERYTHING, limit: int = 100) -> list[Any]:
    """The owner, the kind and the number of each document about foxes that others share with the principal."""
    grantee = Grantee(principal.internal_id, "default")

    def search(tx: Tx) -> list[Any]:
        ranges = search_state.read(tx, grantee, None).shared
        found, nothing = readable_documents.shared_candidates(tx, ranges, [["fox"], []], wanted, limit)
        assert nothing == []
        places = [(each.log_id, each.number) for each in found]
        sessions = readable_documents.sessions_of_documents(tx, grantee, places)
        assert None not in sessions
        return [
            (session.session_id, each.kind, each.number)
            for each, session in zip(found, sessions, strict=True)
            if session
        ]

    return sorted(engine.db.read("acme", search))


def pending(engine: Engine, principal: Principal) -> list[Any]:
    """The number of pending log ranges, and the first and last message of each."""
    grantee = Grantee(principal.internal_id, "default")

    def read(tx: Tx) -> list[Any]:
        ranges = search_state.read(tx, grantee, None).shared
        found = readable_documents.pending_ranges(
            tx, tx.all(*readable_documents.select_unindexed(tx)), grantee, ranges, EVERYTHING
        )
        return [(each.first, min(each.last, 99)) for each in found]

    return sorted(engine.db.read("acme", read))


def messages(session_id: str, *numbers: int) -> list[Any]:
    return [(session_id, "message", number) for number in numbers]


def test_a_grant_opens_the_documents_of_its_session_until_it_is_withdrawn(engine: Engine) -> None:
    assert shared(engine, BOB) == messages("open", 1, 2, 3, 4)
    assert (shared(engine, CAROL), shared(engine, ALICE)) == ([], [])
    engine.call(ALICE, UnshareSession(session_id="open", user_id="bob"))
    assert shared(engine, BOB) == []


def test_a_right_to_write_alone_opens_no_document(engine: Engine) -> None:
    engine.call(ALICE, ShareSession(session_id="closed", user_id="carol", rights=["write"]))
    assert shared(engine, CAROL) == []


def test_a_fork_keeps_the_documents_that_it_shares_and_no_later_ones(engine: Engine) -> None:
    engine.call(BOB, ForkSession(session_id="open", owner="alice", at=2, new_session_id="fork"))
    engine.call(ALICE, UnshareSession(session_id="open", user_id="bob"))
    assert shared(engine, BOB) == messages("fork", 1, 2)
    assert shared(engine, BOB, limit=1) == messages("fork", 2), "later messages of the log do not use up the limit"
    engine.call(BOB, ForkSession(session_id="fork", at=1, new_session_id="second-fork"))
    engine.call(BOB, DeleteSession(session_id="fork"))
    assert shared(engine, BOB) == messages("second-fork", 1)


def test_a_shared_fork_opens_what_it_inherited(engine: Engine) -> None:
    engine.call(BOB, ForkSession(session_id="open", owner="alice", at=3, new_session_id="fork"))
    engine.call(BOB, ShareSession(session_id="fork", user_id="carol", rights=["read"]))
    add(engine, BOB, "fork", "fox of bob")
    run_workers(engine)
    assert shared(engine, CAROL) == messages("fork", 1, 2, 3, 4)


def test_a_fork_of_a_deleted_session_finds_what_it_inherited_before_and_after_it_is_indexed_again(
    engine: Engine,
) -> None:
    engine.call(BOB, ForkSession(session_id="open", owner="alice", at=2, new_session_id="fork"))
    engine.call(ALICE, DeleteSession(session_id="open"))
    assert (shared(engine, BOB), pending(engine, BOB)) == ([], [(1, 2)])
    assert (shared(engine, CAROL), pending(engine, CAROL)) == ([], [])
    run_workers(engine)
    assert (shared(engine, BOB), pending(engine, BOB)) == (messages("fork", 1, 2), [])


def test_documents_of_a_transferred_session_are_not_found_until_they_are_indexed_again(engine: Engine) -> None:
    engine.call(ALICE, TransferSession(session_id="open", user_id="carol", keep_rights=[]))
    assert (shared(engine, BOB), pending(engine, BOB)) == ([], [(1, 99)])
    assert (pending(engine, ALICE), pending(engine, CAROL)) == ([], [(1, 99)])
    run_workers(engine)
    assert (shared(engine, BOB), pending(engine, BOB)) == (messages("open", 1, 2, 3, 4), [])


def test_pending_messages_are_those_that_the_caller_may_read(engine: Engine) -> None:
    add(engine, ALICE, "open", "fox 5")
    add(engine, ALICE, "closed", "fox secret 2")
    add(engine, CAROL, "own", "fox")
    assert (pending(engine, ALICE), pending(engine, BOB)) == ([(2, 99), (5, 99)], [(5, 99)])
    assert pending(engine, CAROL) == [(1, 99)]


def test_an_overview_is_shared_with_its_session_and_not_with_parts_of_its_log(engine: Engine) -> None:
    engine.call(BOB, ForkSession(session_id="open", owner="alice", at=4, new_session_id="fork"))
    engine.call(ALICE, CommitSession(session_id="open"))
    run_workers(engine)
    assert [each for each in shared(engine, BOB) if each[1] == "overview"] == [("open", "overview", 1)]
    engine.call(ALICE, UnshareSession(session_id="open", user_id="bob"))
    assert shared(engine, BOB) == messages("fork", 1, 2, 3, 4)


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        (DocumentFilter(kinds=["message"], levels=[2]), [1, 2, 3, 4]),
        (DocumentFilter(kinds=["overview"]), []),
        (DocumentFilter(levels=[0, 1]), []),
        (DocumentFilter(log_ids=[1]), []),
        (DocumentFilter(until=1), []),
        (DocumentFilter(since=1), [1, 2, 3, 4]),
        (DocumentFilter(tags=["100%_!"]), []),
    ],
)
def test_documents_are_filtered_in_the_database(engine: Engine, wanted: DocumentFilter, numbers: list[int]) -> None:
    assert shared(engine, BOB, wanted) == messages("open", *numbers)


def test_tags_are_compared_whole(engine: Engine) -> None:
    def set_values(tx: Tx) -> None:
        tx.execute("UPDATE documents SET tags = '[\"red\",\"100%_!\"]' WHERE account_id = 'acme' AND number = 3")

    engine.db.write("acme", set_values)
    assert shared(engine, BOB, DocumentFilter(tags=["100%_!", "red"])) == messages("open", 3)
    for tags in (["re"], ["red", "blue"]):
        assert shared(engine, BOB, DocumentFilter(tags=tags)) == [], tags


def test_more_shared_logs_than_a_query_can_name_are_searched_too(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readable_documents, "MAX_SCOPES", 2)
    for number in range(3):
        add(engine, ALICE, f"s{number}", "fox")
        engine.call(ALICE, ShareSession(session_id=f"s{number}", user_id="bob", rights=["read"]))
    run_workers(engine)
    expected = [*messages("open", 1, 2, 3, 4), *messages("s0", 1), *messages("s1", 1), *messages("s2", 1)]
    assert shared(engine, BOB) == expected


def test_a_document_that_the_caller_may_not_read_has_no_session(engine: Engine) -> None:
    rows = engine.db.read("acme", lambda tx: tx.all("SELECT log_id, number FROM documents ORDER BY n"))
    for principal, count in ((ALICE, 5), (BOB, 4), (CAROL, 0)):
        grantee = Grantee(principal.internal_id, "default")
        places: list[tuple[int, int]] = [(row[0], row[1]) for row in rows]
        find = partial(readable_documents.sessions_of_documents, grantee=grantee, places=places)
        found = engine.db.read("acme", find)
        assert sum(session is not None for session in found) == count
