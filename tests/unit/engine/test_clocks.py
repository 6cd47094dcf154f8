"""Processes whose clocks are minutes and days apart use one database. The database's clock decides."""

import logging
from collections.abc import Callable, Iterator

import pytest

from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.engine.commits.auto_commits import check_session
from holdfast.engine.gate.ids import system_clock
from holdfast.engine.tasks.clock_watch import ClockWatch
from holdfast.model.identity import Principal
from holdfast.model.sessions import AutoCommitPolicy
from holdfast.model.tasks import COMMIT, Task
from holdfast.ops.commits import CommitSession
from holdfast.ops.sessions import AddMessage, CreateSession, GetSession
from holdfast.ops.tasks import GetTask, RetryTask
from holdfast.store.database import EVERY_ACCOUNT, NOW, Database, read_time
from holdfast.store.drivers.postgres.database import PostgresDatabase
from holdfast.store.tables import auto_commit_checks, tasks
from holdfast.store.tables.tasks import Claim, Failure
from holdfast.testing.clocks import advance_clock
from holdfast.testing.postgres import PostgresServer

SECOND, DAY = 1_000_000, 86_400_000_000
LEASE = 15 * SECOND
ALICE = Principal("acme", "alice", "root")
SHIFTS = [20 * SECOND, -20 * SECOND, 3 * DAY, -3 * DAY]
any_shift = pytest.mark.parametrize("shift", SHIFTS)
NewEngine = Callable[..., Engine]


@pytest.fixture
def new_engine(open_database: Callable[[], Database]) -> Iterator[NewEngine]:
    """Opens the database, as a process does whose clock is `shift` microseconds ahead."""
    engines: list[Engine] = []

    def make(shift: int = 0, **settings: float) -> Engine:
        engine = Engine(open_database(), Settings(**settings), clock=lambda: system_clock() + shift)  # type: ignore[arg-type]
        engines.append(engine)
        return engine

    yield make
    for engine in engines:
        engine.close()


def append_and_commit(engine: Engine, session_id: str = "s") -> str:
    engine.call(ALICE, AddMessage(session_id=session_id, role="user", content="hi"))
    task_id = engine.call(ALICE, CommitSession(session_id=session_id)).task_id
    assert task_id is not None
    return task_id


def claim(engine: Engine) -> Claim | None:
    return engine.db.write(EVERY_ACCOUNT, lambda tx: tasks.claim(tx, [COMMIT], LEASE, engine.clock()))


def run_tasks(engine: Engine) -> None:
    """Run all tasks that are due."""
    engine.start_workers(polls=False)
    assert engine.workers is not None
    engine.workers.close(30)


def get(engine: Engine, task_id: str) -> Task:
    return engine.call(ALICE, GetTask(task_id=task_id))


@any_shift
def test_a_commit_of_a_machine_with_a_wrong_clock_runs_at_once(new_engine: NewEngine, shift: int) -> None:
    task_id = append_and_commit(new_engine(shift))
    worker = new_engine()
    later = append_and_commit(worker)
    run_tasks(worker)
    assert [get(worker, task).status for task in (task_id, later)] == ["completed"] * 2


@any_shift
def test_a_worker_with_a_wrong_clock_leaves_a_live_task_alone(new_engine: NewEngine, shift: int) -> None:
    owner, other = new_engine(), new_engine(shift)
    append_and_commit(owner)
    held = claim(owner)
    assert held is not None
    assert claim(other) is None
    advance_clock(owner.db, LEASE - SECOND)
    other.db.store_time(other.clock())
    assert owner.db.write("acme", lambda tx: tasks.extend(tx, held, LEASE))
    advance_clock(owner.db, LEASE - SECOND)
    other.db.store_time(other.clock())
    assert claim(other) is None
    assert owner.db.write("acme", lambda tx: tasks.is_held(tx, held))


