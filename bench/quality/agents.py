"""What an agent will need after a commit, and whether finished tool calls are reported as open, on real traffic."""

import holdfast
from conversations import recorded
from quality.shown import Shown, count
from scale import Setup

MIN_KEPT, MAX_SHARE = 0.93, 0.42


def measure(setup: Setup) -> list[Shown]:
    file = recorded.data_file()
    if file is None:
        note = f"left out: {recorded.FILE} is not in the folder that HOLDFAST_DATA names"
        return [Shown(what="real agent traffic", measured="-", notes=[note])]
    given = recorded.trajectories(file)[:: setup.scale.every]
    with holdfast.connect(setup.folder / "agents.db") as client:
        return [*_needs(client, given), _calls(client, given)]


def _needs(client: holdfast.Client, given: list[recorded.Trajectory]) -> list[Shown]:
    needed = kept = labelled = last = size = whole = 0
    for cut in map(recorded.cut, given):
        overview = recorded.commit(client, f"{cut.id}-cut", cut.before)
        spent = count(overview)
        needed += len(cut.needed)
        kept += sum(value in overview for value in cut.needed)
        labelled += len(recorded.labelled(cut, overview))
        turns = recorded.last_turns(cut.before, spent, count)
        last += sum(value in turns for value in cut.needed)
        size += spent
        whole += count(cut.text)
    share = size / whole
    return [
        Shown(
            what="values that later tool calls use, on a short line with their field, tool or owner",
            measured=f"{labelled / needed:.3f} of {needed}",
            target=f">= {MIN_KEPT}",
            met=labelled / needed >= MIN_KEPT,
            notes=[f"anywhere in the overview: {kept / needed:.3f} of the values"],
        ),
        Shown(
            what="... at this share of the text's tokens (o200k)",
            measured=f"{share:.3f}",
            target=f"<= {MAX_SHARE}",
            met=share <= MAX_SHARE,
        ),
        Shown(what="... for comparison, in the last turns of the same size", measured=f"{last / needed:.3f}"),
    ]


def _calls(client: holdfast.Client, given: list[recorded.Trajectory]) -> Shown:
    wrong = missing = 0
    for each in given:
        overview = recorded.commit(client, each.id, each.messages)
        listed, open_ = recorded.listed_calls(overview), recorded.open_calls(each.messages)
        wrong += max(0, len(listed) - open_)
        missing += max(0, open_ - len(listed))
    return Shown(
        what="finished calls reported as open / open calls not listed",
        measured=f"{wrong} / {missing}",
        target="0 / 0",
        met=wrong == missing == 0,
    )
