"""Shorter text that stays true: cut between words, never inside an id, a path or a number."""

# ruff: noqa: RUF001 - the punctuation of Chinese
import re

from holdfast.text.literals import literals

_BREAK = re.compile(r"\s|(?<=[，。；、,;：:！？])|(?<=[\u3400-\u9fff])(?=[\u3400-\u9fff])")
_WORDS_AFTER = re.compile(r"[^\s，。；、]*(?:\s+[^\s,.;]+){0,2}")
_WORD_AT_END = re.compile(r"(?:\S+\s+){0,4}\S*\s*$")


def shorten(text: str, width: int) -> str:
    """The beginning of a text, of at most `width` as `width_of` measures, with an ellipsis where something is missing.

    >>> shorten("restart the pods in eu-west-1 after 02:00", 30)
    'restart the pods in eu-west-1…'
    """
    if width_of(text) <= width:
        return text
    room = _chars_within(text, width - 1)
    spans = [(each.start, each.end) for each in literals(text[: room + 200])]
    breaks = [match.start() for match in _BREAK.finditer(text, 0, room + 1)]
    best = next((at for at in reversed(breaks) if not any(start < at < end for start, end in spans)), 0)
    cut = text[:best].rstrip(" ,;:，、；：-(（") if best else _unbroken(text, room, spans)
    return f"{cut}…" if cut else "…"


def width_of(text: str) -> int:
    """Characters, where a wide one counts for two and a half.

    >>> width_of("ab部署")
    7
    """
    if text.isascii():
        return len(text)
    wide = sum(1 for sign in text if sign >= "\u2e80")
    return len(text) + wide * 3 // 2


def excerpt(text: str, wanted: set[str], width: int) -> str:
    """The parts of a text around the wanted literals, each with the few words that say what it is."""
    if width_of(text) <= width:
        return text
    pieces: list[str] = []
    reached = 0
    used = 0
    for each in literals(text):
        if each.text not in wanted or each.start < reached:
            continue
        before = _WORD_AT_END.search(text, max(reached, each.start - 48), each.start)
        start = _at_word(text, before.start() if before else each.start, reached, each.start)
        after = _WORDS_AFTER.match(text, each.end, min(len(text), each.end + 28))
        end = _before_cut(text, after.end() if after else each.end, each.end)
        piece = text[start:end].strip(" ,;，；、")
        if pieces and used + width_of(piece) > width:
            break
        joint = " … " if start - reached > 1 or not pieces else " "
        pieces.append(f"{joint}{piece}" if pieces else piece)
        used += width_of(pieces[-1])
        reached = end
    return "".join(pieces) if pieces else shorten(text, width)


def _before_cut(text: str, end: int, least: int) -> int:
    """The last place before `end` where a word is complete."""
    if end >= len(text) or text[end].isspace():
        return end
    return max(least, text.rfind(" ", least, end))


def _at_word(text: str, start: int, reached: int, end: int) -> int:
    """The next place from `start` on where a word begins."""
    if start == reached:
        return start
    match = _BREAK.search(text, max(0, start - 1), end)
    return match.end() if match else end


def _unbroken(text: str, room: int, spans: list[tuple[int, int]]) -> str:
    """A text without a place to break: cut before the literal that the end would fall into, or anywhere."""
    for start, end in spans:
        if start < room < end:
            return text[:start] if start else ""
    return text[:room]


def _chars_within(text: str, width: int) -> int:
    used = 0.0
    for at, sign in enumerate(text):
        used += 2.5 if sign >= "\u2e80" else 1
        if used > width:
            return at
    return len(text)
