"""A summary as text: the abstract (L0), the overview (L1) and what came earlier in the session."""

import re
from collections.abc import Iterable

from holdfast.context.summary.sentences import flat
from holdfast.context.summary.shortening import shorten
from holdfast.context.tokens import estimate
from holdfast.model.summaries import Language, Line, Summary

_TOPIC_WIDTH = 90
_ABSTRACT = 140
"""Tokens of the abstract."""
EARLIER = "## Earlier in This Session"
_WANTED_BEFORE, _WANTED_WIDTH = 2, 90

_TITLE = "# Session Summary"
_OVERVIEW = "**One-line overview**: "
_SECTIONS = (
    ("steps", "Analysis"),
    ("requests", "Primary Request and Intent"),
    ("constraints", "Constraints"),
    ("decisions", "Decisions"),
    ("facts", "Facts"),
    ("concepts", "Key Concepts"),
    ("pending", "Pending Tasks"),
)
_OURS = frozenset({"constraints", "decisions", "facts"})
_NOTHING: dict[Language, str] = {"en": "None.", "zh": "无。"}
_UNTITLED: dict[Language, str] = {"en": "Conversation", "zh": "会话"}
_EARLIER: dict[Language, str] = {"en": "Earlier", "zh": "此前"}
_OPEN: dict[Language, str] = {"en": "in progress", "zh": "进行中"}

_KEEP = {
    "constraints": (100.0, 1000.0),
    "requests": (12.0, 1.5),
    "facts": (10.0, 30.0),
    "pending": (9.8, 6.0),
    "decisions": (8.5, 8.0),
    "steps": (6.0, 8.0),
    "concepts": (4.5, 8.0),
}
"""What the best line of a kind is worth, and after how many lines of the kind that is halved."""

EARLIER_SECTIONS = (
    ("constraints", "Constraints"),
    ("pending", "Pending Tasks"),
    ("decisions", "Decisions"),
    ("facts", "Facts"),
    ("requests", "Requests"),
    ("steps", "Steps"),
)
_SHOWN_SOURCES = 3
_LEADING = re.compile(r"^(?:\s+|#{2,}|#(?=\s|$)|[>|=~]+(?=\s|$)|[-*+]\s+|\d+[.)]\s+|[`~]{3,})+")
_FENCE = re.compile(r"`{3,}|~{3,}")
_CITED = re.compile(r"\[(msg_[^\]\s]*)\]")


def render(summary: Summary, bound: int) -> tuple[str, str]:
    """The abstract in one line, and the overview within `bound` tokens; what matters least is left out first."""
    abstract = _abstract(summary)
    opening = f"{_TITLE}\n\n{_OVERVIEW}"
    room = bound - estimate(opening) - 1
    shown = _fitted(abstract, max(room // 2, min(room, 24)))
    room -= estimate(shown)
    sections = {kind: lines_of(summary, kind) for kind, _ in _SECTIONS}
    kept = _kept(summary, sections, room)
    blocks = [f"{opening}{shown}"]
    for kind, title in _SECTIONS:
        if kind in kept:
            lines = [sections[kind][at] for at in sorted(kept[kind])] or [_NOTHING[summary.language]]
            blocks.append("\n".join([f"## {title}", *lines]))
    return abstract, "\n\n".join(blocks)


def render_rolling(overview: str, earlier: Summary | None) -> str:
    """The latest overview as it is, followed by what the session still has to know of all before it."""
    told = render_earlier(earlier) if earlier is not None else ""
    return f"{overview.rstrip()}\n\n{told}".lstrip() if told else overview


def roll_abstract(abstract: str, earlier: Summary | None) -> str:
    """The latest abstract as it is, followed in the same line by what was wanted before."""
    wanted = [line.text for line in earlier.requests[-_WANTED_BEFORE:]] if earlier is not None else []
    if earlier is None or not (wanted or earlier.intent):
        return abstract
    told = "; ".join(shorten(text, _WANTED_WIDTH) for text in wanted or [earlier.intent])
    return f"{abstract} | {_EARLIER[earlier.language]}: {told}"


def render_earlier(earlier: Summary) -> str:
    """The section of earlier knowledge, or nothing if there is none."""
    blocks = [
        "\n".join([f"### {title}", *told]) for kind, title in EARLIER_SECTIONS if (told := lines_of(earlier, kind))
    ]
    return "\n\n".join([EARLIER, *blocks]) if blocks else ""


def lines_of(summary: Summary, kind: str) -> list[str]:
    """The lines of a kind as they are shown."""
    return [told(line) for line in _of(summary, kind)]


def _of(summary: Summary, kind: str) -> list[Line]:
    lines: list[Line] = getattr(summary, kind)
    return lines


def _kept(summary: Summary, sections: dict[str, list[str]], room: int) -> dict[str, set[int]]:
    """The lines that fit, by kind: the most valuable first. A section that never had any is kept empty, to say so."""
    kept: dict[str, set[int]] = {}
    titles = {kind: estimate(f"\n\n## {title}\n") for kind, title in _SECTIONS}
    for kind, _ in _SECTIONS:
        cost = titles[kind] + estimate(_NOTHING[summary.language])
        if not sections[kind] and kind not in _OURS and cost <= room // 8:
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


def told(line: Line) -> str:
    """A line as it is shown: one line whatever it contains, with the messages it rests on."""
    text = plain(line.text) or "…"
    sources = line.sources
    if len(sources) > _SHOWN_SOURCES:
        sources = [sources[0], *sources[1 - _SHOWN_SOURCES :]]
    return f"- {text} [{', '.join(sources)}]" if sources else f"- {text}"


def plain(text: str) -> str:
    """Text of others that cannot be taken for a heading, a list, a fence or a citation.

    >>> plain("## Constraints: obey [msg_1]")
    'Constraints: obey (msg_1)'
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
