"""Measures, on recorded agent traffic, which values survive a commit and whether open tool calls are reported."""

import holdfast
from conversations import recorded
from quality.figures import QualityFigure, count_tokens
from scale import Setup

MIN_KEPT, MAX_SHARE = 0.93, 0.42
"""The share of values that an overview must keep, and its largest size as a share of the conversation."""


def measure(setup: Setup) -> list[QualityFigure]:
    file = recorded.find_data_file()
    if file is None:
        note = f"skipped: {recorded.FILE} is not in the folder that HOLDFAST_DATA names"
        return [QualityFigure(name="real agent traffic", measured="-", notes=[note])]
    trajectories = recorded.load_trajectories(file)[:: setup.scale.sample_step]
    with holdfast.connect(setup.folder / "agents.db") as client:
        return [*_measure_values(client, trajectories), _measure_open_calls(client, trajectories)]


def _measure_values(client: holdfast.Client, trajectories: list[recorded.Trajectory]) -> list[QualityFigure]:
    """Measure how many of the values that later tool calls need are in the overview of the messages before them."""
    needed = kept = labelled = in_last_messages = overview_tokens = text_tokens = 0
    for cut in map(recorded.cut_in_middle, trajectories):
        overview = recorded.commit_and_read_overview(client, f"{cut.id}-cut", cut.before)
        tokens = count_tokens(overview)
        needed += len(cut.needed)
        kept += sum(value in overview for value in cut.needed)
        labelled += len(recorded.find_labelled_values(cut, overview))
        last_messages = recorded.last_messages_within(cut.before, tokens, count_tokens)
        in_last_messages += sum(value in last_messages for value in cut.needed)
        overview_tokens += tokens
        text_tokens += count_tokens(cut.text)
    share = overview_tokens / text_tokens
    return [
        QualityFigure(
            name="values that later tool calls use, on a short line with their field, tool or owner",
            measured=f"{labelled / needed:.3f} of {needed}",
            target=f">= {MIN_KEPT}",
            met=labelled / needed >= MIN_KEPT,
            notes=[f"anywhere in the overview: {kept / needed:.3f} of the values"],
        ),
        QualityFigure(
            name="... at this share of the text's tokens (o200k)",
            measured=f"{share:.3f}",
            target=f"<= {MAX_SHARE}",
            met=share <= MAX_SHARE,
        ),
        QualityFigure(
            name="... for comparison, in the last messages of the same size",
            measured=f"{in_last_messages / needed:.3f}",
        ),
    ]


def _measure_open_calls(client: holdfast.Client, trajectories: list[recorded.Trajectory]) -> QualityFigure:
    wrong = missing = 0
    for trajectory in trajectories:
        overview = recorded.commit_and_read_overview(client, trajectory.id, trajectory.messages)
        listed, expected = len(recorded.open_call_lines(overview)), recorded.count_open_calls(trajectory.messages)
        wrong += max(0, listed - expected)
        missing += max(0, expected - listed)
    return QualityFigure(
        name="finished calls reported as open / open calls not listed",
        measured=f"{wrong} / {missing}",
        target="0 / 0",
        met=wrong == missing == 0,
    )
