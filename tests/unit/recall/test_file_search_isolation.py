"""What a search of files finds, and how it ranks, depends only on the files that the caller may read."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.engine.recall.contents import content_vectors
from holdfast.engine.recall.embeddings import matrices
from holdfast.model.identity import Principal
from holdfast.ops.search import Find, Search
from holdfast.store.access import accounts
from holdfast.store.database import Database, Tx
from holdfast.testing.stored_files import StoredFile, store_file

ALICE = Principal("acme", "alice", "user", internal_id="alice")
NOW = 1_750_000_000_000_000
AS_OF = "2026-06-01T00:00:00Z"
QUERIES = ["Where is the harpoon?", "lighthouse ORD-4711", "狐狸 harpoon", "zeppelin config.yaml"]
SUBJECTS = ["harpoon", "lighthouse", "harbour", "ORD-4711", "config.yaml", "狐狸在花园里", "weather", "zeppelin"]
RunTasks = Callable[..., None]


def file(root: str, number: int, parts: int = 2, **fields: object) -> StoredFile:
    texts = [f"The {SUBJECTS[(number * 3 + part) % 8]} is {number} of {part}." for part in range(parts)]
    given = {"abstract": f"About {SUBJECTS[number % 8]}", "overview": "Several things", **fields}
    return StoredFile(root=root, path=f"f{number % 7}/n{number}.md", parts=texts, **given)  # type: ignore[arg-type]


def store(engine: Engine, account: str, files: list[StoredFile], first_id: int) -> None:
    def write(tx: Tx) -> None:
        for number, each in enumerate(files):
            store_file(tx, each, first_id + number, NOW + number)

    engine.db.write(account, write)


def answers(engine: Engine) -> list[bytes]:
    """The whole answers as bytes: hits, scores, reasons, and the counts of the receipt."""
    found = list[Any]()
    for query in QUERIES:
        found.append(engine.call(ALICE, Find(query=query, as_of=AS_OF, limit=30, read_content=True)))
        found.append(engine.call(ALICE, Search(query=query, as_of=AS_OF, limit=30, mode="context")))
    return [msgspec.json.encode(each) for each in found]


def test_documents_of_others_change_no_byte_of_an_answer(
    engine: Engine, run_tasks: RunTasks, open_database: Callable[[], Database]
) -> None:
    engine.db.write("rival", lambda tx: accounts.insert(tx, "rival", 1))
    own = [file("user/alice/resources", number) for number in range(30)]
    store(engine, "acme", [*own, *(file("resources", number) for number in range(40))], 1)
    run_tasks()
    before = answers(engine)
    assert all(b'"score":0.' in answer for answer in before)
    others = [
        *(file("user/bob/resources", number, 5) for number in range(250)),
        *(file("user/bob/skills", number, kind="skill") for number in range(50)),
        *(file("staging/task_1", number) for number in range(40)),
        *(file("user/bob/resources", 1_000 + number, owner_id="*") for number in range(30)),  # was moved there
    ]
    store(engine, "acme", others, 10_000)
    store(engine, "rival", [file("resources", number) for number in range(100)], 1)
    assert answers(engine) == before
    run_tasks()
    assert answers(engine) == before
    assert answers(Engine(open_database(), Settings(worker_threads=0))) == before


def test_files_whose_vectors_do_not_fit_into_memory_are_compared_from_the_best_folders_down(
    engine: Engine, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content_vectors, "MAX_READ", 10)
    monkeypatch.setattr(content_vectors, "BEST_FOLDERS", 1)
    folders = [
        StoredFile(root="resources", path=f"f{number}", abstract=f"{SUBJECTS[number]}", overview="A folder")
        for number in range(7)
    ]
    store(engine, "acme", [*folders, *(file("resources", number) for number in range(60))], 1)
    run_tasks()
    small = Engine(engine.db, Settings(worker_threads=0, vector_memory_bytes=0))
    monkeypatch.setattr(matrices, "_by_database", {})
    result = small.call(ALICE, Search(query="lighthouse", context_type="resource"))
    assert result.query_plan.notes == ["files were compared by their meaning from the best folders down"]
    assert any(reason.signal == "folder" for hit in result.resources for reason in hit.reasons)
    assert "lighthouse" in result.resources[0].abstract.lower()
