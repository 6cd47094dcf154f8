"""Summaries of consecutive stretches as one, and what of them a session still has to know."""

from collections.abc import Sequence

import msgspec

from holdfast.context.summary.choosing import resolves
from holdfast.context.summary.rendering import EARLIER, EARLIER_SECTIONS, told
from holdfast.context.summary.sentences import likeness, words_of
from holdfast.context.tokens import estimate
from holdfast.model.summaries import Line, Summary

_KINDS = ("steps", "requests", "concepts", "decisions", "constraints", "facts", "pending")
_SAME = 0.9
_JOINED = 200
"""Lines of a kind up to which near repetitions are looked for; beyond, only exact ones."""


def combine(summaries: Sequence[Summary]) -> Summary:
    """Consecutive stretches as one: each line once with all its sources; what was done since is no longer pending."""
    if not summaries:
        return Summary()
    first, last = summaries[0], summaries[-1]
    pending: list[Line] = []
    for summary in summaries:
        done = [words_of(line.text) for line in (*summary.steps, *summary.decisions, *summary.facts)]
        pending = [line for line in pending if not any(resolves(words, words_of(line.text)) for words in done)]
        pending += summary.pending
    lines = {
        kind: _joined([line for each in summaries for line in getattr(each, kind)], near=kind != "constraints")
        for kind in _KINDS
    }
    return Summary(
        language=last.language,
        topic=_first(summaries, "topic"),
        intent=_first(summaries, "intent"),
        result=_first(summaries[::-1], "result"),
        status=last.status or first.status,
        **{**lines, "pending": _joined(pending, near=True)},
    )


def fold(earlier: Summary | None, older: Summary, bound: int) -> Summary:
    """What the session still has to know of `earlier` and `older`; as `render_rolling` shows it, within `bound` tokens.

    Constraints outlive everything, then pending items, decisions, facts, requests and steps; of a kind, the newer.
    """
    whole = combine([older] if earlier is None else [earlier, older])
    kept: dict[str, list[Line]] = {kind: [] for kind in _KINDS}
    room = bound - estimate(EARLIER)
    for kind, title in EARLIER_SECTIONS:
        lines: list[Line] = getattr(whole, kind)
        heading = estimate(f"\n\n### {title}")
        for line in reversed(lines):
            cost = estimate(f"\n{told(line)}") + (0 if kept[kind] else heading)
            if cost <= room:
                room -= cost
                kept[kind].append(line)
        kept[kind].reverse()
    return msgspec.structs.replace(whole, **kept)


def _first(summaries: Sequence[Summary], field: str) -> str:
    return next((value for value in (getattr(each, field) for each in summaries) if value), "")


def _joined(lines: Sequence[Line], *, near: bool) -> list[Line]:
    """Each line once, where it was said last, with the sources of all that say the same.

    Two rules that differ in a single word are two rules; of other lines, `near` ones are one if their numbers are.
    """
    kept: dict[str, Line] = {}
    words: dict[str, frozenset[str]] = {}
    for line in lines:
        key = line.text.casefold()
        mine = words_of(line.text)
        same = key if key in kept else _near(mine, words) if near else None
        sources = line.sources
        if same is not None:
            before = kept.pop(same)
            words.pop(same)
            sources = list(dict.fromkeys([*before.sources, *line.sources]))
            line = Line(line.text, sources, max(before.weight, line.weight))  # noqa: PLW2901
        kept[key], words[key] = line, mine
    return list(kept.values())


def _near(mine: frozenset[str], words: dict[str, frozenset[str]]) -> str | None:
    if len(words) > _JOINED:
        return None
    return next(
        (key for key, theirs in words.items() if likeness(mine, theirs) >= _SAME and _agree(mine, theirs)), None
    )


def _agree(mine: frozenset[str], theirs: frozenset[str]) -> bool:
    """Whether they differ in nothing that has a digit."""
    return not any(sign.isdigit() for word in mine ^ theirs for sign in word)
