"""Migration 5: unfinished tasks are converted at once, completed ones by a backfill while the database is in use."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.engine.commits.auto_commits import check_session
from holdfast.engine.gate.ids import system_clock
from holdfast.engine.kinds import QUEUES, TASK_KINDS
from holdfast.engine.tasks import backfill
from holdfast.engine.tasks.workers import Workers
from holdfast.model.identity import OPERATOR, Principal
from holdfast.ops.administration import DeleteAccount
from holdfast.ops.commits import ListArchives
from holdfast.ops.sessions import DeleteSession
from holdfast.ops.tasks import GetTask, ListTasks, RetryTask
from holdfast.store import migrations
from holdfast.store.database import EVERY_ACCOUNT, Database, Tx
from holdfast.store.drivers.postgres.database import PostgresDatabase
from holdfast.store.drivers.sqlite.database import SqliteDatabase
from holdfast.testing.faults.watching import wait_for
from holdfast.testing.faults.workers.processes import run_workers
from holdfast.testing.faults.workers.program import WorkerOptions

ALICE = Principal("acme", "alice", "root")
COMPLETED = [f"task_{number:03d}" for number in range(1, 6)]
URI = "viking://user/alice/sessions/s/history/archive_"
NO_WORKERS = Settings(worker_threads=0)


def migrate_to(database: Database, number: int) -> None:
    def apply(tx: Tx) -> None:
        tx.execute(migrations.CREATE_TABLE)
        for migration in migrations.list_pending(tx):
            if migration.number <= number:
                tx.run_script(migration.sql)
                migrations.record(tx, migration, 1)

    database.write(EVERY_ACCOUNT, apply)


TRIGGER_WITHOUT_EFFECT = """
DROP TRIGGER messages_wait;
CREATE TRIGGER messages_wait AFTER INSERT ON messages BEGIN SELECT 1; END;
"""


def fill(tx: Tx) -> None:
    """A session with five finished archives, a failed one and one that waits for it, as version 4 stored them."""
    tx.execute("INSERT INTO accounts (account_id, created_at) VALUES ('acme', 1)")
    tx.execute(
        "INSERT INTO sessions (account_id, user_id, session_id, log_id, title, metadata, state, created_at, updated_at,"
        " live_from, tokens_archived, fork_seq, fork_tokens) VALUES"
        " ('acme', 'alice', 's', 77, '', '{}', 'active', 1, 1, 8, 7, 0, 0)"
    )
    for number in range(1, 8):
        status, state = {6: ("failed", "failed"), 7: ("pending", "pending")}.get(number, ("completed", "done"))
        task_id = f"task_{number:03d}"
        tx.execute(
            "INSERT INTO messages (account_id, log_id, seq, id, id_given, role, parts, tokens, tokens_through, author,"
            " created_at, added_at) VALUES ('acme', 77, ?, ?, 0, 'user', ?, 1, ?, 'alice', 1, 1)",
            (number, f"m{number}", '[{"type":"text","text":"Deploy build 4711 to the test server."}]', number),
        )
        tx.execute(
            "INSERT INTO archives (account_id, log_id, number, first_seq, last_seq, tokens, task_id, state, created_at)"
            " VALUES ('acme', 77, ?, ?, ?, 1, ?, ?, 1)",
            (number, number, number, task_id, state),
        )
        tx.execute(
            "INSERT INTO tasks (account_id, task_id, user_id, kind, status, resource_id, log_id, number, stage,"
            " steps_done, steps_total, run_at, fence, attempts, failures, created_at, updated_at, worked, result)"
            " VALUES ('acme', ?, 'alice', 'session_commit', ?, 's', 77, ?, NULL, 1, 1, NULL, 1, 1, 0, 1, ?, 5, ?)",
            (task_id, status, number, system_clock(), '{"session_id":"s"}' if status == "completed" else None),
        )


@pytest.fixture
def database_of_schema_4(target_without_tables: str) -> Iterator[Database]:
    """A database with tasks in every state."""
    database: Database = (
        PostgresDatabase(target_without_tables)
        if "://" in target_without_tables
        else SqliteDatabase(target_without_tables)
    )
    migrate_to(database, 4)
    if "://" not in target_without_tables:  # the trigger calls a function that this version does not have
        database.write(EVERY_ACCOUNT, lambda tx: tx.run_script(TRIGGER_WITHOUT_EFFECT))
    database.write(EVERY_ACCOUNT, fill)
    yield database
    database.close()


@pytest.fixture
def old_database(database_of_schema_4: Database) -> Database:
    """The same database after its migration. Its backfill has not run."""
    migrate(database_of_schema_4)
    return database_of_schema_4


def migrate(database: Database) -> None:
    """Migrate to the latest schema. Migrations after 0005 have backfills of their own, which are not tested here."""
    database.migrate(system_clock())
    database.write(EVERY_ACCOUNT, lambda tx: tx.execute("DELETE FROM tasks WHERE task_id LIKE 'task_backfill_0006%'"))


def run_tasks(database: Database) -> None:
    engine = Engine(database, Settings(worker_threads=1))
    engine.start_workers(polls=False)
    assert engine.workers is not None
    engine.workers.close(30)


def old_rows(database: Database) -> int:
    row = database.read(EVERY_ACCOUNT, lambda tx: tx.one("SELECT COUNT(*) FROM old_tasks"))
    return 0 if row is None else row[0]


def test_tasks_of_an_old_database_are_visible_before_and_after_the_backfill(old_database: Database) -> None:
    engine = Engine(old_database, NO_WORKERS)
    before = engine.call(ALICE, ListTasks())
    assert [(task.task_id, task.subject) for task in before] == [
        (f"task_{number:03d}", f"{URI}{number:03d}") for number in range(7, 0, -1)
    ]
    assert engine.call(ALICE, GetTask(task_id="task_001")) == before[-1]
    assert [task.task_id for task in engine.call(ALICE, ListTasks(status="completed"))] == COMPLETED[::-1]
    assert old_rows(old_database) == 5
    run_tasks(old_database)
    assert old_rows(old_database) == 0
    assert engine.call(ALICE, ListTasks()) == before


def test_failed_and_waiting_tasks_of_an_old_database_can_be_retried_and_finish(old_database: Database) -> None:
    engine = Engine(old_database, NO_WORKERS)
    run_tasks(old_database)
    assert engine.call(ALICE, GetTask(task_id="task_007")).status == "pending"
    engine.call(ALICE, RetryTask(task_id="task_006"))
    run_tasks(old_database)
    assert [archive.state for archive in engine.call(ALICE, ListArchives(session_id="s"))] == ["done"] * 7


def test_a_backfill_runs_in_slices_and_continues_where_an_attempt_ended(
    old_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill, "SLICE_ROWS", 2)
    rows_left: list[int] = []

    def fail_after_two_slices(boundary: str) -> None:
        if boundary == "slice is written":
            rows_left.append(old_rows(old_database))
            if len(rows_left) == 2:
                raise OSError

    engine = Engine(old_database, Settings(worker_threads=1, task_backoff_seconds=0.001))
    workers = Workers(
        old_database,
        engine.settings,
        engine.new_context,
        engine.models,
        TASK_KINDS,
        check_session,
        QUEUES,
        polls=True,
        observe=fail_after_two_slices,
    )
    workers.start()
    wait_for(lambda: not engine.has_work())
    workers.close(30)
    assert rows_left == [3, 1, 0, 0]
    (task,) = engine.call(OPERATOR, ListTasks(task_type="backfill"))
    assert (task.status, task.result, task.attempts) == ("completed", {"rows": 5}, 2)
    assert (task.progress.done, task.progress.total) == (5, 5)


def test_a_backfill_is_visible_to_the_operator_only(old_database: Database) -> None:
    engine = Engine(old_database, NO_WORKERS)
    assert [task.account_id for task in engine.call(OPERATOR, ListTasks(task_type="backfill"))] == [EVERY_ACCOUNT]
    assert engine.call(ALICE, ListTasks(task_type="backfill")) == []


def test_many_processes_that_migrate_insert_one_backfill(old_database: Database) -> None:
    for _ in range(3):
        Engine(old_database, NO_WORKERS)
    assert len(Engine(old_database, NO_WORKERS).call(OPERATOR, ListTasks(task_type="backfill"))) == 1


def test_a_new_database_has_no_backfill(database: Database) -> None:
    assert Engine(database, NO_WORKERS).call(OPERATOR, ListTasks()) == []


def test_deleting_a_session_or_an_account_deletes_its_old_tasks(old_database: Database) -> None:
    engine = Engine(old_database, NO_WORKERS)
    engine.call(ALICE, DeleteSession(session_id="s"))
    assert (old_rows(old_database), engine.call(ALICE, ListTasks())) == (0, [])


def test_deleting_an_account_deletes_its_old_tasks(old_database: Database) -> None:
    engine = Engine(old_database, NO_WORKERS)
    engine.call(Principal("elsewhere", "root", "root"), DeleteAccount(account_id="acme"))
    assert old_rows(old_database) == 0


ADDED_TASKS = 2 * backfill.SLICE_ROWS
BACKFILL = "0005_tasks"


def add_completed_tasks(tx: Tx) -> None:
    for number in range(100, 100 + ADDED_TASKS):
        tx.execute(
            "INSERT INTO tasks (account_id, task_id, user_id, kind, status, resource_id, log_id, number, stage,"
            " steps_done, steps_total, run_at, fence, attempts, failures, created_at, updated_at, worked, result)"
            " VALUES ('acme', ?, 'alice', 'session_commit', 'completed', 's', 77, ?, NULL, 1, 1, NULL, 1, 1, 0, 1, ?,"
            " 5, '{}')",
            (f"task_{number:03d}", number, system_clock()),
        )


@pytest.mark.parametrize(
    "boundary",
    [
        "slice is written",
        "finish is written",
        *(pytest.param(it, marks=pytest.mark.soak) for it in ("claimed", "slice begins", "finish begins")),
    ],
)
def test_after_a_kill_at_any_boundary_a_backfill_continues_and_moves_each_task_once(
    database_of_schema_4: Database, target_without_tables: str, tmp_path: Path, boundary: str
) -> None:
    database_of_schema_4.write(EVERY_ACCOUNT, add_completed_tasks)
    migrate(database_of_schema_4)
    engine = Engine(database_of_schema_4, NO_WORKERS)
    before = engine.call(ALICE, ListTasks(status="completed", limit=1_000))
    assert len(before) == len(COMPLETED) + ADDED_TASKS
    options = WorkerOptions(
        target=target_without_tables,
        settings={"task_lease_seconds": 0.5, "worker_poll_seconds": 0.02, "worker_threads": 1},
        kill_points={BACKFILL: boundary},
        kill_folder=str(tmp_path / "killed"),
    )

    def is_completed() -> bool:
        return [task.status for task in engine.call(OPERATOR, ListTasks(task_type="backfill"))] == ["completed"]

    with run_workers(options) as supervisor:
        wait_for(is_completed)
        assert supervisor.killed_sessions() == {BACKFILL}
    (task,) = engine.call(OPERATOR, ListTasks(task_type="backfill"))
    assert (task.attempts, task.result) == (2, {"rows": len(before)})
    assert old_rows(database_of_schema_4) == 0
    assert engine.call(ALICE, ListTasks(status="completed", limit=1_000)) == before
