"""How much of the evidence `search` finds, on our own chats and, if they are on this machine, on LoCoMo."""

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from assistant_chats import longmemeval_rows
from holdfast.config import Settings
from holdfast.evaluation.datasets import locomo, longmemeval
from holdfast.evaluation.model import Dataset, Report
from holdfast.evaluation.renaming import rename_and_shift
from holdfast.evaluation.running import evaluate
from holdfast.testing.postgres import PostgresServer

DATA = Path(os.environ.get("HOLDFAST_DATA") or Path(__file__).parents[4] / "shared" / "data") / "locomo_dev.json"
needs_locomo = pytest.mark.skipif(not DATA.is_file(), reason=f"{DATA.name} is not on this machine")

# The ranker's figures, less what a change of a few questions may cost. Raise them when the ranker improves.
MIN_CHATS = {5: 0.64, 10: 0.70, 20: 0.78}
MIN_LOCOMO = {5: 0.745, 10: 0.815, 20: 0.87}
MIN_LOCOMO_SESSIONS = {5: 0.88}
MAX_CHANGE_BY_NAMES_AND_DATES = 0.02
MAX_DIFFERENCE_OF_DATABASES = 0.01


def ignore(_done: int, _total: int, _label: str) -> None:
    pass


def shares(report: Report, level: str = "turn") -> dict[int, float]:
    (figures,) = (each for each in report.figures if (each.level, each.category) == (level, "all"))
    return figures.scores.share


def evaluate_quietly(dataset: Dataset, target: str | None = None) -> Report:
    return evaluate(dataset, target, Settings(), "default settings", ignore)


@pytest.fixture(scope="module")
def locomo_dev() -> Any:
    return locomo.read_dataset(msgspec.json.decode(DATA.read_bytes()))


@pytest.fixture(scope="module")
def locomo_report(locomo_dev: Dataset) -> Report:
    return evaluate_quietly(locomo_dev)


@pytest.fixture(scope="module")
def chats() -> Dataset:
    return longmemeval.read_dataset(longmemeval_rows())


@pytest.fixture(scope="module")
def chats_report(chats: Dataset) -> Report:
    return evaluate_quietly(chats)


def test_facts_of_short_user_turns_are_found_among_long_turns_of_an_assistant(chats_report: Report) -> None:
    found = shares(chats_report)
    assert {k: found[k] for k in MIN_CHATS if found[k] < MIN_CHATS[k]} == {}


def test_both_databases_find_the_same(chats: Dataset, chats_report: Report, postgres: PostgresServer) -> None:
    found = shares(evaluate_quietly(chats, postgres.new_migrated_database()))
    assert found == pytest.approx(shares(chats_report), abs=MAX_DIFFERENCE_OF_DATABASES)


@needs_locomo
def test_the_evidence_of_long_conversations_is_found(locomo_report: Report) -> None:
    turns, sessions = shares(locomo_report), shares(locomo_report, "session")
    assert {k: turns[k] for k in MIN_LOCOMO if turns[k] < MIN_LOCOMO[k]} == {}
    assert {k: sessions[k] for k in MIN_LOCOMO_SESSIONS if sessions[k] < MIN_LOCOMO_SESSIONS[k]} == {}


@needs_locomo
def test_other_names_and_dates_change_little(locomo_dev: Dataset, locomo_report: Report) -> None:
    changed = shares(evaluate_quietly(rename_and_shift(locomo_dev, rename=True, days=371)))
    before = shares(locomo_report)
    assert all(abs(changed[k] - before[k]) <= MAX_CHANGE_BY_NAMES_AND_DATES for k in MIN_LOCOMO)
