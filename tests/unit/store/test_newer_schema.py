"""A process that is running while a newer version upgrades its database stops writing."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.errors import HoldfastError, UnavailableError
from holdfast.model.identity import Principal
from holdfast.ops.commits import CommitSession
from holdfast.ops.sessions import AddMessage, GetMessages
from holdfast.ops.system import CheckHealth
from holdfast.ops.tasks import GetTask
from holdfast.store import migrations
from holdfast.store.database import Database, Submission
from holdfast.store.migrations import Migration

ALICE = Principal("acme", "alice", "root")
KNOWN = migrations.newest_known("sqlite")
NEWER = KNOWN + 1


@pytest.fixture
def upgrade(open_database: Callable[[], Database], monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Upgrades the database, as a later version does."""

    def apply() -> None:
        later = Migration(NEWER, f"{NEWER:04}_later", "CREATE TABLE later (id integer)")
        available = migrations.list_available
        with monkeypatch.context() as patched:
            patched.setattr(migrations, "list_available", lambda dialect: [*available(dialect), later])
            patched.setattr(migrations, "newest_known", lambda _dialect: NEWER)
            open_database()

    return apply


def append(text: str) -> AddMessage:
    return AddMessage(session_id="s", role="user", content=text)


def check_error(error: BaseException | None) -> None:
    assert isinstance(error, UnavailableError)
    assert f"schema {NEWER}" in error.message
    assert f"up to {KNOWN}" in error.message
    assert "upgrade holdfast" in error.message


def test_a_write_names_both_schemas_and_writes_nothing_while_reads_go_on(
    database: Database, upgrade: Callable[[], None]
) -> None:
    engine = Engine(database)
    engine.call(ALICE, append("before"))
    upgrade()
    for _ in range(3):
        with pytest.raises(UnavailableError) as caught:
            engine.call(ALICE, append("after"))
        check_error(caught.value)
    assert [message.seq for message in engine.call(ALICE, GetMessages(session_id="s")).messages] == [1]
    with pytest.raises(UnavailableError) as caught:
        engine.call(ALICE, CheckHealth())  # the readiness of a server
    check_error(caught.value)


@pytest.mark.parametrize("count", [1, 5])
def test_submitted_writes_are_refused_too(database: Database, upgrade: Callable[[], None], count: int) -> None:
    upgrade()
    replies: list[BaseException | None] = []
    replied = threading.Semaphore(0)

    def reply(_outcome: Any, error: BaseException | None) -> None:
        replies.append(error)
        replied.release()

    database.submit([Submission(f"a{number}", lambda tx: tx.all("SELECT 1"), reply) for number in range(count)])
    for _ in range(count):
        assert replied.acquire(timeout=20)
        check_error(replies.pop())


def test_a_worker_claims_no_task(database: Database, upgrade: Callable[[], None]) -> None:
    engine = Engine(database, Settings(worker_poll_seconds=0.01, close_seconds=0))
    engine.call(ALICE, append("hi"))
    task_id = engine.call(ALICE, CommitSession(session_id="s")).task_id
    assert task_id is not None
    upgrade()
    worker = Engine.__new__(Engine)
    worker.__dict__.update(engine.__dict__)
    worker.start_workers(polls=True)
    assert worker.workers is not None
    worker.workers.close(0.3)
    assert engine.call(ALICE, GetTask(task_id=task_id)).status == "pending"


def test_an_engine_that_knows_fewer_schemas_does_not_start(database: Database, upgrade: Callable[[], None]) -> None:
    upgrade()
    with pytest.raises(HoldfastError, match="upgrade holdfast"):
        Engine(database)
