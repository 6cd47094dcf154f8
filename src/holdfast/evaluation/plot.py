"""Figures as a plot: grouped bars in SVG, written without a library. Pure functions."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from holdfast.evaluation.comparison import CUTOFF, Comparison
from holdfast.evaluation.metrics import CUTOFFS
from holdfast.evaluation.model import Level, Report

BAR_WIDTH = 22
BAR_GAP = 3
GROUP_GAP = 30
CHAR_WIDTH = 7
MAX_LABEL_CHARS = 26
PANEL_HEIGHT = 220
PANEL_TITLE_HEIGHT = 48
LEGEND_BOX = 18
LEGEND_LINE = 18
MARGIN_LEFT = 52
MARGIN_RIGHT = 24
TITLE_HEIGHT = 56
LABEL_HEIGHT = 46
MIN_WIDTH = 460
COLOURS = ("#cfe1f2", "#93c3df", "#4b97c9", "#1f6cb0", "#0a3d78")
TWO_COLOURS = ("#9aa5b1", "#1f6cb0")
FONT = "font-family='Helvetica, Arial, sans-serif'"
INK, FAINT, GRID = "#1b2733", "#5b6875", "#dfe4e9"
LEVEL_TITLES: dict[Level, str] = {
    "turn": "Turns: share of the evidence among the first k results",
    "session": "Sessions: share of the evidence's sessions among the first k sessions",
}


class Group(NamedTuple):
    label: str
    questions: int
    values: Sequence[float]


class Panel(NamedTuple):
    title: str
    groups: Sequence[Group]


def plot_report(report: Report) -> str:
    """Draw the recall at each cutoff by category, for turns and for sessions."""
    panels = []
    for level, title in LEVEL_TITLES.items():
        rows = [figures for figures in report.figures if figures.level == level]
        groups = [Group(row.category, row.questions, [row.scores.share[k] for k in CUTOFFS]) for row in rows]
        if groups:
            panels.append(Panel(title, groups))
    subtitle = f"{len(report.answers):,} questions, {report.conversations:,} conversations; {report.settings}"
    return _draw(f"Recall on {report.dataset}", subtitle, panels, [f"k = {k}" for k in CUTOFFS], COLOURS)


def plot_comparison(comparison: Comparison) -> str:
    """Draw the recall at 10 of both settings by category, for turns and for sessions."""
    panels = []
    for level, letter in (("turn", "R"), ("session", "S")):
        name = f"{letter}@{CUTOFF}"
        rows = [row for row in comparison.figures if row.level == level]
        groups = [Group(row.category, row.questions, [row.first[name], row.second[name]]) for row in rows]
        if groups:
            panels.append(Panel(f"{level.title()}s: {name}", groups))
    won = sum(each.change == "won" for each in comparison.changed)
    subtitle = f"{won} questions won, {len(comparison.changed) - won} lost at {CUTOFF}"
    return _draw("Two settings", subtitle, panels, [comparison.first, comparison.second], TWO_COLOURS)


def _draw(title: str, subtitle: str, panels: Sequence[Panel], series: Sequence[str], colours: Sequence[str]) -> str:
    labels = [group.label[:MAX_LABEL_CHARS] for panel in panels for group in panel.groups]
    bars_width = len(series) * (BAR_WIDTH + BAR_GAP) - BAR_GAP
    group_width = max([bars_width, *(CHAR_WIDTH * len(label) for label in labels)])
    count = max((len(panel.groups) for panel in panels), default=1)
    width = max(MIN_WIDTH, MARGIN_LEFT + count * (group_width + GROUP_GAP) + MARGIN_RIGHT)
    legend, legend_height = _legend(series, colours, width)
    panel_height = PANEL_TITLE_HEIGHT + PANEL_HEIGHT + LABEL_HEIGHT
    height = TITLE_HEIGHT + legend_height + len(panels) * panel_height
    head = (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' viewBox='0 0 {width} {height}'"
        f" role='img' aria-label='{escape(title, quote=True)}'>"
    )
    parts = [
        head,
        f"<rect width='{width}' height='{height}' fill='#ffffff'/>",
        _text(16, 26, title, size=17, weight="bold"),
        _text(16, 45, _shorten(subtitle, width - 32), colour=FAINT),
        *legend,
    ]
    for number, panel in enumerate(panels):
        top = TITLE_HEIGHT + legend_height + number * panel_height + PANEL_TITLE_HEIGHT
        parts += _panel(panel, top, width, (group_width, bars_width), colours)
    return "\n".join([*parts, "</svg>", ""])


def _legend(series: Sequence[str], colours: Sequence[str], width: int) -> tuple[list[str], int]:
    """Draw the names of the series in one row, or below each other if they are long. Return also the height."""
    widths = [LEGEND_BOX + CHAR_WIDTH * len(name) + 20 for name in series]
    is_row = sum(widths) <= width - 32
    parts: list[str] = []
    x, y = 16, TITLE_HEIGHT
    for name, colour, item_width in zip(series, colours, widths, strict=False):
        parts.append(f"<rect x='{x}' y='{y}' width='12' height='12' rx='2' fill='{colour}'/>")
        parts.append(_text(x + LEGEND_BOX, y + 10, _shorten(name, width - 48)))
        x, y = (x + item_width, y) if is_row else (x, y + LEGEND_LINE)
    return parts, LEGEND_LINE * (1 if is_row else len(series))


def _panel(panel: Panel, top: int, width: int, widths: tuple[int, int], colours: Sequence[str]) -> list[str]:
    bottom = top + PANEL_HEIGHT
    group_width, bars_width = widths
    parts = [_text(16, top - 14, _shorten(panel.title, width - 32), weight="bold")]
    for tenths in range(0, 11, 2):
        y = bottom - PANEL_HEIGHT * tenths // 10
        parts.append(f"<line x1='{MARGIN_LEFT}' y1='{y}' x2='{width - MARGIN_RIGHT}' y2='{y}' stroke='{GRID}'/>")
        parts.append(_text(MARGIN_LEFT - 8, y + 4, f"{tenths / 10:.1f}", anchor="end", colour=FAINT, size=11))
    x = MARGIN_LEFT + GROUP_GAP // 2
    for group in panel.groups:
        left = x + (group_width - bars_width) // 2
        for number, value in enumerate(group.values):
            parts += _bar(left + number * (BAR_WIDTH + BAR_GAP), bottom, value, colours[number])
        middle = x + group_width / 2
        parts.append(_text(middle, bottom + 17, group.label[:MAX_LABEL_CHARS], anchor="middle"))
        parts.append(_text(middle, bottom + 33, f"n = {group.questions:,}", anchor="middle", colour=FAINT, size=11))
        x += group_width + GROUP_GAP
    return parts


def _bar(x: int, bottom: int, value: float, colour: str) -> list[str]:
    height = PANEL_HEIGHT * value
    label = _text(x + BAR_WIDTH / 2, bottom - height - 4, _format(value), anchor="middle", colour=FAINT, size=9)
    return [
        f"<rect x='{x}' y='{bottom - height:.1f}' width='{BAR_WIDTH}' height='{height:.1f}' fill='{colour}'/>",
        label,
    ]


def _format(value: float) -> str:
    """Format a share in as few characters as fit over a bar: .62, or 1."""
    return f"{value:.2f}".removeprefix("0").removesuffix(".00") if value else "0"


def _text(
    x: float, y: float, text: str, *, size: int = 12, weight: str = "normal", colour: str = INK, anchor: str = "start"
) -> str:
    return (
        f"<text x='{x:g}' y='{y:g}' {FONT} font-size='{size}' font-weight='{weight}' fill='{colour}'"
        f" text-anchor='{anchor}'>{escape(text)}</text>"
    )


def _shorten(text: str, width: int) -> str:
    chars = width // CHAR_WIDTH
    return text if len(text) <= chars else f"{text[: chars - 1]}…"