@any_shift
def test_the_task_of_a_dead_worker_with_a_wrong_clock_is_claimed_when_its_lease_has_expired(
    new_engine: NewEngine, shift: int
) -> None:
    dead, other = new_engine(shift), new_engine()
    task_id = append_and_commit(dead)
    assert claim(dead) is not None
    advance_clock(other.db, LEASE - SECOND)
    assert claim(other) is None
    advance_clock(other.db, 2 * SECOND)
    run_tasks(other)
    assert get(other, task_id).status == "completed"


@any_shift
def test_cleaning_up_with_a_wrong_clock_forgets_no_idempotency_key_and_no_task(
    new_engine: NewEngine, shift: int
) -> None:
    engine, wrong = new_engine(), new_engine(shift, idempotency_hours=48, task_retention_hours=24)
    for owner, key in ((engine, "k1"), (wrong, "k2")):
        op = AddMessage(session_id=f"of-{key}", role="user", content="hi", idempotency_key=key)
        first = owner.call(ALICE, op)
        task_id = append_and_commit(owner, f"task-of-{key}")
        run_tasks(owner)
        wrong.delete_expired()
        assert owner.call(ALICE, op) == first
        assert get(owner, task_id).status == "completed"
    advance_clock(wrong.db, 25 * 3_600 * SECOND)
    wrong.delete_expired()
    assert wrong.call(ALICE, op) == first
    advance_clock(wrong.db, 24 * 3_600 * SECOND)
    wrong.delete_expired()
    assert wrong.call(ALICE, op).seq == 2, "the key is older than 48 hours"


@any_shift
@pytest.mark.parametrize("by", ["the same machine", "another machine"])
def test_a_task_that_was_made_with_a_wrong_clock_can_be_retried_at_once(
    new_engine: NewEngine, shift: int, by: str
) -> None:
    wrong, engine = new_engine(shift), new_engine()
    task_id = append_and_commit(wrong)
    held = claim(wrong)
    assert held is not None
    wait, now = 300 * SECOND, wrong.clock()
    failure = Failure("UNAVAILABLE", "no model")
    wrong.db.write("acme", lambda tx: tasks.postpone(tx, held, failure, wait=wait, worked=0, now=now))
    run_tasks(engine)
    assert get(engine, task_id).status == "pending"
    (wrong if by == "the same machine" else engine).call(ALICE, RetryTask(task_id=task_id))
    run_tasks(engine)
    assert get(engine, task_id).status == "completed"


@any_shift
def test_an_idle_session_is_committed_after_its_idle_time_whatever_the_clock_of_its_writer_says(
    new_engine: NewEngine, shift: int
) -> None:
    writer, worker = new_engine(shift), new_engine()
    policy = AutoCommitPolicy(idle_timeout_seconds=60)
    worker.call(ALICE, CreateSession(session_id="s", auto_commit_policy=policy))

    def append_then_wait(seconds: int) -> int:
        writer.call(ALICE, AddMessage(session_id="s", role="user", content="hi"))
        advance_clock(worker.db, seconds * SECOND)
        writer.db.store_time(writer.clock())
        check_due_sessions(worker)
        return worker.call(ALICE, GetSession(session_id="s")).total_message_count - live_count(worker)

    assert [append_then_wait(40), append_then_wait(40), append_then_wait(61)] == [0, 0, 3]


@any_shift
def test_the_interval_between_two_automatic_commits_is_by_the_databases_clock(
    new_engine: NewEngine, shift: int
) -> None:
    writer, worker = new_engine(shift), new_engine()
    policy = AutoCommitPolicy(message_count_threshold=1, min_commit_interval_seconds=60)
    worker.call(ALICE, CreateSession(session_id="s", auto_commit_policy=policy))
    for engine, wait, live in ((writer, 0, 0), (worker, 30, 1), (writer, 31, 0)):
        advance_clock(worker.db, wait * SECOND)
        writer.db.store_time(writer.clock())
        engine.call(ALICE, AddMessage(session_id="s", role="user", content="hi"))
        assert live_count(worker) == live


