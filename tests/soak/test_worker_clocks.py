"""Long rounds of workers whose clocks are wrong."""

from pathlib import Path

import pytest

from holdfast.testing.faults.workers.wrong_clocks import SCENARIOS, Scenario, run_scenario


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
@pytest.mark.parametrize("repetition", [1, 2])
def test_each_archive_is_done_once_in_order_and_in_time_and_no_key_is_forgotten(
    scenario: Scenario, target: str, tmp_path: Path, repetition: int
) -> None:
    run_scenario(scenario, target, tmp_path / f"killed-{repetition}", archives=4, sessions_without_kill=20)
