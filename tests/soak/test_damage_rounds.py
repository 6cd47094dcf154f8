"""Two hundred files with flipped bits, and flips in the write-ahead log."""

import shutil
from pathlib import Path

import holdfast
from holdfast.errors import HoldfastError
from holdfast.testing.faults import damage
from holdfast.testing.server import running_server

ROUNDS = 200
FIRST_SEED = 10_000
SERVED_ROUNDS = 20


def test_every_change_by_random_bits_is_named_in_200_files(tmp_path: Path) -> None:
    original = tmp_path / "holdfast.db"
    damage.make_database(original)
    with holdfast.connect(original, settings=damage.NO_WORKERS) as client:
        before = damage.read_everything(client)
    rounds = [damage.run_round(original, before, tmp_path, seed) for seed in range(FIRST_SEED, FIRST_SEED + ROUNDS)]
    assert [(each.seed, each.silent) for each in rounds if each.silent] == []
    assert sum(bool(each.damages) for each in rounds) > ROUNDS // 2


def test_flips_in_the_log_lose_no_message_silently(tmp_path: Path) -> None:
    """SQLite's log has checksums of its own: it ends before the first damaged frame."""
    original = tmp_path / "holdfast.db"
    damage.make_database(original)
    with holdfast.connect(original, settings=damage.NO_WORKERS) as client:
        client.batch_add_messages("plain", [{"role": "user", "content": f"late {number}"} for number in range(50)])
        before = damage.read_everything(client)
        copies = []
        for seed in range(ROUNDS // 4):
            copy = tmp_path / f"copy_{seed}.db"
            shutil.copyfile(original, copy)
            shutil.copyfile(f"{original}-wal", f"{copy}-wal")
            copies.append(copy)
    for seed, copy in enumerate(copies):
        damage.flip_bits(Path(f"{copy}-wal"), seed)
        assert list(damage.silent_changes(before, damage.read_embedded(copy))) == []


def test_a_server_on_a_damaged_file_answers_every_request(tmp_path: Path) -> None:
    original = tmp_path / "holdfast.db"
    damage.make_database(original)
    with holdfast.connect(original, settings=damage.NO_WORKERS) as client:
        before = damage.read_everything(client)
    served = 0
    for seed in range(SERVED_ROUNDS):
        file = tmp_path / f"served_{seed}.db"
        shutil.copyfile(original, file)
        damage.flip_bits(file, seed)
        tried = tmp_path / "tried.db"
        shutil.copyfile(file, tried)
        if isinstance(damage.read_embedded(tried).get("connect"), HoldfastError):
            continue  # the server does not start, and says why
        with running_server(file, worker_threads=1) as server, holdfast.connect(server.url) as client:
            after = damage.read_everything(client)
            damage.change_everything(client)
            assert '"failed"' not in server.log()
        assert list(damage.silent_changes(before, after)) == []
        served += 1
    assert served > SERVED_ROUNDS // 2
