"""Many writers of one root, with processing, moves, removals, additions and the deletion of another account."""

import io
import random
import threading
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

import holdfast
from holdfast import Client, Settings
from holdfast.composition import open_database
from holdfast.errors import HoldfastError, NotFoundError, UnavailableError
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


SHARED = [f"<html><body><h1>Shore {number}</h1><p>limpet{number}</p></body></html>" for number in range(12)]
"""Contents that all writers write, in different orders. Their texts are extracted when they are processed."""


def packed(files: dict[str, str]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return file.getvalue()


def write_shared(client: Client, rng: random.Random, seed: int, number: int, file: Path) -> None:
    """Write contents that others write at the same time to other places."""
    texts = rng.sample([text.replace("Shore", f"Shore {number}") for text in SHARED], len(SHARED))
    top = rng.choice(["viking://resources", "viking://user/default/resources"])
    operations = [{"uri": f"{top}/w{seed}/{place}.html", "content": text} for place, text in enumerate(texts)]
    skill = f"---\nname: skill{seed}\ndescription: Shore {number}\n---\n"
    file.write_bytes(packed({"SKILL.md": skill} | {f"{place}.html": text for place, text in enumerate(texts)}))
    actions: list[Callable[[], object]] = [
        lambda: client.batch_write(top, operations),
        lambda: client.add_resource(file.read_bytes(), name="shore.zip", to=f"{top}/added{seed}"),
        lambda: client.add_skill(temp_file_id=client.upload(file).temp_file_id),
        lambda: client.mv(f"{top}/w{seed}", f"viking://user/default/skills/w{seed}-{number}"),
        lambda: client.rm(f"{top}/w{seed}", recursive=True),
        lambda: client.reindex(top),
    ]
    rng.choice(actions)()


def count_deadlocks(target: str) -> int:
    with psycopg.connect(target) as connection:
        row = connection.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").fetchone()
    return int(row[0]) if row else 0


@pytest.mark.rounds
@pytest.mark.parametrize("target", ["postgres"], indirect=True)
def test_writers_of_the_same_contents_do_not_deadlock(target: str, tmp_path: Path, *, is_soak: bool) -> None:
    unexpected: list[BaseException] = []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        with holdfast.connect(target, role="admin", settings=WORKERS) as client:
            for number in range(100 if is_soak else 6):
                try:
                    write_shared(client, rng, seed, number, tmp_path / f"{seed}.zip")
                except NotFoundError:
                    continue
                except BaseException as error:  # noqa: BLE001 - the test reports it
                    unexpected.append(error)

    with holdfast.connect(target, settings=WORKERS) as operator:
        for folder in ("viking://resources/top", "viking://user/default/resources/top"):
            operator.mkdir(folder)
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(JOIN_SECONDS)
        operator.wait_until_idle()
    assert unexpected == []
    assert count_deadlocks(target) == 0
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


def test_a_file_that_a_skill_does_not_have_any_more_leaves_nothing_in_the_index(target: str, tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text("---\nname: moor\ndescription: Moors a boat.\n---\n# Moor\n")
    (tmp_path / "extra").mkdir()
    for name in ("knots.md", "extra/tides.md"):
        (tmp_path / name).write_text(f"# Limpet\n\nAbout {name}.")
    with holdfast.connect(target, settings=WORKERS) as client:
        client.add_skill(tmp_path)
        client.wait_until_idle()
        (tmp_path / "knots.md").unlink()
        (tmp_path / "extra/tides.md").unlink()
        client.add_skill(tmp_path)
        client.wait_until_idle()
    with closing(open_database(target, Settings())) as database:
        database.read(EVERY_ACCOUNT, check_tree)
