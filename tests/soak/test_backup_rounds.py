"""Twenty backups under 64 writers, each restored elsewhere."""

from pathlib import Path

import pytest

import holdfast
from holdfast.cli import main
from holdfast.store.drivers.sqlite import backup as sqlite_backup
from holdfast.testing.faults.backups import back_up_under_load, check_restored
from holdfast.testing.faults.damage import NO_WORKERS


@pytest.mark.parametrize("number", range(20))
def test_a_backup_under_64_writers_is_a_prefix_of_every_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(sqlite_backup, "STEP_PAGES", 2**number % 61 + 1)
    file, backup, restored = tmp_path / "holdfast.db", tmp_path / "backup.db", tmp_path / "elsewhere" / "holdfast.db"
    with holdfast.connect(file, settings=NO_WORKERS) as client:
        for _ in range(number):
            client.batch_add_messages("big", [{"role": "user", "content": "x" * 9_000}] * 100)

        def back_up() -> None:
            assert main(["backup", str(backup), "--path", str(file)]) == 0

        before, after = back_up_under_load(client, back_up)
    assert main(["restore", str(backup), "--path", str(restored)]) == 0
    check_restored(restored, before, after)
