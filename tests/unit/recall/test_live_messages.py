"""The live messages of a session, wherever they are stored."""

from collections.abc import Callable

from holdfast.engine import Engine
from holdfast.engine.recall.results.live_messages import is_message_in, live_ranges
from holdfast.engine.recall.retrieval import RankedDocument
from holdfast.model.identity import Principal
from holdfast.ops.commits import CommitSession
from holdfast.ops.sessions import ForkSession
from holdfast.store.database import Tx
from holdfast.store.tables import sessions

ALICE = Principal("acme", "alice", "root")


def message(log_id: int, number: int) -> RankedDocument:
    return RankedDocument(
        kind="message",
        owner_id="alice",
        log_id=log_id,
        number=number,
        level=2,
        tags=[],
        created_at=0,
        score=0.5,
        reasons=[],
    )


def test_a_fork_has_live_messages_in_the_log_of_its_parent(
    engine: Engine, add_messages: Callable[..., None], run_tasks: Callable[..., None]
) -> None:
    add_messages([f"message {n}" for n in range(1, 7)], "parent")
    engine.call(ALICE, CommitSession(session_id="parent", keep_recent_count=4))
    run_tasks()
    engine.call(ALICE, ForkSession(session_id="parent", at=5, new_session_id="fork"))
    add_messages(["another"], "fork")

    def live(tx: Tx) -> list[tuple[str, int]]:
        parent, fork = (sessions.find(tx, "alice", each) for each in ("parent", "fork"))
        assert parent is not None
        assert fork is not None
        ranges = live_ranges(tx, fork)
        logs = {"parent": parent.log_id, "fork": fork.log_id}
        return [
            (name, number)
            for name, log_id in logs.items()
            for number in range(1, 8)
            if is_message_in(message(log_id, number), ranges)
        ]

    assert engine.db.read("acme", live) == [("parent", 3), ("parent", 4), ("parent", 5), ("fork", 6)]
    assert engine.db.read("acme", lambda tx: live_ranges(tx, None)) == []
