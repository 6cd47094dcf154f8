"""Shortens texts. A text is cut between words, never inside an id, a path or a number, so that it stays correct."""

# ruff: noqa: RUF001 - the punctuation of Chinese
import re

from holdfast.text.literals import find_literals
from holdfast.text.scripts import FIRST_WIDE, HAN_AND_HEXAGRAMS

_BREAK = re.compile(rf"\s|(?<=[，。；、,;：:！？])|(?<=[{HAN_AND_HEXAGRAMS}])(?=[{HAN_AND_HEXAGRAMS}])")
_WORDS_AFTER = re.compile(r"[^\s，。；、]*(?:\s+[^\s,.;]+){0,2}")
_WORDS_BEFORE = re.compile(r"(?:\S+\s+){0,4}\S*\s*$")
_WIDE_CHARACTER_WIDTH = 2.5


def shorten(text: str, width: int) -> str:
    """Cut a text to at most `width`, measured by `weighted_width`. A text that was cut ends with an ellipsis.

    >>> shorten("restart the pods in eu-west-1 after 02:00", 30)
    'restart the pods in eu-west-1…'
    """
    if weighted_width(text) <= width:
        return text
    max_chars = _chars_within(text, width - 1)
    literals = find_literals(text[: max_chars + 200], before=max_chars)
    literal_spans = [(literal.start, literal.end) for literal in literals]
    breaks = [match.start() for match in _BREAK.finditer(text, 0, max_chars + 1)]
    best = next((at for at in reversed(breaks) if not any(start < at < end for start, end in literal_spans)), 0)
    cut = text[:best].rstrip(" ,;:，、；：-(（") if best else _cut_without_break(text, max_chars, literal_spans)
    return f"{cut}…" if cut else "…"


def weighted_width(text: str) -> int:
    """Return the length of a text, where an East Asian character counts as two and a half other characters.

    Such a character carries about as much content, and costs about as many tokens, as two or three letters.

    >>> weighted_width("ab部署")
    7
    """
    if text.isascii():
        return len(text)
    wide_count = sum(1 for character in text if character >= FIRST_WIDE)
    return int(len(text) + wide_count * (_WIDE_CHARACTER_WIDTH - 1))


def excerpt(text: str, wanted: set[str], width: int) -> str:
    """Return the parts of a text around the `wanted` literals, each with a few words that explain it."""
    if weighted_width(text) <= width:
        return text
    pieces: list[str] = []
    last_end = 0
    used = 0
    for literal in find_literals(text):
        if literal.text not in wanted or literal.start < last_end:
            continue
        before = _WORDS_BEFORE.search(text, max(last_end, literal.start - 48), literal.start)
        start = _next_word_start(text, before.start() if before else literal.start, last_end, literal.start)
        after = _WORDS_AFTER.match(text, literal.end, min(len(text), literal.end + 28))
        end = _last_word_end(text, after.end() if after else literal.end, literal.end)
        piece = text[start:end].strip(" ,;，；、")
        if pieces and used + weighted_width(piece) > width:
            break
        separator = " … " if start - last_end > 1 or not pieces else " "
        pieces.append(f"{separator}{piece}" if pieces else piece)
        used += weighted_width(pieces[-1])
        last_end = end
    return "".join(pieces) if pieces else shorten(text, width)


def _last_word_end(text: str, end: int, min_end: int) -> int:
    """Return the last position up to `end` where a word is complete, but at least `min_end`."""
    if end >= len(text) or text[end].isspace():
        return end
    return max(min_end, text.rfind(" ", min_end, end))


def _next_word_start(text: str, start: int, last_end: int, end: int) -> int:
    """Return the next position from `start` on where a word begins, but at most `end`."""
    if start == last_end:
        return start
    match = _BREAK.search(text, max(0, start - 1), end)
    return match.end() if match else end


def _cut_without_break(text: str, max_chars: int, literal_spans: list[tuple[int, int]]) -> str:
    """Cut a text that has no place to break: before the literal at the limit, or else at the limit."""
    for start, end in literal_spans:
        if start < max_chars < end:
            return text[:start] if start else ""
    return text[:max_chars]


def _chars_within(text: str, width: int) -> int:
    if text[:width].isascii():
        return max(0, min(width, len(text)))
    used = 0.0
    for at, character in enumerate(text):
        used += _WIDE_CHARACTER_WIDTH if character >= FIRST_WIDE else 1
        if used > width:
            return at
    return len(text)