def live_count(engine: Engine) -> int:
    return engine.call(ALICE, GetSession(session_id="s")).message_count


def check_due_sessions(engine: Engine) -> None:
    for account, log_id in engine.db.read(EVERY_ACCOUNT, lambda tx: auto_commit_checks.list_due(tx, 100)):
        engine.db.write(account, lambda tx, log_id=log_id: check_session(tx, log_id, engine.new_context()))  # type: ignore[misc]


@any_shift
def test_the_next_attempt_is_shown_by_the_clock_of_the_reader(new_engine: NewEngine, shift: int) -> None:
    engine = new_engine(shift)
    task_id = append_and_commit(engine)
    held = claim(engine)
    assert held is not None
    failure = Failure("UNAVAILABLE", "no model")
    engine.db.write("acme", lambda tx: tasks.postpone(tx, held, failure, wait=300 * SECOND, worked=0, now=0))
    shown = get(engine, task_id).next_attempt_at
    assert shown is not None
    assert abs(shown.timestamp() - engine.clock() / 1e6 - 300) < 10


@pytest.mark.parametrize("status", ["pending", "retrying", "running"])
def test_tasks_that_a_wrong_clock_has_put_far_in_the_future_run_soon(new_engine: NewEngine, status: str) -> None:
    """An earlier version, or a server whose clock was set back, leaves such tasks."""
    engine = new_engine()
    task_id = append_and_commit(engine)
    stage = "retrying" if status == "retrying" else None
    status = "pending" if stage else status

    def misdate(micros: int) -> None:
        engine.db.write(
            "acme",
            lambda tx: tx.execute(
                f"UPDATE tasks SET status = ?, stage = ?, run_at = {NOW} + ? WHERE account_id = 'acme'",
                (status, stage, micros),
            ),
        )

    misdate({"running": LEASE, "pending": 3_600 * SECOND if stage else 0}[status] + 30 * SECOND)
    run_tasks(engine)
    assert get(engine, task_id).status == status, "this may be a wait or a lease"
    misdate(3 * DAY)
    run_tasks(engine)
    assert get(engine, task_id).status == "completed"


def test_tasks_run_soon_after_the_clock_of_a_postgresql_server_was_set_back(postgres: PostgresServer) -> None:
    engine = Engine(PostgresDatabase(postgres.new_migrated_database()))
    running, waiting = append_and_commit(engine, "one"), append_and_commit(engine, "other")
    assert claim(engine) is not None
    advance_clock(engine.db, -3 * DAY)
    run_tasks(engine)
    assert [get(engine, task_id).status for task_id in (running, waiting)] == ["completed"] * 2
    engine.close()


@pytest.mark.parametrize("jump", SHIFTS)
def test_a_jump_of_the_systems_clock_is_logged_once(
    database: Database, caplog: pytest.LogCaptureFixture, jump: int
) -> None:
    now = database.read(EVERY_ACCOUNT, read_time)
    watch = ClockWatch(database, lambda: now)

    def compare() -> list[str]:
        caplog.clear()
        database.read(EVERY_ACCOUNT, watch.compare)
        return [record.getMessage() for record in caplog.records]

    with caplog.at_level(logging.WARNING, "holdfast.clock"):
        assert compare() + compare() == []
        now += jump
        (message,) = compare()
        assert f"{jump // SECOND:+d} s" in message
        assert compare() == []


@any_shift
def test_the_time_of_work_is_measured_without_the_systems_clock(database: Database, shift: int) -> None:
    now = system_clock()

    def clock() -> int:
        nonlocal now
        now += shift
        return now

    engine = Engine(database, clock=clock, elapsed=lambda: 5.0)
    task_id = append_and_commit(engine)
    run_tasks(engine)
    assert get(engine, task_id).processing_seconds == 0
