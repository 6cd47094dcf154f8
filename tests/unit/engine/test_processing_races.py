"""Files and folders that change while they are processed: what is found in the end is what is stored in the end."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.engine.commits.auto_commits import check_session
from holdfast.engine.gate.ids import system_clock
from holdfast.engine.kinds import QUEUES, TASK_KINDS
from holdfast.engine.processing.removals import SLICE_NODES, forget_removed
from holdfast.engine.tasks.workers import Workers
from holdfast.model.identity import OPERATOR, Principal
from holdfast.ops.system import WaitUntilIdle
from holdfast.ops.table import Operation
from holdfast.ops.tree.file_changes import MakeFolder, MoveFile, RemoveFile, RestoreFile, WriteFile
from holdfast.ops.tree.files import ReadAbstract, ReadOverview
from holdfast.store.database import Database, Tx
from holdfast.store.tables.tree import nodes, unprocessed
from holdfast.testing.stored_files import StoredFile, store_file
from holdfast.testing.tree_verification import TREE_INCONSISTENCIES

ALICE = Principal("acme", "alice", "root", internal_id="alice")
TOP = "viking://resources/top"
FILE = f"{TOP}/file.md"
PRIVATE = "viking://user/alice/resources/moved.md"
SETTINGS = Settings(worker_threads=1, worker_poll_seconds=0.02)


@pytest.fixture
def engine(database: Database) -> Engine:
    """An engine that runs no tasks by itself."""
    return Engine(database, Settings(worker_threads=0))


@contextmanager
def changing_at(engine: Engine, boundary: str, operations: Sequence[Operation[Any]]) -> Iterator[None]:
    """Run a worker in the block, and make changes when it first is at a boundary."""
    left = list(operations)

    def observe(reached: str) -> None:
        while reached == boundary and left:
            engine.call(ALICE, left.pop(0))

    workers = Workers(
        engine.db,
        SETTINGS,
        engine.new_context,
        engine.models,
        TASK_KINDS,
        check_session,
        QUEUES,
        polls=True,
        observe=observe,
    )
    workers.start()
    try:
        yield
    finally:
        workers.close(10)
    assert not left, f"the worker was never at the boundary {boundary!r}"


def process(engine: Engine, boundary: str = "", *operations: Operation[Any]) -> None:
    """Process everything, with changes at a boundary, and check that nothing is missing or left over."""
    with changing_at(engine, boundary, operations):
        engine.call(OPERATOR, WaitUntilIdle())
    engine.db.read("*", _check_tree)


def _check_tree(tx: Tx) -> None:
    for problem, sql in TREE_INCONSISTENCIES.items():
        assert not tx.all(sql), problem


def documents_of(engine: Engine, word: str) -> list[tuple[str, str, str]]:
    """Return owner, kind and path of each document with a word, also of outdated contents."""
    rows = engine.db.read(
        "acme",
        lambda tx: tx.all(
            "SELECT d.owner_id, d.kind, n.path FROM documents d JOIN contents c ON c.account_id = d.account_id"
            " AND c.content_id = d.content_id JOIN nodes n ON n.account_id = c.account_id AND n.node_id = c.node_id"
            " WHERE n.is_folder = 0 AND d.words LIKE ?",
            (f"%{word}%",),
        ),
    )
    return [(owner, kind, path) for owner, kind, path in rows]


def write(text: str, uri: str = FILE) -> WriteFile:
    return WriteFile(uri=uri, content=text)


def test_a_file_that_is_written_while_it_is_processed_has_the_documents_of_its_new_content(engine: Engine) -> None:
    engine.call(ALICE, write("whelk"))
    process(engine, "files are read", write("cockle"))
    assert documents_of(engine, "whelk") == []
    assert documents_of(engine, "cockle") == [("*", "resource", "top/file.md")]


def test_a_file_that_needs_nothing_and_is_written_meanwhile_is_processed(engine: Engine) -> None:
    engine.call(ALICE, write("whelk"))
    process(engine)
    engine.db.write("acme", lambda tx: unprocessed.add_subtree(tx, "resources", "top"))
    process(engine, "files are read", write("cockle"))
    assert documents_of(engine, "whelk") == []
    assert documents_of(engine, "cockle") == [("*", "resource", "top/file.md")]


def test_a_file_that_is_moved_to_another_owner_while_it_is_processed_has_documents_of_that_owner(
    engine: Engine,
) -> None:
    engine.call(ALICE, write("whelk"))
    process(engine, "files are read", MoveFile(from_uri=FILE, to_uri=PRIVATE))
    assert documents_of(engine, "whelk") == [("alice", "resource", "moved.md")]


def test_a_file_that_is_moved_to_the_skills_while_it_is_processed_has_documents_of_a_skill(engine: Engine) -> None:
    own, skill = "viking://user/alice/resources/helper/notes.md", "viking://user/alice/skills/helper/notes.md"
    engine.call(ALICE, write("whelk", own))
    engine.call(ALICE, MakeFolder(uri="viking://user/alice/skills/helper"))
    process(engine, "files are read", MoveFile(from_uri=own, to_uri=skill))
    assert documents_of(engine, "whelk") == [("alice", "skill", "helper/notes.md")]


def test_a_file_that_is_removed_while_it_is_processed_has_no_documents(engine: Engine) -> None:
    engine.call(ALICE, write("whelk"))
    process(engine, "files are read", RemoveFile(uri=FILE))
    assert documents_of(engine, "whelk") == []


def test_a_file_that_is_written_and_removed_before_it_is_processed_has_no_documents(engine: Engine) -> None:
    engine.call(ALICE, write("whelk"))
    process(engine)
    engine.call(ALICE, write("cockle"))
    engine.call(ALICE, RemoveFile(uri=TOP, recursive=True))
    process(engine)
    assert documents_of(engine, "whelk") == []


def test_a_file_that_is_removed_and_restored_while_it_is_processed_is_found(engine: Engine) -> None:
    engine.call(ALICE, write("whelk"))
    process(engine, "files are read", RemoveFile(uri=FILE), RestoreFile(uri=FILE))
    assert documents_of(engine, "whelk") == [("*", "resource", "top/file.md")]


def test_a_folder_that_changes_while_it_is_summarised_is_summarised_again(engine: Engine) -> None:
    engine.call(ALICE, write("whelk"))
    process(engine, "folder is read", MakeFolder(uri=f"{TOP}/further"))
    assert "further" in engine.call(ALICE, ReadOverview(uri=TOP))


def test_a_folder_that_is_renamed_while_it_is_summarised_is_summarised_with_its_new_name(engine: Engine) -> None:
    engine.call(ALICE, write("whelk"))
    process(engine, "folder is read", MoveFile(from_uri=TOP, to_uri="viking://resources/renamed"))
    assert "renamed" in engine.call(ALICE, ReadAbstract(uri="viking://resources/renamed"))


def test_a_folder_that_is_removed_while_it_is_summarised_has_no_documents(engine: Engine) -> None:
    engine.call(ALICE, write("whelk"))
    process(engine, "folder is read", RemoveFile(uri=TOP, recursive=True))


def store_many(engine: Engine) -> int:
    """Store a processed folder with more files than are forgotten at once. Return how many nodes it has."""
    count = SLICE_NODES + 20

    def store(tx: Tx) -> None:
        folder = StoredFile(root="resources", path="top", abstract="Top", overview="whelk")
        store_file(tx, folder, node_id=1, now=system_clock())
        for number in range(2, count + 1):
            file = StoredFile(root="resources", path=f"top/{number}.md", parts=[f"whelk {number}"])
            store_file(tx, file, node_id=number, now=system_clock())

    engine.db.write("acme", store)
    return count


def count_documents(tx: Tx) -> int:
    return int(tx.all("SELECT COUNT(DISTINCT content_id) FROM documents WHERE account_id = 'acme'")[0][0])


def test_a_folder_that_is_restored_while_its_documents_are_deleted_has_all_of_them_again(engine: Engine) -> None:
    count = store_many(engine)
    engine.call(ALICE, RemoveFile(uri=TOP, recursive=True))
    process(engine, "removed files are forgotten", RestoreFile(uri=TOP))
    assert engine.db.read("acme", count_documents) == count


def test_a_restored_folder_stays_registered(engine: Engine) -> None:
    store_many(engine)
    engine.call(ALICE, RemoveFile(uri=TOP, recursive=True))
    removed = engine.db.read("acme", lambda tx: nodes.find_by_id(tx, 1))
    assert removed is not None
    engine.call(ALICE, RestoreFile(uri=TOP))

    def forget(tx: Tx) -> tuple[bool, bool]:
        return forget_removed(tx, removed), unprocessed.has(tx, removed.node_id)

    assert engine.db.write("acme", forget) == (True, True)
