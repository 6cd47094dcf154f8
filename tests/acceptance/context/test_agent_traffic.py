"""Overviews of recorded agent traffic: they have the values that the agent needs later, and exactly the open calls."""

from pathlib import Path

import pytest

import holdfast
from conversations import recorded
from holdfast.text import tokens

MIN_KEPT, MAX_SHARE = 0.93, 0.42
count_exactly = tokens.counter("o200k_base")


@pytest.fixture(scope="module")
def trajectories() -> list[recorded.Trajectory]:
    file = recorded.find_data_file()
    if file is None:
        pytest.skip(f"{recorded.FILE} is not in HOLDFAST_DATA")
    return recorded.load_trajectories(file)


def test_an_overview_has_the_values_that_later_calls_use(
    trajectories: list[recorded.Trajectory], tmp_path: Path
) -> None:
    needed = kept = in_last_messages = overview_tokens = text_tokens = 0
    with holdfast.connect(tmp_path) as client:
        for cut in map(recorded.cut_in_middle, trajectories):
            overview = recorded.commit_and_read_overview(client, cut.id, cut.before)
            needed += len(cut.needed)
            kept += len(recorded.find_labelled_values(cut, overview))
            last_messages = recorded.last_messages_within(cut.before, count_exactly(overview), count_exactly)
            in_last_messages += sum(value in last_messages for value in cut.needed)
            overview_tokens += count_exactly(overview)
            text_tokens += count_exactly(cut.text)
    assert kept / needed >= MIN_KEPT
    assert overview_tokens / text_tokens <= MAX_SHARE
    assert in_last_messages < kept


def test_exactly_the_open_calls_are_reported_as_open(trajectories: list[recorded.Trajectory], tmp_path: Path) -> None:
    with holdfast.connect(tmp_path) as client:
        for trajectory in trajectories[::4]:
            name, messages = trajectory.id, trajectory.messages
            lines = recorded.open_call_lines(recorded.commit_and_read_overview(client, name, messages))
            assert len(lines) == recorded.count_open_calls(messages), name
            cut = messages[: _last_call_index(messages) + 1]
            with_question = [*cut, {"role": "user", "content": "?"}]
            lines = recorded.open_call_lines(recorded.commit_and_read_overview(client, f"{name}-cut", with_question))
            assert len(lines) == recorded.count_open_calls(cut), name


def _last_call_index(messages: list[dict[str, object]]) -> int:
    """Return the index of the last message that makes a tool call."""
    return max((index for index, message in enumerate(messages) if message.get("tool_calls")), default=0)
