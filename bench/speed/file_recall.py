"""Searches in stored files: with vectors in memory, and from the best folders down where they do not fit."""

import random
from functools import partial

import holdfast
from holdfast.composition import open_database
from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.store.access import accounts
from holdfast.store.database import Tx
from holdfast.testing.stored_files import StoredFile, store_file
from measure import Figure, check_at_most, compute_statistics
from scale import Setup
from server.cpu import measure_cpu
from texts import Texts

ACCOUNT = "bench"
FILE_PARTS, FOLDER_FILES = 20, 100
NOW = 1_750_000_000_000_000
SEED = 22
LIMIT_SECONDS = 0.120


def measure(setup: Setup) -> list[Figure]:
    """Compare a search whose vectors are in memory with one that reads those below the best folders."""
    target = str(setup.folder / "files")
    texts = Texts(seed=SEED).several(setup.scale.recall_own)
    _insert(target, texts)
    rounds = setup.scale.recall_rounds
    choice = random.Random(SEED)
    queries = [" ".join(choice.sample(choice.choice(texts).split(), 5)) for _ in range(rounds)]
    measured = {}
    for name, settings in {
        "in memory": Settings(worker_threads=0),
        "from folders": Settings(worker_threads=0, vector_memory_bytes=0),
    }.items():
        with holdfast.connect(target, account=ACCOUNT, user="alice", settings=settings) as client:
            client.find(queries[0])
            measured[name] = measure_cpu(partial(_find, client, queries), rounds)
    flat, folders = measured["in memory"], measured["from folders"]
    return [
        Figure(
            name=f"find in {len(texts):,} parts of files, SQLite",
            measured=compute_statistics(flat),
            baseline_name="vectors that do not fit into memory, from the best folders down",
            baseline=compute_statistics(folders),
            ratio=flat.p50 / folders.p50,
            checks=[check_at_most(LIMIT_SECONDS, flat.p50, f"< {LIMIT_SECONDS * 1e3:.0f} ms CPU")],
            notes=[f"find: {flat.p50 * 1e3:.1f} ms CPU (p50), from folders {folders.p50 * 1e3:.1f} ms"],
            extra_values={"cpu_p50": flat.p50, "folders_cpu_p50": folders.p50},
        )
    ]


def _find(client: holdfast.Client, queries: list[str], number: int) -> None:
    client.find(queries[number])


def _insert(target: str, texts: list[str]) -> None:
    """Store files with these texts as parts, and embed them."""
    with holdfast.connect(target, settings=Settings(worker_threads=0)):
        pass
    settings = Settings()
    engine = Engine(open_database(target, settings), settings)
    engine.db.write(ACCOUNT, lambda tx: accounts.insert(tx, ACCOUNT, 1))
    files = [texts[first : first + FILE_PARTS] for first in range(0, len(texts), FILE_PARTS)]
    for first in range(0, len(files), FOLDER_FILES):
        engine.db.write(ACCOUNT, partial(_insert_folder, number=first, files=files[first : first + FOLDER_FILES]))
    engine.start_workers(polls=False)
    engine.close()


def _insert_folder(tx: Tx, number: int, files: list[list[str]]) -> None:
    abstract = " ".join(file[0][:200] for file in files[:3])
    folder = StoredFile(root="resources", path=f"folder{number}", abstract=abstract, overview=abstract)
    store_file(tx, folder, 1_000_000 + number, NOW)
    for index, parts in enumerate(files, number):
        path = f"folder{number}/file{index}.md"
        store_file(tx, StoredFile(root="resources", path=path, parts=parts, abstract=parts[0][:200]), index + 1, NOW)
