"""Indexing with several processes, and with processes that are killed: each message has one document."""

import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast import Settings
from holdfast.composition import open_database
from holdfast.store.database import EVERY_ACCOUNT, Tx
from holdfast.testing.faults.verification import INCONSISTENCIES, TEXT_INDEX_DIFFERENCES
from holdfast.testing.faults.watching import wait_for
from holdfast.testing.faults.workers.processes import run_workers
from holdfast.testing.faults.workers.program import WorkerOptions

WORKER_SETTINGS = {"task_lease_seconds": 1.0, "worker_poll_seconds": 0.02, "task_attempts": 100, "worker_threads": 1}
BOUNDARIES = (
    "claimed",
    "index slice begins",
    "index slice is written",
    "finish begins",
    "finish is written",
    "finish is committed",
)
SESSIONS, MESSAGES = 3, 100
SEARCHES = """
import sys
import holdfast
from holdfast.engine.recall import indexing
from holdfast.engine.sessions import messages

messages.MAX_PENDING = 0  # each search indexes what is pending
indexing.SLICE_DOCUMENTS = 5
with holdfast.connect(sys.argv[1], settings=holdfast.Settings(worker_threads=0)) as client:
    for number in range(20):
        for session in range(3):
            client.add_message(f"s{session}", "user", f"limpet {sys.argv[2]} {number}")
            assert client.get_messages(f"s{session}", q=f"limpet {sys.argv[2]} {number}").messages
"""


def fill(target: str) -> None:
    with holdfast.connect(target, settings=Settings(worker_threads=0)) as client:
        for session in range(SESSIONS):
            client.batch_add_messages(f"s{session}", [{"role": "user", "content": "limpet"}] * MESSAGES)


def count_unindexed(target: str) -> int:
    database = open_database(target, Settings())
    try:
        return int(database.read(EVERY_ACCOUNT, lambda tx: tx.all("SELECT COUNT(*) FROM unindexed"))[0][0])
    finally:
        database.close()


def check_documents(target: str, expected: int) -> None:
    def check(tx: Tx) -> None:
        for problem, sql in INCONSISTENCIES.items():
            assert not tx.all(sql, ("default",)), problem
        assert not tx.all(TEXT_INDEX_DIFFERENCES[tx.dialect.name])
        assert tx.all("SELECT COUNT(*) FROM documents") == [(expected,)]

    database = open_database(target, Settings())
    try:
        database.read(EVERY_ACCOUNT, check)
    finally:
        database.close()


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_after_a_kill_at_any_boundary_each_message_has_one_document(target: str, tmp_path: Path, boundary: str) -> None:
    fill(target)
    options = WorkerOptions(
        target=target,
        settings=WORKER_SETTINGS,
        processes=2,
        kill_points={"default": boundary},
        kill_folder=str(tmp_path / "killed"),
    )
    with (
        holdfast.connect(target, settings=Settings(worker_threads=0)) as client,
        run_workers(options) as supervisor,
    ):

        def is_done() -> bool:
            found = {hit.session_id for hit in client.search("limpet", limit=SESSIONS * MESSAGES).messages}
            assert len(found) == SESSIONS, "messages are found before, while and after they are indexed"
            return count_unindexed(target) == 0 and supervisor.killed_sessions() == {"default"}

        wait_for(is_done)
    check_documents(target, SESSIONS * MESSAGES)


def test_processes_that_index_the_same_sessions_at_once_write_each_document_once(target: str) -> None:
    fill(target)
    with holdfast.connect(target) as client:
        command = [sys.executable, "-c", SEARCHES, target]
        processes = [subprocess.Popen([*command, str(number)]) for number in range(3)]
        assert [process.wait(100) for process in processes] == [0, 0, 0]
        client.wait_until_idle()
    check_documents(target, SESSIONS * (MESSAGES + 3 * 20))
