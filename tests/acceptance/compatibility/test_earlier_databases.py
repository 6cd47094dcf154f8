"""Databases of every schema: they open at once, read as before, and finish the tasks that they contain.

`tests/fixtures/databases/README.md` lists the versions that made them.
"""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

import holdfast
import make_fixture_database
from fixture_contents import (
    DEFAULTS,
    ERASED_MESSAGES,
    KILLED_MESSAGES,
    MODEL,
    TASK_STATES,
    FixtureTarget,
    repeat_appends,
    task_states,
)
from fixture_description import describe
from holdfast import Client, Settings
from holdfast.composition import open_database
from holdfast.store import damage, migrations
from holdfast.store.database import EVERY_ACCOUNT, Tx
from holdfast.testing.faults.watching import wait_for
from holdfast.testing.model import running_model
from holdfast.testing.postgres import PostgresServer
from holdfast.testing.server import running_server

FOLDER = Path(__file__).resolve().parents[2] / "fixtures/databases"
SCHEMAS = sorted({int(file.name.split(".")[0].removeprefix("schema_")) for file in FOLDER.glob("schema_*.gz")})
LATEST_MIGRATIONS = [migration.number for migration in migrations.list_available("sqlite")]
MESSAGES_WITHOUT_DOCUMENT = """
    SELECT m.account_id, m.log_id, m.seq FROM messages m WHERE NOT EXISTS (
        SELECT 1 FROM documents d WHERE d.account_id = m.account_id AND d.log_id = m.log_id AND d.kind = 'message'
        AND d.number = m.seq
    ) ORDER BY m.account_id, m.log_id, m.seq
"""
SCHEMA_WITH_KEYS = 2
SCHEMA_WITH_TASKS = 3
SCHEMA_WITH_TASK_KINDS = 5
TIMEOUT_SECONDS = 60.0
LIST_TABLES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table'",
    "postgres": "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()",
}
OPENING_PROGRAM = """
import sys, holdfast
from holdfast import Settings
print("ready", flush=True)
sys.stdin.readline()
with holdfast.connect(sys.argv[1], settings=Settings(worker_threads=0)) as client:
    print(*[row.session_id for row in client.list_sessions()])
"""


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def earlier(kind: str, schema: int, tmp_path: Path, request: pytest.FixtureRequest) -> FixtureTarget:
    """A database of an earlier schema, as the version of that time left it."""
    if kind == "sqlite":
        file = tmp_path / "holdfast.db"
        file.write_bytes(_unpack(f"schema_{schema}.sqlite.db.gz"))
        return FixtureTarget(str(file), schema)
    server: PostgresServer = request.getfixturevalue("postgres")
    url = server.new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        name: Any = connection.execute("SELECT current_schema()").fetchone()
        dump = _unpack(f"schema_{schema}.postgres.sql.gz").decode()
        connection.execute(dump.replace("fixture_schema.", f"{name[0]}.").encode())
    return FixtureTarget(url, schema)


@pytest.fixture
def expected(kind: str, schema: int) -> dict[str, Any]:
    """What the version that made the database read from it."""
    content: dict[str, Any] = json.loads(_unpack(f"schema_{schema}.{kind}.json.gz"))
    return content


