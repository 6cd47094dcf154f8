"""How long the results of appends are kept."""

from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.engine.engine import CLEANUP_BATCH_ROWS
from holdfast.model.identity import Principal
from holdfast.ops.sessions import AddMessage, GetMessages
from holdfast.store.database import Database

HOUR_MICROSECONDS = 3_600_000_000
START = 1_700_000_000_000_000
"""A time in 2023, in microseconds."""
ALICE = Principal("acme", "alice", "root")


def test_results_of_appends_are_deleted_after_the_configured_time(database: Database) -> None:
    now = START
    engine = Engine(database, Settings(idempotency_hours=48), clock=lambda: now)
    op = AddMessage(session_id="s", role="user", content="hi", idempotency_key="k")
    first = engine.call(ALICE, op)
    now += 47 * HOUR_MICROSECONDS
    engine.delete_expired()
    assert engine.call(ALICE, op) == first
    now += 2 * HOUR_MICROSECONDS
    engine.delete_expired()
    assert engine.call(ALICE, op).seq == 2
    assert len(engine.call(ALICE, GetMessages(session_id="s")).messages) == 2


def test_old_results_are_deleted_in_limited_batches(database: Database) -> None:
    now = START
    engine = Engine(database, clock=lambda: now)
    engine.call(ALICE, AddMessage(session_id="s", role="user", content="hi"))
    # One full batch and five rows are old, and as many are new.
    rows = [(f"k{number}", 0 if number % 2 else now) for number in range(2 * CLEANUP_BATCH_ROWS + 10)]

    def insert(tx: object) -> None:
        for key, at in rows:
            tx.execute(  # type: ignore[attr-defined]
                "INSERT INTO appends (account_id, log_id, key, fingerprint, result, at) VALUES (?, 1, ?, '', '', ?)",
                ("acme", key, at),
            )

    database.write("acme", insert)
    engine.delete_expired()
    left = database.read("*", lambda tx: tx.all("SELECT at FROM appends"))
    assert [at for (at,) in left] == [now] * (CLEANUP_BATCH_ROWS + 5)
