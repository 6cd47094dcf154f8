"""What is left of real agent traffic after a commit: what the agent will need, and no finished call as open."""

from pathlib import Path

import pytest

import holdfast
from conversations import recorded
from holdfast.text import tokens

MIN_KEPT, MAX_SHARE = 0.93, 0.42
exact = tokens.counter("o200k_base")


@pytest.fixture(scope="module")
def trajectories() -> list[recorded.Trajectory]:
    file = recorded.data_file()
    if file is None:
        pytest.skip(f"{recorded.FILE} is not in HOLDFAST_DATA")
    return recorded.trajectories(file)


def test_an_overview_holds_the_values_that_later_calls_use(
    trajectories: list[recorded.Trajectory], tmp_path: Path
) -> None:
    needed = kept = last = size = whole = 0
    with holdfast.connect(tmp_path) as client:
        for cut in map(recorded.cut, trajectories):
            overview = recorded.commit(client, cut.id, cut.before)
            needed += len(cut.needed)
            kept += len(recorded.labelled(cut, overview))
            turns = recorded.last_turns(cut.before, exact(overview), exact)
            last += sum(value in turns for value in cut.needed)
            size += exact(overview)
            whole += exact(cut.text)
    assert kept / needed >= MIN_KEPT
    assert size / whole <= MAX_SHARE
    assert last < kept


def test_no_finished_call_is_reported_as_open_and_every_open_one_is(
    trajectories: list[recorded.Trajectory], tmp_path: Path
) -> None:
    with holdfast.connect(tmp_path) as client:
        for each in trajectories[::4]:
            listed = recorded.listed_calls(recorded.commit(client, each.id, each.messages))
            assert len(listed) == recorded.open_calls(each.messages), each.id
            cut = each.messages[: _last_call(each.messages) + 1]
            listed = recorded.listed_calls(
                recorded.commit(client, f"{each.id}-cut", [*cut, {"role": "user", "content": "?"}])
            )
            assert len(listed) == recorded.open_calls(cut), each.id


def _last_call(messages: list[dict[str, object]]) -> int:
    """The place of the last message that makes a call."""
    return max((place for place, message in enumerate(messages) if message.get("tool_calls")), default=0)
