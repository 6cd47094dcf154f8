"""Programs that end without closing, and programs that are interrupted and go on."""

import sys
from pathlib import Path

from holdfast.testing.faults.processes import running
from holdfast.testing.faults.verification import verify
from holdfast.testing.faults.workload import Ledger

EXITING = str(Path(__file__).with_name("programs") / "exiting.py")
INTERRUPTED = str(Path(__file__).with_name("programs") / "interrupted.py")


def test_an_exit_amid_appends_is_clean_and_takes_nothing_that_was_acknowledged(target: str) -> None:
    ledger = Ledger()
    with running([sys.executable, "-X", "dev", "-W", "error", EXITING, target], ledger) as program:
        program.finish()
    assert len(ledger.acknowledged) >= 15
    if "://" not in target:
        assert [file.name for file in Path(target).parent.iterdir()] == ["holdfast.db"]
    verify(target, ledger)


def test_a_caller_that_is_interrupted_harms_neither_itself_nor_others(tmp_path: Path) -> None:
    target, ledger = str(tmp_path / "holdfast.db"), Ledger()
    with running([sys.executable, INTERRUPTED, target], ledger) as program:
        program.finish()
    assert len(ledger.unanswered()) > 20
    verify(target, ledger)
