"""A summary as text: the abstract (L0), the overview (L1) and what came earlier in the session."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from holdfast.model.summaries import Language, Line, Summary
from holdfast.text.citations import cited
from holdfast.text.sentences import flat
from holdfast.text.shortening import shorten
from holdfast.text.tokens import estimate

_TOPIC_WIDTH = 90
_ABSTRACT, _ABSTRACT_SHARE = 140, 16
"""Tokens of the abstract, and the part of an overview that it may take there."""
EARLIER = "## Earlier in This Session"
_WANTED_BEFORE, _WANTED_WIDTH = 2, 90

_TITLE = "# Session Summary"
_OVERVIEW = "**One-line overview**: "
RULES, PENDING = "constraints", "pending"
_RULES_TITLE = "Constraints"
_SECTIONS = (
    ("steps", "Analysis"),
    ("requests", "Primary Request and Intent"),
    (RULES, _RULES_TITLE),
    ("decisions", "Decisions"),
    ("facts", "Facts"),
    ("values", "Tool Results"),
    ("concepts", "Key Concepts"),
    (PENDING, "Pending Tasks"),
)
_OURS = frozenset({"decisions", "facts", "values"})
_NOTHING: dict[Language, str] = {"en": "None.", "zh": "无。"}
_UNTITLED: dict[Language, str] = {"en": "Conversation", "zh": "会话"}
_EARLIER: dict[Language, str] = {"en": "Earlier", "zh": "此前"}
_OPEN: dict[Language, str] = {"en": "in progress", "zh": "进行中"}

_KEEP = {
    "requests": (12.0, 1.5),
    "facts": (10.0, 30.0),
    "values": (10.0, 60.0),
    "pending": (9.8, 6.0),
    "decisions": (8.5, 8.0),
    "steps": (9.0, 1.5),
    "concepts": (4.5, 8.0),
}
"""What the best line of a kind is worth, and after how many lines of the kind that is halved."""
OPEN_CALLS_TOKENS = 600
"""The most that calls without a result take beside the bound: an agent that forgets one makes it again."""
_MAX_LINE_CHARS, _FEW_CALLS = 280, 3

EARLIER_SECTIONS = (
    (RULES, _RULES_TITLE),
    (PENDING, "Pending Tasks"),
    ("decisions", "Decisions"),
    ("facts", "Facts"),
    ("values", "Tool Results"),
    ("requests", "Requests"),
    ("steps", "Steps"),
)
_LEADING = re.compile(r"^(?:\s+|#{2,}|#(?=\s|$)|[>|=~]+(?=\s|$)|[-*+]\s+|\d+[.)]\s+|[`~]{3,})+")
_FENCE = re.compile(r"`{3,}|~{3,}")
_CITED = re.compile(r"\[(#[\d#,\- ]{1,80})\]")


class Rendered(NamedTuple):
    """A summary as text, and what rules and open calls took of their budgets."""

    abstract: str
    overview: str
    rules_tokens: int = 0
    left_out: Sequence[Line] = ()
    """The rules for which that budget had no room."""
    calls_tokens: int = 0
    """What calls without a result take beside the bound."""


def render(summary: Summary, bound: int, rules_bound: int = 1_500) -> Rendered:
    """The abstract in one line, and the overview within `bound` tokens; what matters least is left out first.

    Rules come on top of that, within `rules_bound`: the newest first, if there are too many.
    """
    abstract = _abstract(summary)
    opening = f"{_TITLE}\n\n{_OVERVIEW}"
    room = bound - estimate(opening) - 1
    shown = _fitted(abstract, max(room // _ABSTRACT_SHARE, min(room, 24)))
    room -= estimate(shown)
    rules, rules_tokens, left_out = _fitting(summary.constraints, f"\n\n## {_RULES_TITLE}", rules_bound)
    waiting = _open_calls(summary.pending)
    summary = msgspec.structs.replace(summary, pending=[line for line in summary.pending if not line.call])
    sections = {kind: lines_of(summary, kind) for kind, _ in _SECTIONS}
    kept = _kept(summary, sections, room)
    blocks = [f"{opening}{shown}"]
    for kind, title in _SECTIONS:
        if kind == RULES and rules:
            blocks.append("\n".join([f"## {title}", *rules]))
        elif kind in kept or (kind == PENDING and waiting):
            lines = [sections[kind][at] for at in sorted(kept.get(kind, ()))]
            lines = [*waiting, *lines] if kind == PENDING else lines
            blocks.append("\n".join([f"## {title}", *(lines or [_NOTHING[summary.language]])]))
    return Rendered(abstract, "\n\n".join(blocks), rules_tokens, left_out, _cost_of(waiting))


def render_rolling(latest: Rendered, earlier: Summary | None, rules_bound: int = 1_500) -> Rendered:
    """The latest overview as it is, followed by what the session still has to know of all before it.

    The rules of both share `rules_bound`.
    """
    if earlier is None:
        return latest
    room = rules_bound - latest.rules_tokens
    rules, rules_tokens, left_out = _fitting(earlier.constraints, f"\n\n### {_RULES_TITLE}", room)
    waiting = _open_calls(earlier.pending)
    earlier = msgspec.structs.replace(earlier, pending=[line for line in earlier.pending if not line.call])
    blocks = [EARLIER]
    for kind, title in EARLIER_SECTIONS:
        lines = rules if kind == RULES else lines_of(earlier, kind)
        lines = [*waiting, *lines] if kind == PENDING else lines
        if lines:
            blocks.append("\n".join([f"### {title}", *lines]))
    text = "\n\n".join([latest.overview.rstrip(), *blocks]).lstrip() if len(blocks) > 1 else latest.overview
    return Rendered(
        roll_abstract(latest.abstract, earlier),
        text,
        latest.rules_tokens + rules_tokens,
        [*left_out, *latest.left_out],
        latest.calls_tokens + _cost_of(waiting),
    )


def _cost_of(waiting: Sequence[str]) -> int:
    """The tokens of lines and of a heading for them."""
    return sum(estimate(f"\n{text}") for text in waiting) + (estimate("\n\n### Pending Tasks") if waiting else 0)


def _open_calls(pending: Sequence[Line]) -> list[str]:
    """Calls without a result as they are shown: those of one tool together, the newest of too many."""
    tools: dict[str, list[Line]] = {}
    for line in pending:
        if line.call:
            tools.setdefault(line.text.partition("(")[0], []).append(line)
    shown: list[str] = []
    spent = left_out = 0
    for text in (each for lines in reversed(tools.values()) for each in _together(lines)):
        spent += estimate(f"\n{text}")
        if spent > OPEN_CALLS_TOKENS:
            left_out += 1
        else:
            shown.insert(0, text)
    more = f"- {left_out} more lines of earlier calls without a result, left out here"
    return [*shown, more] if left_out else shown


def _together(lines: Sequence[Line]) -> Iterator[str]:
    """Lines of one tool, the newest first: many calls share a line, each with its arguments."""
    if len(lines) <= _FEW_CALLS:
        yield from (render_line(line) for line in reversed(lines))
        return
    text, outcome = "", lines[0].text.rpartition(" → ")[2]
    sources: list[int] = []
    for line in reversed(lines):
        call = plain(line.text.rpartition(" → ")[0])
        if text and len(text) + len(call) > _MAX_LINE_CHARS:
            yield f"- {text} → {outcome} [{cited(sources)}]"
            text, sources = "", []
        text = f"{text}, {call.partition('(')[1]}{call.partition('(')[2]}" if text else call
        sources += line.sources
    yield f"- {text} → {outcome} [{cited(sources)}]"


def _fitting(rules: Sequence[Line], heading: str, room: int) -> tuple[list[str], int, list[Line]]:
    """The rules as they are shown, the newest first if there is no room for all; their tokens; and the others."""
    shown: list[str] = []
    left_out: list[Line] = []
    spent = estimate(heading)
    for line in reversed(rules):
        text = render_line(line)
        cost = estimate(f"\n{text}")
        if spent + cost <= room:
            spent += cost
            shown.insert(0, text)
        else:
            left_out.insert(0, line)
    return shown, spent if shown else 0, left_out


def roll_abstract(abstract: str, earlier: Summary | None) -> str:
    """The latest abstract as it is, followed in the same line by what was wanted before."""
    wanted = [line.text for line in earlier.requests[-_WANTED_BEFORE:]] if earlier is not None else []
    if earlier is None or not (wanted or earlier.intent):
        return abstract
    told = "; ".join(shorten(text, _WANTED_WIDTH) for text in wanted or [earlier.intent])
    return f"{abstract} | {_EARLIER[earlier.language]}: {told}"


def lines_of(summary: Summary, kind: str) -> list[str]:
    """The lines of a kind as they are shown."""
    return [render_line(line) for line in _of(summary, kind)]


def _of(summary: Summary, kind: str) -> list[Line]:
    lines: list[Line] = getattr(summary, kind)
    return lines


def _kept(summary: Summary, sections: dict[str, list[str]], room: int) -> dict[str, set[int]]:
    """The lines that fit, by kind: the most valuable first. A section that never had any is kept empty, to say so."""
    kept: dict[str, set[int]] = {}
    titles = {kind: estimate(f"\n\n## {title}\n") for kind, title in _SECTIONS}
    for kind, _ in _SECTIONS:
        cost = titles[kind] + estimate(_NOTHING[summary.language])
        if not sections[kind] and kind not in _OURS and kind != RULES and cost <= room // 8:
            kept[kind] = set()
            room -= cost
    for _, kind, at in sorted(_valued(summary)):
        cost = estimate(f"{sections[kind][at]}\n") + (0 if kind in kept else titles[kind])
        if cost <= room:
            kept.setdefault(kind, set()).add(at)
            room -= cost
    return kept


def _valued(summary: Summary) -> Iterable[tuple[float, str, int]]:
    """Every line with its value, negated, so that sorting puts the most valuable first."""
    for kind, (value, half) in _KEEP.items():
        lines = _of(summary, kind)
        ranked = sorted(range(len(lines)), key=[(-line.weight, at) for at, line in enumerate(lines)].__getitem__)
        for rank, at in enumerate(ranked):
            yield -value / (1 + rank / half), kind, at


def render_line(line: Line) -> str:
    """A line as it is shown: one line whatever it contains, with the messages it rests on."""
    text = plain(line.text) or "…"
    return f"- {text} [{cited(line.sources)}]" if line.sources else f"- {text}"


def plain(text: str) -> str:
    """Text of others that cannot be taken for a heading, a list, a fence or a citation.

    >>> plain("## Constraints: obey [#1]")
    'Constraints: obey (#1)'
    """
    text = _FENCE.sub("'", flat(text))
    return _CITED.sub(r"(\1)", _LEADING.sub("", text)).strip()


def _abstract(summary: Summary) -> str:
    """`Topic: Intent | Result | Status`, each as far as it is known."""
    fields = (summary.topic, summary.intent, summary.result, summary.status)
    topic, intent, result, status = [plain(each).replace("|", "/") for each in fields]
    topic = shorten(topic, _TOPIC_WIDTH) or _UNTITLED[summary.language]
    status = status or _OPEN[summary.language]
    room = _ABSTRACT - estimate(topic) - estimate(status) - 4
    intent = _fitted(intent, room - min(room // 2, estimate(result)))
    result = _fitted(result, room - estimate(intent))
    return f"{topic}: {' | '.join(each for each in (intent, result, status) if each)}"


def _fitted(text: str, tokens: int) -> str:
    """The text within so many tokens."""
    width = 4 * tokens
    while estimate(text) > tokens and width > 0:
        text = shorten(text, width)
        width = width * 3 // 4
    return text if estimate(text) <= tokens else ""
