"""A process killed with SIGKILL while it moves, removes and restores a large folder."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import holdfast
from holdfast import Client, Settings
from holdfast.composition import open_database
from holdfast.engine.gate.ids import system_clock
from holdfast.store import file_damage
from holdfast.store.database import EVERY_ACCOUNT, Database, Tx
from holdfast.store.repair import repair
from holdfast.store.tables.tree import blobs
from holdfast.testing.stored_files import StoredFile, store_file
from holdfast.testing.tree_verification import TREE_INCONSISTENCIES

PROGRAM = Path(__file__).parent / "programs" / "changing_trees.py"
NODES = 1_000
REMOVED = "removed"
TIMEOUT_SECONDS = 60.0
NO_SETTINGS = Settings(worker_threads=0)
SETTLED = {name: sql for name, sql in TREE_INCONSISTENCIES.items() if name.startswith(("a node", "the "))}
"""What holds although nothing was processed."""
State = tuple[str, str]
"""The name of the folder, or `removed`, and the number of the note."""


def paths_of_folder() -> dict[str, str]:
    """Return the paths in a folder with about a thousand nodes, with the texts of files. A folder has none."""
    rng = random.Random(7)
    folders = [""]
    for number in range(NODES // 8):
        folders.append(f"{rng.choice(folders)}/{'%25é' if number % 9 == 0 else 'f'}{number}")
    files = {f"{rng.choice(folders)}/{number}.md": f"# {number}\n\n{'x' * (number % 50)}" for number in range(NODES)}
    kept = list(files.items())[: NODES - len(folders)]
    return dict.fromkeys(folders, "") | dict(kept)


FOLDER = paths_of_folder()


def store_folder(database: Database) -> None:
    def store(tx: Tx) -> None:
        for number, (path, text) in enumerate(FOLDER.items()):
            file = StoredFile(root="resources", path=f"work/one{path}", parts=[text] if text else ())
            store_file(tx, file, node_id=number + 1, now=system_clock())

    database.write("default", store)


def read_files(tx: Tx) -> dict[str, str | None]:
    """Return the hash of each visible file, and None for each folder, by their paths."""
    rows = tx.all(
        "SELECT n.path, c.blob FROM nodes n LEFT JOIN contents c ON c.account_id = n.account_id"
        " AND c.content_id = n.content_id WHERE n.root = 'resources' AND n.removed_at IS NULL"
    )
    assert len(rows) == len({path for path, _ in rows})
    return dict(rows)


def read_folders_and_note(found: dict[str, str | None]) -> tuple[set[str], str | None]:
    """Return the names that the folder has, and the hash of the note. Other files must be as they were."""
    note = found.pop("work/note.md")
    assert found.pop("work") is None
    assert found.pop("kept.md") == blobs.hash_of(b"# Kept")
    assert found.pop("work/two", None) is None  # the empty folder stays when the one in it is moved
    names = {name for name in ("one", "two/deep", "three") if f"work/{name}" in found}
    expected = {
        f"work/{name}{path}": blobs.hash_of(text.encode()) if text else None
        for name in names
        for path, text in FOLDER.items()
    }
    assert found == expected
    return names, note


def text_of(number: str) -> str:
    return f"{number} " + f"limpet{number} " * 400


class Changes:
    """A running program that changes the tree."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.last = "one"
        """The name that the folder had last."""

    def _read_line(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline().rstrip("\n")

    def kill_after(self, changes: int, seconds: float) -> set[State]:
        """Start a process, and kill it some time after a number of changes. Return the states that are possible."""
        assert self._process.stdin
        self._process.stdin.write(f"{self.last}\n")
        self._process.stdin.flush()
        child = int(self._read_line())
        lines = [self._read_line()]
        while sum(line.startswith("done") for line in lines) < changes:
            lines.append(self._read_line())
            assert lines[-1], lines
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        lines += self._read_rest(child)
        for line in lines:
            self.last = next((name for name in line.split()[1::2] if name != REMOVED), self.last)
        kind, *words = lines[-1].split()
        states = {(words[index], words[index + 1]) for index in range(0, len(words), 2)}
        assert len(states) == (2 if kind == "begin" else 1), lines[-1]
        return states

    def _read_rest(self, child: int) -> list[str]:
        """Return the lines that the killed process wrote last. The program ends them when it has noticed."""
        lines = []
        while (line := self._read_line()) != f"killed {child}":
            assert line, "the program has ended"
            lines.append(line)
        return lines


@contextmanager
def run_changes(target: str) -> Iterator[Changes]:
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), target], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield Changes(process)
    finally:
        process.communicate(timeout=TIMEOUT_SECONDS)


def check_state(database: Database, states: set[State]) -> None:
    found = database.read(EVERY_ACCOUNT, read_files)
    names, note = read_folders_and_note(found)
    possible = [
        (set() if name == REMOVED else {name}, blobs.hash_of(text_of(number).encode())) for name, number in states
    ]
    assert (names, note) in possible
    database.read(EVERY_ACCOUNT, check_paths)


def check_paths(tx: Tx) -> None:
    for problem, sql in SETTLED.items():
        assert tx.all(sql) == [], problem


def check_repair(database: Database) -> None:
    """Check that a repair finds nothing to mend but blobs that nothing refers to, and deletes all of them."""
    before = database.read(EVERY_ACCOUNT, read_files)
    assert all(each.is_done for each in repair(database, lambda *_: None, system_clock))
    assert file_damage.count_unused(database) == 0
    assert list(file_damage.find_in_files(database, lambda *_: None)) == []
    assert database.read(EVERY_ACCOUNT, read_files) == before


@pytest.fixture
def client(target: str) -> Iterator[Client]:
    with holdfast.connect(target, settings=NO_SETTINGS) as client:
        yield client


@pytest.mark.rounds
def test_after_a_kill_the_folder_is_as_before_or_as_after_the_change(
    client: Client, target: str, *, is_soak: bool
) -> None:
    client.write("viking://resources/kept.md", "# Kept")
    client.write("viking://resources/work/note.md", text_of("0"))
    rng, states = random.Random(), set[State]()
    with closing(open_database(target, NO_SETTINGS)) as database:
        database.migrate(system_clock())
        store_folder(database)
        with run_changes(target) as changes:
            for _ in range(200 if is_soak else 8):
                states = changes.kill_after(rng.randrange(4), rng.uniform(0, 0.03))
                check_state(database, states)
        if not read_folders_and_note(database.read(EVERY_ACCOUNT, read_files))[0]:
            client.restore(f"viking://resources/work/{changes.last}")
            check_state(database, {(changes.last, number) for _, number in states})
        check_repair(database)
