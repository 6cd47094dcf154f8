"""Programs that exit without closing the client, and programs that are interrupted and continue."""

import sys
from pathlib import Path

from holdfast.testing.faults.processes import run_program
from holdfast.testing.faults.verification import verify
from holdfast.testing.faults.workload import AppendLog

EXITING = str(Path(__file__).with_name("programs") / "exiting.py")
INTERRUPTED = str(Path(__file__).with_name("programs") / "interrupted.py")


def test_an_exit_during_appends_is_clean_and_loses_nothing_acknowledged(target: str) -> None:
    append_log = AppendLog()
    with run_program([sys.executable, "-X", "dev", "-W", "error", EXITING, target], append_log) as program:
        program.finish()
    assert len(append_log.acknowledged) >= 15  # three threads make at least five appends each
    if "://" not in target:  # SQLite: a clean exit removes the write-ahead log
        assert [file.name for file in Path(target).parent.iterdir()] == ["holdfast.db"]
    verify(target, append_log)


def test_an_interrupted_caller_harms_neither_itself_nor_other_threads(tmp_path: Path) -> None:
    target, append_log = str(tmp_path / "holdfast.db"), AppendLog()
    with run_program([sys.executable, INTERRUPTED, target], append_log) as program:
        program.finish()
    assert len(append_log.unacknowledged()) > 20
    verify(target, append_log)
