"""Many writers of one root, with processing, moves, removals, additions and the deletion of another account."""

import random
import threading
from collections.abc import Callable
from contextlib import closing

import pytest

import holdfast
from holdfast import Client, Settings
from holdfast.composition import open_database
from holdfast.errors import HoldfastError, UnavailableError
from holdfast.store.database import EVERY_ACCOUNT, Tx
from holdfast.testing.tree_verification import TREE_INCONSISTENCIES

TOP = "viking://resources/top"
FOLDERS = 6
JOIN_SECONDS = 120.0
WORKERS = Settings(worker_threads=2, worker_poll_seconds=0.02)


def act(client: Client, rng: random.Random, number: int) -> None:
    """Make one random change of a tree that others change, too."""
    folder, other = (f"{TOP}/f{rng.randrange(FOLDERS)}" for _ in range(2))
    file = f"{folder}/file{rng.randrange(9)}.md"
    actions: list[Callable[[], object]] = [
        lambda: client.write(file, f"# Limpet {number}\n\nword{number} {rng.random()}"),
        lambda: client.write(file, f"# Limpet {number}\n\nword{number} {rng.random()}"),
        lambda: client.mv(folder, f"{other}-{rng.randrange(3)}"),
        lambda: client.mv(f"{other}-{rng.randrange(3)}", folder),
        lambda: client.rm(folder, recursive=True),
        lambda: client.rm(file),
        lambda: client.restore(folder),
        lambda: client.mv(file, f"viking://user/default/resources/m{rng.randrange(5)}.md"),
        lambda: client.add_resource(f"# Added {number}", name=f"a{number % 4}.md", to=f"{folder}/added{number % 3}"),
        lambda: client.add_message("chat", "user", f"limpet {number}"),
    ]
    rng.choice(actions)()


def check_tree(tx: Tx) -> None:
    for problem, sql in TREE_INCONSISTENCIES.items():
        rows = tx.all(sql)
        assert not rows, f"{problem}: {rows[:5]}"


@pytest.mark.rounds
def test_many_writers_of_one_root_leave_a_correct_tree_and_index(target: str, *, is_soak: bool) -> None:
    unexpected: list[BaseException] = []
    deleted = threading.Event()

    def work(seed: int) -> None:
        rng = random.Random(seed)
        account = "gone" if seed % 4 == 0 else "default"
        with holdfast.connect(target, account=account, role="admin", settings=WORKERS) as client:
            for number in range(200 if is_soak else 30):
                try:
                    act(client, rng, seed * 1_000 + number)
                except UnavailableError as error:
                    unexpected.append(error)
                except HoldfastError:
                    continue
                except BaseException as error:  # noqa: BLE001 - the test reports it
                    unexpected.append(error)
                if account == "gone" and number == 20 and not deleted.is_set():
                    deleted.set()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    with holdfast.connect(target, settings=WORKERS) as operator:
        with holdfast.connect(target, account="gone", settings=WORKERS) as first:
            first.mkdir(TOP)
        for thread in threads:
            thread.start()
        deleted.wait(JOIN_SECONDS)
        operator.admin.delete_account("gone")
        for thread in threads:
            thread.join(JOIN_SECONDS)
        assert not any(thread.is_alive() for thread in threads)
        operator.wait_until_idle()
    assert unexpected == []
    with closing(open_database(target, Settings())) as database:
        database.read(EVERY_ACCOUNT, check_tree)


def test_a_file_that_is_removed_before_its_new_version_is_processed_leaves_nothing_in_the_index(target: str) -> None:
    with holdfast.connect(target, settings=WORKERS) as client:
        for name in ("one.md", "deep/er.txt"):
            client.write(f"{TOP}/{name}", "# Limpet\n\nIt sticks.")
        client.wait_until_idle()
        for name in ("one.md", "deep/er.txt"):
            client.write(f"{TOP}/{name}", "# Barnacle\n\nIt sticks, too.")
        client.rm(TOP, recursive=True)
        client.wait_until_idle()
    with closing(open_database(target, Settings())) as database:
        database.read(EVERY_ACCOUNT, check_tree)
