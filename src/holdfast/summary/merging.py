"""Merging of summaries: consecutive ones into one, and earlier ones into the part that a session still needs."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from holdfast.model.summaries import Line, Summary
from holdfast.summary.local.selection import resolves
from holdfast.summary.rendering import render_line
from holdfast.summary.rules import StandingRules, active_rules, merge_rules
from holdfast.summary.sections import CONSTRAINTS, EARLIER_SECTIONS, EARLIER_TITLE, PENDING, SECTIONS, VALUES
from holdfast.text.sentences import extract_words, word_similarity
from holdfast.text.tokens import estimate

_MERGED_SECTIONS = tuple(section for section in SECTIONS if section is not CONSTRAINTS)
"""The sections that are merged line by line. Rules are merged by `merge_rules`."""
MAX_RULES = 1_000
_MIN_SIMILARITY = 0.9
_MAX_COMPARED_LINES = 200
"""Lines of a section up to which similar lines are merged. In a longer section only equal lines are."""


def combine(summaries: Sequence[Summary]) -> Summary:
    """Combine the summaries of consecutive parts of a conversation into one.

    Each line occurs once, with the sources of all its repetitions. Pending items that a later part finished are
    removed.
    """
    if not summaries:
        return Summary()
    first, last = summaries[0], summaries[-1]
    pending: list[Line] = []
    for summary in summaries:
        pending = [*_still_pending(pending, summary), *summary.pending]
    lines = {
        section.field: _merge_lines(
            [line for summary in summaries for line in getattr(summary, section.field)],
            merge_similar=section is not VALUES,
        )
        for section in _MERGED_SECTIONS
    }
    rules = StandingRules()
    for summary in summaries:
        rules = merge_rules(rules, StandingRules(summary.constraints, summary.withdrawals))
    return Summary(
        language=last.language,
        topic=_first_text(summaries, "topic"),
        intent=_first_text(summaries, "intent"),
        result=_first_text(summaries[::-1], "result"),
        status=last.status or first.status,
        **{**lines, PENDING.field: _merge_lines(pending, merge_similar=True)},
        constraints=rules.rules[-MAX_RULES:],
        withdrawals=rules.withdrawals,
        answered_calls=[call for summary in summaries for call in summary.answered_calls],
    )


def update_earlier(earlier: Summary, later: Summary) -> Summary:
    """Return `earlier` without the rules that `later` withdraws or repeats, and the items that it finishes."""
    before = StandingRules(earlier.constraints, earlier.withdrawals)
    after = merge_rules(before, StandingRules(later.constraints, later.withdrawals))
    rules = [line for line in earlier.constraints if line in after.rules and line not in later.constraints]
    return msgspec.structs.replace(earlier, constraints=rules, pending=_still_pending(earlier.pending, later))


def rules_after(summary: Summary, seq: int) -> Summary:
    """Return the rules and withdrawals of a summary from messages after `seq`, and all its answered calls."""

    def select(lines: Sequence[Line]) -> list[Line]:
        return [line for line in lines if line.sources and line.sources[0] > seq]

    return Summary(
        constraints=select(summary.constraints),
        withdrawals=select(summary.withdrawals),
        answered_calls=summary.answered_calls,
    )


def insert_late(earlier: Summary, late: Summary, first: int, last: int, max_tokens: int) -> Summary:
    """Insert the summary of messages `first` to `last`, finished late, into `earlier`, which includes later messages.

    Its rules and calls that were withdrawn or answered after `last` are removed. Its withdrawals apply only to rules
    before `first`.
    """
    updated = update_earlier(late, rules_after(earlier, last))
    before = [line for line in earlier.constraints if line.sources and line.sources[0] < first]
    withdrawn = set(map(_identity, before)) - set(map(_identity, active_rules(before, late.withdrawals)))
    rules = [line for line in earlier.constraints if _identity(line) not in withdrawn]
    folded = fold(
        msgspec.structs.replace(earlier, constraints=rules),
        msgspec.structs.replace(updated, withdrawals=[]),
        max_tokens,
    )
    ordered = sorted(folded.constraints, key=lambda line: line.sources[:1])
    return msgspec.structs.replace(folded, constraints=ordered, withdrawals=earlier.withdrawals)


def _identity(line: Line) -> tuple[object, ...]:
    return line.text, *line.sources


def _still_pending(pending: Sequence[Line], later: Summary) -> list[Line]:
    """Return the items that `later` does not finish: calls without a result there, and items that no line resolves."""
    later_words = [extract_words(line.text) for line in (*later.steps, *later.decisions, *later.facts)]
    answers = Counter(later.answered_calls)
    still_pending: list[Line] = []
    for line in pending:
        if line.call:
            answers[line.call] -= 1  # without ids several calls share a name, and the earliest are answered first
            is_pending = answers[line.call] < 0
        else:
            is_pending = not any(resolves(words, extract_words(line.text)) for words in later_words)
        if is_pending:
            still_pending.append(line)
    return still_pending


def fold(earlier: Summary | None, previous: Summary, max_tokens: int) -> Summary:
    """Fold the summary of an archive into `earlier`, the summary of all archives before it.

    `render_rolling` shows the result in at most `max_tokens`, apart from rules and open calls, which are all kept:
    they have budgets of their own. The other sections are filled in the order of `EARLIER_SECTIONS`, each with its
    newest lines first.
    """
    combined = combine([previous] if earlier is None else [earlier, previous])
    kept: dict[str, list[Line]] = {section.field: [] for section in _MERGED_SECTIONS}
    tokens_left = max_tokens - estimate(EARLIER_TITLE)
    for section in EARLIER_SECTIONS:
        if section is CONSTRAINTS:
            continue
        lines: list[Line] = [line for line in getattr(combined, section.field) if not line.call]
        kept_lines = kept[section.field]
        title_cost = estimate(f"\n\n### {section.earlier_title}")
        for line in reversed(lines):
            cost = estimate(f"\n{render_line(line)}") + (0 if kept_lines else title_cost)
            if cost <= tokens_left:
                tokens_left -= cost
                kept_lines.append(line)
        kept_lines.reverse()
    open_calls = [line for line in combined.pending if line.call]
    kept[PENDING.field] = [*open_calls, *kept[PENDING.field]]
    return msgspec.structs.replace(combined, **kept)


def _first_text(summaries: Sequence[Summary], field: str) -> str:
    return next((text for text in (getattr(summary, field) for summary in summaries) if text), "")


def _merge_lines(lines: Sequence[Line], *, merge_similar: bool) -> list[Line]:
    """Return each line once, at its last position, with the sources of all its repetitions.

    With `merge_similar`, lines with almost the same words are repetitions too, if their numbers are the same.
    """
    merged: dict[str, Line] = {}
    words_by_key: dict[str, frozenset[str]] = {}
    for line in lines:
        key = f"{line.text.casefold()}\0{line.call}"
        words = extract_words(line.text)
        repeated = key if key in merged else None
        if repeated is None and merge_similar and not line.call:
            repeated = _find_similar(words, words_by_key)
        sources = line.sources
        if repeated is not None:
            before = merged.pop(repeated)
            words_by_key.pop(repeated, None)
            sources = list(dict.fromkeys([*before.sources, *line.sources]))
            line = msgspec.structs.replace(line, sources=sources, weight=max(before.weight, line.weight))  # noqa: PLW2901
        merged[key] = line
        if not line.call:
            words_by_key[key] = words
    return list(merged.values())


def _find_similar(words: frozenset[str], words_by_key: dict[str, frozenset[str]]) -> str | None:
    if len(words_by_key) > _MAX_COMPARED_LINES:
        return None
    return next(
        (
            key
            for key, other in words_by_key.items()
            if word_similarity(words, other) >= _MIN_SIMILARITY and _have_same_numbers(words, other)
        ),
        None,
    )


def _have_same_numbers(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether no word with a digit is in only one of the sets."""
    return not any(character.isdigit() for word in one ^ other for character in word)
