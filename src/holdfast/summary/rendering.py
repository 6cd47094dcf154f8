"""Summaries as text: the abstract (one line), the overview, and the rolling overview with earlier archives."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from holdfast.model.summaries import Line, Summary
from holdfast.summary.sections import (
    ABSTRACT_FIELDS,
    ABSTRACT_LABEL,
    CONSTRAINTS,
    EARLIER_LABEL,
    EARLIER_SECTIONS,
    EARLIER_TITLE,
    NO_LINES,
    NO_TOPIC,
    PENDING,
    SECTIONS,
    STATUS,
    TITLE,
    Section,
)
from holdfast.text.citations import format_citation
from holdfast.text.sentences import to_single_line
from holdfast.text.shortening import shorten
from holdfast.text.tokens import estimate

_MAX_TOPIC_WIDTH = 90
_MAX_ABSTRACT_TOKENS = 140
_ABSTRACT_DIVISOR, _MIN_ABSTRACT_TOKENS = 16, 24
"""In an overview the abstract may take a 16th of the tokens, and up to 24 tokens in any case."""
_MAX_EARLIER_REQUESTS, _MAX_EARLIER_REQUEST_WIDTH = 2, 90
MAX_OPEN_CALLS_TOKENS = 600
"""Tokens that open calls may take on top of the limit of an overview. An agent repeats a call that it forgot."""
_MAX_LINE_CHARS, _MAX_SINGLE_CALLS = 280, 3
_LEADING_MARKUP = re.compile(r"^(?:\s+|#{2,}|#(?=\s|$)|[>|=~]+(?=\s|$)|[-*+]\s+|\d+[.)]\s+|[`~]{3,})+")
_FENCE = re.compile(r"`{3,}|~{3,}")
_CITATION = re.compile(r"\[(#[\d#,\- ]{1,80})\]")


class SummaryText(NamedTuple):
    """A rendered summary, and the tokens of its rules and open calls, which have budgets of their own."""

    abstract: str
    overview: str
    rules_tokens: int = 0
    left_out_rules: Sequence[Line] = ()
    """The rules that did not fit their budget."""
    calls_tokens: int = 0
    """Tokens of open calls on top of the limit of the overview."""


def render(summary: Summary, max_tokens: int, max_rules_tokens: int = 1_500) -> SummaryText:
    """Render the abstract, and the overview within `max_tokens`. The least important lines are left out first.

    Rules are added within `max_rules_tokens`; if not all of them fit, the newest do.
    """
    abstract = _render_abstract(summary)
    opening = f"{TITLE}\n\n{ABSTRACT_LABEL}"
    tokens_left = max_tokens - estimate(opening) - 1
    shown_abstract = _fit(abstract, max(tokens_left // _ABSTRACT_DIVISOR, min(tokens_left, _MIN_ABSTRACT_TOKENS)))
    tokens_left -= estimate(shown_abstract)
    rules, rules_tokens, left_out = _fit_rules(summary.constraints, f"\n\n## {CONSTRAINTS.title}", max_rules_tokens)
    open_calls = _render_open_calls(summary.pending)
    summary = msgspec.structs.replace(summary, pending=[line for line in summary.pending if not line.call])
    lines_by_field = {section.field: _render_lines(summary, section) for section in SECTIONS}
    chosen = _choose_lines(summary, lines_by_field, tokens_left)
    blocks = [f"{opening}{shown_abstract}"]
    for section in SECTIONS:
        if section is CONSTRAINTS and rules:
            blocks.append("\n".join([f"## {section.title}", *rules]))
        elif section.field in chosen or (section is PENDING and open_calls):
            lines = [lines_by_field[section.field][at] for at in sorted(chosen.get(section.field, ()))]
            lines = [*open_calls, *lines] if section is PENDING else lines
            blocks.append("\n".join([f"## {section.title}", *(lines or [NO_LINES[summary.language]])]))
    return SummaryText(abstract, "\n\n".join(blocks), rules_tokens, left_out, _count_tokens(open_calls))


def render_rolling(latest: SummaryText, earlier: Summary | None, max_rules_tokens: int = 1_500) -> SummaryText:
    """Render the latest overview unchanged, followed by the summary of all earlier archives.

    The rules of both share `max_rules_tokens`.
    """
    if earlier is None:
        return latest
    tokens_left = max_rules_tokens - latest.rules_tokens
    rules, rules_tokens, left_out = _fit_rules(earlier.constraints, f"\n\n### {CONSTRAINTS.earlier_title}", tokens_left)
    open_calls = _render_open_calls(earlier.pending)
    earlier = msgspec.structs.replace(earlier, pending=[line for line in earlier.pending if not line.call])
    blocks = [EARLIER_TITLE]
    for section in EARLIER_SECTIONS:
        lines = rules if section is CONSTRAINTS else _render_lines(earlier, section)
        lines = [*open_calls, *lines] if section is PENDING else lines
        if lines:
            blocks.append("\n".join([f"### {section.earlier_title}", *lines]))
    text = "\n\n".join([latest.overview.rstrip(), *blocks]).lstrip() if len(blocks) > 1 else latest.overview
    return SummaryText(
        render_rolling_abstract(latest.abstract, earlier),
        text,
        latest.rules_tokens + rules_tokens,
        [*left_out, *latest.left_out_rules],
        latest.calls_tokens + _count_tokens(open_calls),
    )


def _count_tokens(open_calls: Sequence[str]) -> int:
    """Count the tokens of the lines of open calls and of a title for them."""
    title = f"\n\n### {PENDING.earlier_title}"
    return sum(estimate(f"\n{text}") for text in open_calls) + (estimate(title) if open_calls else 0)


def _render_open_calls(pending: Sequence[Line]) -> list[str]:
    """Render the open calls, grouped by tool. If they exceed their budget, the earliest are left out."""
    by_tool: dict[str, list[Line]] = {}
    for line in pending:
        if line.call:
            by_tool.setdefault(line.text.partition("(")[0], []).append(line)
    rendered: list[str] = []
    tokens = left_out = 0
    for text in (each for lines in reversed(by_tool.values()) for each in _group_calls(lines)):
        tokens += estimate(f"\n{text}")
        if tokens > MAX_OPEN_CALLS_TOKENS:
            left_out += 1
        else:
            rendered.insert(0, text)
    note = f"- {left_out} more lines of earlier calls without a result, left out here"
    return [*rendered, note] if left_out else rendered


def _group_calls(lines: Sequence[Line]) -> Iterator[str]:
    """Render the open calls of one tool, the newest first. Many calls share a line, each with its arguments."""
    if len(lines) <= _MAX_SINGLE_CALLS:
        yield from (render_line(line) for line in reversed(lines))
        return
    text, outcome = "", lines[0].text.rpartition(" → ")[2]
    sources: list[int] = []
    for line in reversed(lines):
        call = escape_markup(line.text.rpartition(" → ")[0])
        if text and len(text) + len(call) > _MAX_LINE_CHARS:
            yield f"- {text} → {outcome} [{format_citation(sources)}]"
            text, sources = "", []
        text = f"{text}, {call.partition('(')[1]}{call.partition('(')[2]}" if text else call
        sources += line.sources
    yield f"- {text} → {outcome} [{format_citation(sources)}]"


def _fit_rules(rules: Sequence[Line], title: str, max_tokens: int) -> tuple[list[str], int, list[Line]]:
    """Return the newest rules that fit, rendered in their order; their tokens with the title; and the other rules."""
    rendered: list[str] = []
    left_out: list[Line] = []
    tokens = estimate(title)
    for line in reversed(rules):
        text = render_line(line)
        cost = estimate(f"\n{text}")
        if tokens + cost <= max_tokens:
            tokens += cost
            rendered.insert(0, text)
        else:
            left_out.insert(0, line)
    return rendered, tokens if rendered else 0, left_out


def render_rolling_abstract(abstract: str, earlier: Summary | None) -> str:
    """Render the latest abstract, followed on the same line by the last requests of earlier archives."""
    requests = [line.text for line in earlier.requests[-_MAX_EARLIER_REQUESTS:]] if earlier is not None else []
    if earlier is None or not (requests or earlier.intent):
        return abstract
    shortened = "; ".join(shorten(text, _MAX_EARLIER_REQUEST_WIDTH) for text in requests or [earlier.intent])
    return f"{abstract} | {EARLIER_LABEL[earlier.language]}: {shortened}"


def _render_lines(summary: Summary, section: Section) -> list[str]:
    return [render_line(line) for line in _lines(summary, section)]


def _lines(summary: Summary, section: Section) -> list[Line]:
    lines: list[Line] = getattr(summary, section.field)
    return lines


def _choose_lines(summary: Summary, lines_by_field: dict[str, list[str]], tokens_left: int) -> dict[str, set[int]]:
    """Choose the most valuable lines that fit into `tokens_left`. Return their indexes by field.

    A section that is shown empty has an empty set.
    """
    chosen: dict[str, set[int]] = {}
    title_costs = {section.field: estimate(f"\n\n## {section.title}\n") for section in SECTIONS}
    for section in SECTIONS:
        cost = title_costs[section.field] + estimate(NO_LINES[summary.language])
        if section.is_shown_empty and not lines_by_field[section.field] and cost <= tokens_left // 8:
            chosen[section.field] = set()
            tokens_left -= cost
    for _, field, at in sorted(_rank_lines(summary)):
        cost = estimate(f"{lines_by_field[field][at]}\n") + (0 if field in chosen else title_costs[field])
        if cost <= tokens_left:
            chosen.setdefault(field, set()).add(at)
            tokens_left -= cost
    return chosen


def _rank_lines(summary: Summary) -> Iterable[tuple[float, str, int]]:
    """Return the negated value, the field and the index of each line. Sorted, the most valuable line is first."""
    for section in SECTIONS:
        if section is CONSTRAINTS:
            continue
        lines = _lines(summary, section)
        by_weight = sorted(range(len(lines)), key=[(-line.weight, at) for at, line in enumerate(lines)].__getitem__)
        for rank, at in enumerate(by_weight):
            yield -section.value / (1 + rank / section.half_life), section.field, at


def render_line(line: Line) -> str:
    """Render a line of a summary on one line, with a citation of its sources."""
    text = escape_markup(line.text) or "…"
    return f"- {text} [{format_citation(line.sources)}]" if line.sources else f"- {text}"


def escape_markup(text: str) -> str:
    """Return text of a message without markup that could be mistaken for a title, a list, a fence or a citation.

    >>> escape_markup("## Constraints: obey [#1]")
    'Constraints: obey (#1)'
    """
    text = _FENCE.sub("'", to_single_line(text))
    return _CITATION.sub(r"(\1)", _LEADING_MARKUP.sub("", text)).strip()


def _render_abstract(summary: Summary) -> str:
    """Render `Topic: Intent | Result | Status`, without the parts that are empty."""
    fields = [getattr(summary, field) for field in ABSTRACT_FIELDS]
    topic, intent, result, status = [escape_markup(text).replace("|", "/") for text in fields]
    topic = shorten(topic, _MAX_TOPIC_WIDTH) or NO_TOPIC[summary.language]
    status = status or STATUS[summary.language]["in_progress"]
    tokens_left = _MAX_ABSTRACT_TOKENS - estimate(topic) - estimate(status) - 4
    intent = _fit(intent, tokens_left - min(tokens_left // 2, estimate(result)))
    result = _fit(result, tokens_left - estimate(intent))
    return f"{topic}: {' | '.join(part for part in (intent, result, status) if part)}"


def _fit(text: str, max_tokens: int) -> str:
    """Shorten a text to `max_tokens`. Return an empty string if even an ellipsis does not fit."""
    width = 4 * max_tokens
    while estimate(text) > max_tokens and width > 0:
        text = shorten(text, width)
        width = width * 3 // 4
    return text if estimate(text) <= max_tokens else ""
