"""How long the results of appends are remembered."""

from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.engine.engine import FORGET_AT_ONCE
from holdfast.model.identity import Principal
from holdfast.ops.sessions import AddMessage, GetMessages
from holdfast.store.database import Database

HOUR = 3_600_000_000
WHO = Principal("acme", "alice", "root")


def test_results_of_appends_are_forgotten_once_they_are_old_and_not_before(database: Database) -> None:
    now = 1_700_000_000_000_000
    engine = Engine(database, Settings(idempotency_hours=48), clock=lambda: now)
    op = AddMessage(session_id="s", role="user", content="hi", idempotency_key="k")
    first = engine.call(WHO, op)
    now += 47 * HOUR
    engine.tidy()
    assert engine.call(WHO, op) == first
    now += 2 * HOUR
    engine.tidy()
    assert engine.call(WHO, op).seq == 2
    assert len(engine.call(WHO, GetMessages(session_id="s")).messages) == 2


def test_however_many_there_are_they_are_forgotten_a_few_at_a_time(database: Database) -> None:
    now = 1_700_000_000_000_000
    engine = Engine(database, clock=lambda: now)
    engine.call(WHO, AddMessage(session_id="s", role="user", content="hi"))
    rows = [(f"k{number}", 0 if number % 2 else now) for number in range(2 * FORGET_AT_ONCE + 10)]

    def insert(tx: object) -> None:
        for key, at in rows:
            tx.execute(  # type: ignore[attr-defined]
                "INSERT INTO appends (account_id, log_id, key, fingerprint, result, at) VALUES (?, 1, ?, '', '', ?)",
                ("acme", key, at),
            )

    database.write("acme", insert)
    engine.tidy()
    left = database.read("*", lambda tx: tx.all("SELECT at FROM appends"))
    assert [at for (at,) in left] == [now] * (FORGET_AT_ONCE + 5)
