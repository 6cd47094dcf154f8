"""Workers killed with SIGKILL while they process written, moved and removed files: other workers finish the work."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

import holdfast
from holdfast import Client, Settings
from holdfast.composition import open_database
from holdfast.engine.gate.ids import system_clock
from holdfast.store.database import EVERY_ACCOUNT, Database, Tx
from holdfast.store.tables.tree import unprocessed
from holdfast.testing.faults.watching import wait_for
from holdfast.testing.faults.workers.processes import run_workers
from holdfast.testing.faults.workers.program import WorkerOptions
from holdfast.testing.stored_files import StoredFile, store_file
from holdfast.testing.tree_verification import TREE_INCONSISTENCIES

BOUNDARIES = {
    "read": "files are read",
    "written": "files are written",
    "removed": "removed files are forgotten",
    "summarised": "folder is read",
}
"""Where the worker that processes the files of an account is killed, by the account."""
WORKER_SETTINGS = {"task_lease_seconds": 0.5, "worker_poll_seconds": 0.02, "task_attempts": 100, "worker_threads": 2}
WRITTEN, REMOVED = 40, 120
TOP = "viking://resources"


@pytest.fixture
def clients(target: str) -> Iterator[dict[str, Client]]:
    """A client of each account. They run no tasks themselves."""
    with ExitStack() as stack:
        settings = Settings(worker_threads=0)
        yield {
            account: stack.enter_context(holdfast.connect(target, account=account, settings=settings))
            for account in BOUNDARIES
        }


def store_processed(database: Database, account: str) -> None:
    """Store a folder whose files have documents."""

    def store(tx: Tx) -> None:
        folder = StoredFile(root="resources", path="old", abstract="Old")
        store_file(tx, folder, node_id=1, now=system_clock())
        for number in range(REMOVED):
            file = StoredFile(root="resources", path=f"old/{number}.md", parts=[f"outdated{number} whelk"])
            store_file(tx, file, node_id=number + 2, now=system_clock())

    database.write(account, store)


def change_files(client: Client) -> None:
    for number in range(WRITTEN):
        client.write(f"{TOP}/new/{number % 3}/{number}.md", f"# File {number}\n\nperiwinkle{number}")
    client.mv(f"{TOP}/old/7.md", "viking://user/default/resources/moved.md")
    client.write(f"{TOP}/old/8.md", "# Changed\n\ncockle8")
    client.mv(f"{TOP}/old/8.md", f"{TOP}/new/8.md")
    client.rm(f"{TOP}/old", recursive=True)
    client.rm(f"{TOP}/new/0/0.md")


def check_tree(tx: Tx) -> None:
    for problem, sql in TREE_INCONSISTENCIES.items():
        rows = tx.all(sql)
        assert not rows, f"{problem}: {rows[:5]}"


def found(client: Client, word: str) -> list[str]:
    return [hit.uri for hit in client.find(word, limit=20).resources]


def test_after_any_kill_every_file_is_processed_once_and_found(
    clients: dict[str, Client], target: str, tmp_path: Path
) -> None:
    options = WorkerOptions(
        target=target,
        settings=WORKER_SETTINGS,
        processes=2,
        kill_points=BOUNDARIES,
        kill_folder=str(tmp_path / "killed"),
    )
    with closing(open_database(target, Settings())) as database:
        database.migrate(system_clock())
        for account, client in clients.items():
            client.mkdir(f"{TOP}/new")
            store_processed(database, account)
            change_files(client)

        def is_all_processed() -> bool:
            return database.read(EVERY_ACCOUNT, lambda tx: unprocessed.count(tx, None)) == 0

        with run_workers(options) as supervisor:
            wait_for(is_all_processed)
            assert supervisor.killed_sessions() == set(BOUNDARIES)
        database.read(EVERY_ACCOUNT, check_tree)
    for client in clients.values():
        for number in range(1, WRITTEN, 13):
            assert found(client, f"periwinkle{number}")[0] == f"{TOP}/new/{number % 3}/{number}.md"
        assert found(client, "cockle8")[0] == f"{TOP}/new/8.md"
        assert found(client, "whelk")[0] == "viking://user/default/resources/moved.md"
        gone = {uri for word in ("periwinkle0", "whelk", "outdated9") for uri in found(client, word)}
        assert not {uri for uri in gone if uri.startswith((f"{TOP}/old", f"{TOP}/new/0/0.md"))}
