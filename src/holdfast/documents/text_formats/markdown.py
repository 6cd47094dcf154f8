"""Markdown: sections by headings."""

import re

from holdfast.documents.lines import MAX_SECTIONS, iter_lines
from holdfast.documents.parsed import Extracted
from holdfast.documents.sections import sections_from_starts
from holdfast.documents.text_formats.front_matter import read_front_matter

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|$)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_MAX_LINE_CHARS = 1_000
_NOT_A_PARAGRAPH = ("#", ">", "|", "-", "*", "+", "    ", "\t", "<")


def parse_markdown(text: str, _extension: str) -> Extracted:
    """Split a Markdown text by its headings. Lines in code blocks are no headings."""
    values, content = read_front_matter(text)
    starts: list[tuple[int, tuple[str, ...], int]] = []
    headings: list[tuple[int, str]] = []
    first_titles: dict[int, str] = {}
    for level, title, start, body in _find_headings(text, content):
        while headings and headings[-1][0] >= level:
            headings.pop()
        headings.append((level, title))
        first_titles.setdefault(level, title)
        starts.append((start, tuple(name for _, name in headings), body))
    if starts and starts[0][0] == content:
        starts[0] = (0, *starts[0][1:])
    elif content:
        starts.insert(0, (0, (), content))
    named = values.get("title") or values.get("name")
    title = named if isinstance(named, str) else first_titles[min(first_titles)] if first_titles else ""
    return Extracted(text, sections_from_starts(text, starts), title, dict(values))


def _find_headings(text: str, start: int) -> list[tuple[int, str, int, int]]:
    """Return the level, the title, the start and the end of each heading."""
    found: list[tuple[int, str, int, int]] = []
    fence = ""
    previous, previous_start = "", start
    for at, line in iter_lines(text, start):
        if len(found) >= MAX_SECTIONS:
            break
        end = min(at + len(line) + 1, len(text))
        short = line[:_MAX_LINE_CHARS]
        mark = _FENCE.match(short)
        if fence:
            if mark and mark[1].startswith(fence) and not short[mark.end() :].strip():
                fence = ""
            short = ""
        elif mark:
            fence, short = mark[1], ""
        elif heading := _HEADING.match(short):
            found.append((len(heading[1]), _plain(short[heading.end() :]), at, end))
            short = ""
        elif level := _underline_level(short, previous):
            found.append((level, _plain(previous), previous_start, end))
            short = ""
        previous, previous_start = short, at
    return found


def _underline_level(line: str, previous: str) -> int:
    """Return the level of the heading in the line before, if this line underlines it."""
    mark = line.strip()
    if len(mark) < len("==") or line[0] not in "=-" or mark.strip(mark[0]):
        return 0
    if not previous.strip() or previous.startswith(_NOT_A_PARAGRAPH):
        return 0
    return 1 if mark[0] == "=" else 2


def _plain(title: str) -> str:
    return title.strip().rstrip("#").replace("`", "").replace("**", "").strip()
