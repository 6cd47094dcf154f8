"""Workers whose clocks are wrong: four processes on two clocks, some of which are killed."""

from pathlib import Path

import pytest

from holdfast.testing.faults.workers.wrong_clocks import SCENARIOS, Scenario, run_scenario

CHOSEN = [scenario for scenario in SCENARIOS if scenario.name in {"ahead", "jumping"}]


@pytest.mark.parametrize("scenario", CHOSEN, ids=lambda scenario: scenario.name)
def test_each_archive_is_done_once_in_order_and_in_time_and_no_key_is_forgotten(
    scenario: Scenario, target: str, tmp_path: Path
) -> None:
    run_scenario(scenario, target, tmp_path / "killed", archives=2, sessions_without_kill=3)
