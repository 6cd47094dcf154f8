"""Summaries of consecutive stretches as one, and what of them a session still has to know."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from holdfast.model.summaries import Line, Summary
from holdfast.summary.local.selection import resolves
from holdfast.summary.rendering import EARLIER, EARLIER_SECTIONS, PENDING, RULES, render_line
from holdfast.summary.rules import StandingRules, join, settle
from holdfast.text.sentences import likeness, words_of
from holdfast.text.tokens import estimate

_KINDS = ("steps", "requests", "concepts", "decisions", "facts", "values", "pending")
MAX_RULES = 1_000
_VERBATIM = frozenset({"values"})
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
        pending = [*_still_open(pending, summary), *summary.pending]
    lines = {
        kind: _joined([line for each in summaries for line in getattr(each, kind)], near=kind not in _VERBATIM)
        for kind in _KINDS
    }
    rules = StandingRules()
    for summary in summaries:
        rules = join(rules, StandingRules(summary.constraints, summary.withdrawals))
    return Summary(
        language=last.language,
        topic=_first(summaries, "topic"),
        intent=_first(summaries, "intent"),
        result=_first(summaries[::-1], "result"),
        status=last.status or first.status,
        **{**lines, "pending": _joined(pending, near=True)},
        constraints=rules.rules[-MAX_RULES:],
        withdrawals=rules.withdrawals,
        answered_calls=[call for each in summaries for call in each.answered_calls],
    )


def as_of(earlier: Summary, own: Summary) -> Summary:
    """`earlier` as it stands after a further stretch: without rules that changed there, and items that were done."""
    before = StandingRules(earlier.constraints, earlier.withdrawals)
    after = join(before, StandingRules(own.constraints, own.withdrawals))
    rules = [line for line in earlier.constraints if line in after.rules and line not in own.constraints]
    return msgspec.structs.replace(earlier, constraints=rules, pending=_still_open(earlier.pending, own))


def since(summary: Summary, seq: int) -> Summary:
    """What a summary says of rules after message `seq`."""

    def after(lines: Sequence[Line]) -> list[Line]:
        return [line for line in lines if line.sources and line.sources[0] > seq]

    return Summary(
        constraints=after(summary.constraints),
        withdrawals=after(summary.withdrawals),
        answered_calls=summary.answered_calls,
    )


def with_late(earlier: Summary, late: Summary, first: int, last: int, bound: int) -> Summary:
    """`earlier` with a stretch that was finished late: messages `first` to `last`, which others have followed since.

    What was withdrawn or answered after it is taken from it; what it withdraws is taken only from what was before it.
    """
    kept = as_of(late, since(earlier, last))
    before = [line for line in earlier.constraints if line.sources and line.sources[0] < first]
    withdrawn = set(map(_identity, before)) - set(map(_identity, settle(before, late.withdrawals)))
    rules = [line for line in earlier.constraints if _identity(line) not in withdrawn]
    whole = fold(
        msgspec.structs.replace(earlier, constraints=rules), msgspec.structs.replace(kept, withdrawals=[]), bound
    )
    ordered = sorted(whole.constraints, key=lambda line: line.sources[:1])
    return msgspec.structs.replace(whole, constraints=ordered, withdrawals=earlier.withdrawals)


def _identity(line: Line) -> tuple[object, ...]:
    return line.text, *line.sources


def _still_open(pending: Sequence[Line], later: Summary) -> list[Line]:
    """What is not done later: a call is done when its result is there, anything else when something says so."""
    done = [words_of(line.text) for line in (*later.steps, *later.decisions, *later.facts)]
    answered = Counter(later.answered_calls)
    kept: list[Line] = []
    for line in pending:
        if line.call:
            answered[line.call] -= 1  # without ids several calls wait under one name, the earliest first
            is_open = answered[line.call] < 0
        else:
            is_open = not any(resolves(words, words_of(line.text)) for words in done)
        if is_open:
            kept.append(line)
    return kept


def fold(earlier: Summary | None, older: Summary, bound: int) -> Summary:
    """What the session still has to know of `earlier` and `older`; as `render_rolling` shows it, within `bound` tokens.

    Rules and calls without a result are all kept: they have budgets of their own. Then pending items, decisions, facts,
    values, requests and steps; of a kind, the newer.
    """
    whole = combine([older] if earlier is None else [earlier, older])
    kept: dict[str, list[Line]] = {kind: [] for kind in _KINDS}
    room = bound - estimate(EARLIER)
    for kind, title in EARLIER_SECTIONS:
        if kind == RULES:
            continue
        lines: list[Line] = [line for line in getattr(whole, kind) if not line.call]
        heading = estimate(f"\n\n### {title}")
        for line in reversed(lines):
            cost = estimate(f"\n{render_line(line)}") + (0 if kept[kind] else heading)
            if cost <= room:
                room -= cost
                kept[kind].append(line)
        kept[kind].reverse()
    kept[PENDING] = [*(line for line in whole.pending if line.call), *kept[PENDING]]
    return msgspec.structs.replace(whole, **{**kept, RULES: whole.constraints})


def _first(summaries: Sequence[Summary], field: str) -> str:
    return next((value for value in (getattr(each, field) for each in summaries) if value), "")


def _joined(lines: Sequence[Line], *, near: bool) -> list[Line]:
    """Each line once, where it was said last, with the sources of all that say the same.

    With `near`, lines that differ in little are one if their numbers are the same.
    """
    kept: dict[str, Line] = {}
    words: dict[str, frozenset[str]] = {}
    for line in lines:
        key = f"{line.text.casefold()}\0{line.call}"
        mine = words_of(line.text)
        same = key if key in kept else _near(mine, words) if near and not line.call else None
        sources = line.sources
        if same is not None:
            before = kept.pop(same)
            words.pop(same, None)
            sources = list(dict.fromkeys([*before.sources, *line.sources]))
            line = msgspec.structs.replace(line, sources=sources, weight=max(before.weight, line.weight))  # noqa: PLW2901
        kept[key] = line
        if not line.call:
            words[key] = mine
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
