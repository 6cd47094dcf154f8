"""Workers killed with SIGKILL while they add a resource: the tree is as before or as after, and the task goes on."""

import io
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import holdfast
from holdfast.client.sync.client import Client
from holdfast.composition import open_database
from holdfast.config import Settings
from holdfast.errors import NotFoundError
from holdfast.store.database import EVERY_ACCOUNT, Tx
from holdfast.testing.faults.watching import wait_for
from holdfast.testing.faults.workers.processes import run_workers
from holdfast.testing.faults.workers.program import WorkerOptions

BOUNDARIES = (
    "claimed",
    "fetching begins",
    "staging begins",
    "staging is written",
    "parsing begins",
    "files are read",
    "files are written",
    "finalizing begins",
    "folder is written",
    "processing_queue begins",
    "finish begins",
    "finish is written",
    "finish is committed",
)
WORKER_SETTINGS = {"task_lease_seconds": 0.5, "worker_poll_seconds": 0.02, "task_attempts": 100, "worker_threads": 1}
BEFORE = {"kept.md": b"# Kept\n\nIt stays.", "changed.md": b"# Old", "gone/old.txt": b"It goes."}
AFTER = {
    "kept.md": b"# Kept\n\nIt stays.",
    "changed.md": b"# New and longer",
    "new/deep/file.txt": b"It comes.",
    "new/large.txt": (b"-" * 99 + b"\n") * 10_600,
}
BROKEN = {"new/broken.pdf": b"no document"}


def packed(entries: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in entries.items():
            archive.writestr(path, data)
    return file.getvalue()


def sizes(client: Client, uri: str) -> dict[str, int | None]:
    """The sizes of the files of a resource, by their paths, as one call sees them."""
    entries = client.tree(uri, level_limit=10)
    return {entry.uri.removeprefix(f"{uri}/"): entry.size for entry in entries if not entry.is_dir}


def sizes_of(files: dict[str, bytes]) -> dict[str, int]:
    return {path: len(data) for path, data in files.items()}


@pytest.fixture
def client(target: str) -> Iterator[Client]:
    """A client that adds resources and runs no tasks itself."""
    with holdfast.connect(target, settings=Settings(worker_threads=0)) as client:
        yield client


def uri_of(boundary: str) -> str:
    return f"viking://resources/{boundary.replace(' ', '-')}"


def count_leftovers(tx: Tx) -> tuple[int, int]:
    """Count the nodes that were not placed, and the chunks without a hash."""
    staged = tx.all("SELECT COUNT(*) FROM nodes WHERE root LIKE 'staging/%'")
    chunks = tx.all("SELECT COUNT(*) FROM file_chunks WHERE hash LIKE 'task_%'")
    return int(staged[0][0]), int(chunks[0][0])


def test_after_any_kill_the_resource_is_as_before_or_as_after_and_the_task_goes_on(
    client: Client, target: str, tmp_path: Path
) -> None:
    uris = [uri_of(boundary) for boundary in BOUNDARIES]
    with holdfast.connect(target, settings=Settings(worker_poll_seconds=0.02)) as worker:
        for uri in uris:
            worker.add_resource(packed(BEFORE), name="docs.zip", to=uri)
        worker.wait_until_idle()
    tasks = [client.add_resource(packed(AFTER | BROKEN), name="docs.zip", to=uri, sync=True).task_id for uri in uris]
    options = WorkerOptions(
        target=target,
        settings=WORKER_SETTINGS,
        processes=3,
        kill_points={uri_of(boundary): boundary for boundary in BOUNDARIES},
        kill_folder=str(tmp_path / "killed"),
    )
    states = (sizes_of(BEFORE), sizes_of(AFTER))

    def are_all_done() -> bool:
        assert all(sizes(client, uri) in states for uri in uris)
        return all(client.get_task(task_id).status == "completed" for task_id in tasks)

    with run_workers(options) as supervisor:
        wait_for(are_all_done)
        assert supervisor.killed_sessions() == {uri.replace("/", "_") for uri in uris}
    for uri, task_id in zip(uris, tasks, strict=True):
        assert sizes(client, uri) == sizes_of(AFTER)
        assert [each.version for each in client.history(f"{uri}/changed.md").versions] == [2, 1]
        assert client.read_bytes(f"{uri}/new/large.txt") == AFTER["new/large.txt"]
        result = client.get_task(task_id).result
        assert result is not None
        assert (result["added"], result["changed"], result["unchanged"], result["removed"]) == (2, 1, 1, 1)
        assert [problem["file"] for problem in result["errors"]] == ["new/broken.pdf"]
    with closing(open_database(target, Settings())) as database:
        assert database.read(EVERY_ACCOUNT, count_leftovers) == (0, 0)


def test_a_cancelled_addition_leaves_nothing(client: Client, target: str, tmp_path: Path) -> None:
    uri = uri_of("files are written")
    task_id = client.add_resource(packed(AFTER), name="docs.zip", to=uri).task_id
    options = WorkerOptions(
        target=target,
        settings={**WORKER_SETTINGS, "task_lease_seconds": 60.0},
        kill_points={uri: "files are written"},
        kill_folder=str(tmp_path / "killed"),
    )
    with run_workers(options) as supervisor:
        wait_for(lambda: bool(supervisor.killed_sessions()))
    with closing(open_database(target, Settings())) as database:
        assert database.read(EVERY_ACCOUNT, count_leftovers)[0] > 0
        assert client.cancel_task(task_id).status == "cancelled"
        assert database.read(EVERY_ACCOUNT, count_leftovers) == (0, 0)
    with pytest.raises(NotFoundError):
        client.stat(uri)
