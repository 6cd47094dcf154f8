"""An engine without workers on each database, and ways to write messages and to run the background tasks."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.model.identity import Principal
from holdfast.model.messages import NewMessage
from holdfast.ops.sessions import AddMessages
from holdfast.store.access import accounts
from holdfast.store.database import Database

ALICE = Principal("acme", "alice", "root")
RunTasks = Callable[..., None]
AddTexts = Callable[..., None]


@pytest.fixture
def engine(database: Database) -> Engine:
    database.write("acme", lambda tx: accounts.insert(tx, "acme", 1))
    return Engine(database, Settings(worker_threads=0))


@pytest.fixture
def run_tasks(engine: Engine) -> RunTasks:
    """Runs all background tasks, with other settings if given, as a worker process would."""

    def run(**settings: Any) -> None:
        given = {"worker_threads": 1, "task_backoff_seconds": 0.01, "task_attempts": 3, **settings}
        worker = Engine(engine.db, msgspec.convert(given, Settings), clock=engine.clock)
        engine.db.write("*", lambda tx: tx.execute("UPDATE unindexed SET due_at = 0"))
        worker.start_workers(polls=False)
        assert worker.workers is not None
        worker.workers.close(30)
        worker.models.close()

    return run


@pytest.fixture
def add_messages(engine: Engine) -> AddTexts:
    def add(texts: Sequence[str], session_id: str = "s", principal: Principal = ALICE) -> None:
        for first in range(0, len(texts), 100):
            messages = [NewMessage(role="user", content=text) for text in texts[first : first + 100]]
            engine.call(principal, AddMessages(session_id=session_id, messages=messages))

    return add
