"""Two hundred files with flipped bits, and flips in the write-ahead log."""

import shutil
from pathlib import Path

import holdfast
from holdfast.testing.faults import damage

ROUNDS = 200
FIRST_SEED = 10_000


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