@pytest.fixture
def drain(earlier: FixtureTarget, run_cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Runs a worker until nothing is left to do."""
    monkeypatch.setenv("HOLDFAST_TASK_RETENTION_HOURS", str(DEFAULTS["task_retention_hours"]))

    def run_worker() -> None:
        assert run_cli("--path", earlier.database, "worker", "--drain").code == 0

    return run_worker


every_schema = pytest.mark.parametrize("schema", SCHEMAS)
schemas_with_keys = pytest.mark.parametrize("schema", [it for it in SCHEMAS if it >= SCHEMA_WITH_KEYS])
schemas_with_tasks = pytest.mark.parametrize("schema", [it for it in SCHEMAS if it >= SCHEMA_WITH_TASKS])


def _unpack(name: str) -> bytes:
    return gzip.decompress((FOLDER / name).read_bytes())


def test_every_schema_before_the_latest_has_fixtures() -> None:
    assert set(LATEST_MIGRATIONS[:-1]) <= set(SCHEMAS), "run tools/make_fixture_database.py of the version before"


def test_the_tool_makes_a_database_of_the_current_schema(tmp_path: Path) -> None:
    schema = make_fixture_database.current_schema()
    make_fixture_database.make_sqlite(tmp_path, schema)
    names = [f"schema_{schema}.sqlite.db.gz", f"schema_{schema}.sqlite.json.gz"]
    assert sorted(file.name for file in tmp_path.iterdir()) == names
    assert schema == LATEST_MIGRATIONS[-1]


@every_schema
def test_reads_as_before_while_no_task_has_run(earlier: FixtureTarget, expected: dict[str, Any]) -> None:
    description = describe(earlier)
    for part in expected.keys() - {"appends", "key"}:
        _assert_contains(description[part], expected[part], part)


@every_schema
def test_opening_it_migrates_it_and_opening_it_again_changes_nothing(earlier: FixtureTarget) -> None:
    earlier.connect().close()
    rows = _read_rows(earlier)
    assert [row[0] for row in rows["schema_migrations"]] == LATEST_MIGRATIONS
    earlier.connect().close()
    assert _read_rows(earlier) == rows


@pytest.mark.parametrize("schema", [SCHEMAS[0], SCHEMAS[-1]])
def test_processes_can_open_it_at_the_same_time(earlier: FixtureTarget, expected: dict[str, Any]) -> None:
    command = [sys.executable, "-c", OPENING_PROGRAM, earlier.database]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, **pipes) for _ in range(2)]
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin
        process.stdin.write("open\n")
        process.stdin.flush()
    listed = [row["session_id"] for row in expected["users"]["default/default"]["list"]]
    for process in processes:
        output, _ = process.communicate(timeout=TIMEOUT_SECONDS)
        assert output.split() == listed
    assert [row[0] for row in _read_rows(earlier)["schema_migrations"]] == LATEST_MIGRATIONS


@every_schema
def test_repeated_appends_return_the_stored_results(earlier: FixtureTarget, expected: dict[str, Any]) -> None:
    with earlier.connect() as client:
        count = client.get_session("keyed").total_message_count
        assert [append.to_dict() for append in repeat_appends(client)] == expected["appends"]
        assert client.get_session("keyed").total_message_count == count


@every_schema
def test_appends_continue_with_the_next_seq(earlier: FixtureTarget) -> None:
    with earlier.connect() as client:
        for row in client.list_sessions():
            if row.state == "archived":
                continue
            before = client.get_messages(row.session_id).messages
            appended = client.add_message(row.session_id, "user", "Continued with barnacles.")
            assert appended.seq == len(before) + 1, row.session_id
            after = client.get_messages(row.session_id).messages
            assert [message.seq for message in after] == list(range(1, len(before) + 2))
            assert after[:-1] == before
            found = client.get_messages(row.session_id, q="barnacles").messages
            assert [message.seq for message in found] == [appended.seq]


@every_schema
def test_earlier_audit_records_are_the_beginning_of_the_chain(earlier: FixtureTarget) -> None:
    with earlier.connect() as client:
        client.create_session("after-the-upgrade")
        result = client.verify_audit()
        assert (result.problem, result.unsealed, result.first_number) == (None, 0, 1)
        newest, *records = client.list_audit(limit=1_000).records
        assert (newest.number, newest.resource) == (result.last_number, "after-the-upgrade")
        assert len(records) == result.lines - 1 > 0
        assert [record.number for record in records] == list(range(len(records), 0, -1))


@every_schema
def test_commits_keep_earlier_tool_calls_with_their_results(earlier: FixtureTarget) -> None:
    """In session `fork`, message 3 has a call and message 4 its result."""
    with earlier.connect(worker_threads=1) as client:
        committed = client.commit_session("fork", keep_recent_count=3)
        assert client.wait_for_task(str(committed.task_id)).status == "completed"
        (archive,) = client.list_archives("fork")
        assert (archive.first_seq, archive.last_seq) == (1, 2)
        last = client.commit_session("long", keep_recent_count=10)
        assert client.wait_for_task(str(last.task_id)).status == "completed"
        assert client.list_archives("long")[0].last_seq == 70
        assert "copper" in client.get_session_context("long").latest_archive_overview


@schemas_with_keys
def test_sessions_are_committed_by_their_earlier_policy(earlier: FixtureTarget) -> None:
    with earlier.connect(worker_threads=1) as client:
        client.add_message("by-count", "user", "The fourth message.")
        (archive,) = client.list_archives("by-count")
        assert client.wait_for_task(archive.task_id).status == "completed"


@pytest.mark.parametrize("schema", [SCHEMA_WITH_KEYS])
@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_server_accepts_earlier_keys(earlier: FixtureTarget, expected: dict[str, Any]) -> None:
    with (
        running_server(earlier.database, root_api_key="root") as server,
        holdfast.connect(server.url, api_key=expected["key"]) as client,
    ):
        assert (client.whoami().account_id, client.whoami().user_id) == ("globex", "gus")
        assert client.get_messages("shared-name").messages[0].text == "Another account, the same name."


@schemas_with_tasks
def test_pending_tasks_finish(earlier: FixtureTarget) -> None:
    """Tasks that were due, waited for another, or waited for their next attempt; and an automatic commit."""
    with earlier.connect() as client:
        assert {session: task_states(client, session) for session in TASK_STATES} == TASK_STATES
    with earlier.connect(worker_threads=2) as client:
        _wait_for_tasks(client, {"queue": 2, "retrying": 1, "idle": 1, "killed": 1})
        _check_archives(client, "queue", ["done", "done"])
        overview = client.get_session_context("queue").latest_archive_overview
        assert "queue 1" in overview
        assert "queue 2" in overview
        assert [message.seq for message in client.get_session_context("idle").messages] == [3]
    with earlier.connect("acme", "ada", worker_threads=1) as client:
        _wait_for_tasks(client, {"shared-name": 1})


@schemas_with_tasks
def test_failed_tasks_stay_failed_until_they_are_retried(earlier: FixtureTarget) -> None:
    with earlier.connect(worker_threads=2, after_failed_archive="wait") as client:
        _wait_for_tasks(client, {"queue": 2})
        assert task_states(client, "failed") == TASK_STATES["failed"]
        assert len(client.get_session_context("failed").messages) == 6, "messages without a summary are shown"
        failed, waiting = client.list_archives("failed")
        assert failed.failure
        client.retry_task(failed.task_id)
        for archive in (failed, waiting):
            task = client.wait_for_task(archive.task_id)
            assert (task.status, task.error) == ("completed", None)
            assert task.result
            assert task.result["summarised_by"] == "local"
        _check_archives(client, "failed", ["done", "done"])
        assert not client.get_session_context("failed").messages


@schemas_with_tasks
def test_cancelled_tasks_can_be_retried(earlier: FixtureTarget) -> None:
    with earlier.connect(worker_threads=1) as client:
        (cancelled,) = client.list_archives("cancelled")
        assert [message.seq for message in client.get_session_context("cancelled").messages] == [1, 2, 3, 4]
        client.retry_archive("cancelled", cancelled.archive_id)
        assert client.wait_for_task(cancelled.task_id).status == "completed"
        assert [message.seq for message in client.get_session_context("cancelled").messages] == [4]


@schemas_with_tasks
def test_the_task_of_a_killed_worker_continues_from_its_checkpoint(earlier: FixtureTarget) -> None:
    with running_model() as model:
        settings = {**MODEL, "model_base_url": model.url}
        with earlier.connect(worker_threads=1, **settings) as client:
            (archive,) = client.list_archives("killed")
            task = client.wait_for_task(archive.task_id)
            details = client.get_session_archive("killed", archive.archive_id)
        requested = [it.prompt.partition("<conversation id=")[2] for it in model.requests]
    assert task.status == "completed"
    assert task.attempts == 2
    assert task.result
    assert task.result["summarised_by"] == "openai/fake"
    reports = [message["content"][:8] for message in KILLED_MESSAGES]
    seen = [report for report in reports if any(f"{report} of the harbour" in text for text in requested)]
    assert seen
    assert seen == reports[-len(seen) :], "the model reads the rest"
    assert seen != reports, "the model does not read the first piece again"
    assert "Report 1 of the harbour" in details.overview, "the summary of the first piece is used"


@schemas_with_tasks
def test_nothing_is_lost_when_all_background_work_is_done(
    earlier: FixtureTarget, expected: dict[str, Any], drain: Callable[[], None]
) -> None:
    with earlier.connect() as client:
        for task in [*client.list_tasks(status="failed"), *client.list_tasks(status="cancelled")]:
            client.retry_task(task.task_id)
    drain()
    with closing(open_database(earlier.database, Settings())) as database:  # every row has its checksum now
        assert [found.describe() for found in damage.find(database, lambda *_: None)] == []
        assert database.read(EVERY_ACCOUNT, lambda tx: tx.all("SELECT * FROM unchecked_tables")) == []
        assert database.read(EVERY_ACCOUNT, lambda tx: tx.all("SELECT * FROM unindexed")) == []
        assert database.read(EVERY_ACCOUNT, lambda tx: tx.all(MESSAGES_WITHOUT_DOCUMENT)) == []
    for name, user in describe(earlier)["users"].items():
        before = expected["users"][name]
        assert {task["status"] for task in user["tasks"]} <= {"completed"}
        tasks = {task["task_id"]: task for task in user["tasks"]}
        assert tasks.keys() >= {task["task_id"] for task in before["tasks"]}
        for task in before["tasks"]:
            if task["status"] == "completed":
                _assert_contains(tasks[task["task_id"]], task, task["task_id"])
        for session_id, session in before["sessions"].items():
            for part in ("messages", "found", "usage", "tool_results", "done"):
                after = user["sessions"][session_id][part]
                _assert_contains(after[: len(session[part])] if part == "done" else after, session[part], session_id)


@schemas_with_tasks
def test_sessions_with_unfinished_tasks_can_be_deleted(earlier: FixtureTarget) -> None:
    with earlier.connect(worker_threads=1) as client:
        for session_id in TASK_STATES:
            client.delete_session(session_id)
        remaining = {row.session_id for row in client.list_sessions()}
        assert not remaining & TASK_STATES.keys()
        assert "fork-of-archived" in remaining
        assert [message.seq for message in client.get_messages("fork-of-archived").messages] == list(range(1, 8))


@pytest.mark.parametrize("schema", [it for it in SCHEMAS if it >= SCHEMA_WITH_TASK_KINDS])
def test_an_unfinished_deletion_removes_the_remaining_rows(earlier: FixtureTarget, drain: Callable[[], None]) -> None:
    earlier.connect().close()
    rows_before = len(_read_rows(earlier)["messages"])
    drain()
    with earlier.connect() as client:
        (deletion,) = [task for task in client.list_tasks(limit=1_000) if task.task_type == "session_delete"]
    assert deletion.status == "completed"
    assert rows_before - len(_read_rows(earlier)["messages"]) == ERASED_MESSAGES - 1_000, (
        "the call itself removed 1,000"
    )


def _assert_contains(found: Any, expected: Any, path: str) -> None:
    """Check that the values are equal. Later versions may add fields."""
    if isinstance(expected, dict):
        assert expected.keys() <= found.keys(), path
        for key, value in expected.items():
            _assert_contains(found[key], value, f"{path}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), path
        for index, value in enumerate(expected):
            _assert_contains(found[index], value, f"{path}[{index}]")
    else:
        is_before_commit = path.endswith(".last_commit_at") and expected is None
        assert found == ("" if is_before_commit else expected), path


def _read_rows(target: FixtureTarget) -> dict[str, list[Any]]:
    """Read all rows of all tables, without a migration."""

    def read(tx: Tx) -> dict[str, list[Any]]:
        tables = [str(row[0]) for row in tx.all(LIST_TABLES[tx.dialect.name])]
        return {table: sorted(tx.all(f"SELECT * FROM {table}"), key=repr) for table in tables}

    database = open_database(target.database, Settings())
    try:
        return database.read(EVERY_ACCOUNT, read)
    finally:
        database.close()


def _wait_for_tasks(client: Client, counts: dict[str, int]) -> None:
    """Wait until each session has that many archives, and the tasks of all of them are completed."""
    for session_id, count in counts.items():
        wait_for(partial(_has_archives, client, session_id, count))
        for archive in client.list_archives(session_id):
            assert client.wait_for_task(archive.task_id).status == "completed", session_id


def _has_archives(client: Client, session_id: str, count: int) -> bool:
    return len(client.list_archives(session_id)) == count


def _check_archives(client: Client, session_id: str, states: list[str]) -> None:
    archives = client.list_archives(session_id)
    assert [archive.state for archive in archives] == states
    for archive in archives:
        details = client.get_session_archive(session_id, archive.archive_id)
        assert [message.seq for message in details.messages] == list(range(archive.first_seq, archive.last_seq + 1))
