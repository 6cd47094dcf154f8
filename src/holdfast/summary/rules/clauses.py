"""From the text of a message to the clauses its author wrote: no code, no quotes, no pasted output."""

# ruff: noqa: RUF001 - the punctuation of Chinese
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

MAX_CHARS = 24_000
"""What is read of one text, from its beginning and its end."""
MAX_BETWEEN = 1_000_000
"""What is searched between them for sentences that sound like rules."""
MAX_SENTENCE = 1_200
MAX_LINES = 2_000
_BETWEEN_HITS, _BETWEEN_CHARS, _CHUNK = 50, 400, 32_768
_SENTENCES_PER_YIELD = 32

_RULING_WORDS = (
    *("never", "always", "must", "do not", "don't", "from now on", "whenever", "prefer", "allerg", "i hate"),
    *(
        "forbidden",
        "off limits",
        "under no circumstances",
        "不要",
        "必须",
        "禁止",
        "严禁",
        "不得",
        "务必",
        "以后",
        "一律",
        "过敏",
    ),
)
_RULING = re.compile("|".join(map(re.escape, _RULING_WORDS)), re.IGNORECASE)
_MARKER = re.compile(r"(?:#{1,6}\s|[-*+•·]\s|\(?\d{1,2}[.)、]\s?(?=\D)|\[[ xX]\]\s)")
_MACHINE = re.compile(r"(?:\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|[{}<|$]|\[?[A-Z]{4,}\b[\]:]|import |def |class |at \w+\.)")
_QUOTED = re.compile(
    r"\"[^\"\n]{12,1000}\"|\"(?=[^\"\n]{0,40}[\u3400-\u9fff])[^\"\n]{2,1000}\"|“[^”\n]{4,1000}”|«[^»\n]{4,1000}»"
    r"|「[^」\n]{2,1000}」|『[^』\n]{2,1000}』"
    r"|(?<![\w'])'[^'\n]{3,300}[,.!?]'(?!\w)"
)
_END = re.compile(r"[.!?…]{1,3}[\"')\]*]{0,3}\s+(?=\S)|[。！？；]+[”」』）]?|[!?](?=[\u3400-\u9fff])")
_ABBREVIATED = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|mrs?|ms|dr|prof|no|approx|ca|cf|st|inc|ltd|fig|incl|resp)|\b[a-z])\.\W{0,4}$"
)
_BORDER = re.compile(
    r"(?:[,;:(]|\)[,;:]?|\s[-–—]{1,2}|(?<=[a-z0-9%'*)])(?=\s(?:so|because|since|hence)\s))\s+(?:so\s(?="
    r"(?:on|for|in|at|no|nothing|please|never|always|don't|do not|only|keep|use|i|i'm|we|if|when"
    r"|whenever|the|my|it|how|what|which"
    r"|who|where|could|can|would|do|does|is|are|by|from|with|this|that's|he|she|they|you|our|let's|leave"
    r"|give|show|add|make)\b)"
    r"|(?:because|hence)\s|since\s(?=(?:i|we|our|my|the|it|they|he|she|that|your|this)\b))?"
    r"|—|\s\(|[，；：（）]|(?<=[\u3400-\u9fff])\s?[,;:]"
)
_WORD = re.compile(r"[a-z']+")
_SPACE = re.compile(r"\s+")
_HIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_TAG = re.compile(r"<([A-Za-z][\w\-]{0,40})(?:\s[^<>]{0,200})?>")
_BLANK = "\x1a"
"""Stands for a quoted stretch: it is no part of a clause."""


class Segment(NamedTuple):
    """A stretch of a sentence between two marks of punctuation."""

    start: int
    end: int


@dataclass(frozen=True)
class Sentence:
    text: str
    """One line, as it was written."""
    lower: str
    """Of the same length, for patterns."""
    listed: bool
    """Whether it is an item of a list."""

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(_WORD.findall(self.lower))

    @cached_property
    def segments(self) -> list[Segment]:
        return _segments(self.lower)

    @property
    def asks(self) -> bool:
        return self.text.rstrip(" )\"'*").endswith(("?", "？"))


def sentences(text: str, yield_cpu: Callable[[], None]) -> Iterator[Sentence]:
    """The sentences that the author of a message wrote, from its beginning, middle and end, in this order."""
    if len(text) <= MAX_CHARS:
        log_ranges: Iterator[str] = iter((text,))
    else:
        log_ranges = _stretches(text, yield_cpu)
    count = 0
    for stretch in log_ranges:
        for line, listed in _lines(stretch):
            for written, lower in _split(line):
                count += 1
                if count % _SENTENCES_PER_YIELD == 0:
                    yield_cpu()
                yield Sentence(written, lower, listed)


def _stretches(text: str, yield_cpu: Callable[[], None]) -> Iterator[str]:
    """The beginning, the sentences between that sound like rules, and the end of a long text."""
    first, last = MAX_CHARS * 2 // 3, len(text) - MAX_CHARS // 3
    yield text[:first]
    if text.count("```", 0, first) % 2 == 0:
        yield from _between(text, first, min(last, first + MAX_BETWEEN), yield_cpu)
    yield text[last:]


def _between(text: str, first: int, last: int, yield_cpu: Callable[[], None]) -> Iterator[str]:
    hits, reached, fenced = 0, first, False
    for start in range(first, last, _CHUNK):
        yield_cpu()
        end = min(last, start + _CHUNK)
        chunk = text[start:end].lower()
        if not any(word in chunk for word in _RULING_WORDS):
            fenced ^= chunk.count("```") % 2 == 1
            continue
        for found in _RULING.finditer(text, start, end):
            if found.start() < reached:
                continue
            hits += 1
            if hits > _BETWEEN_HITS:
                return
            inside = fenced ^ (text.count("```", start, found.start()) % 2 == 1)
            begin, reached = _around(text, found.start(), found.end())
            if not inside:
                yield text[begin:reached]
        fenced ^= chunk.count("```") % 2 == 1


def _around(text: str, start: int, end: int) -> tuple[int, int]:
    """The borders of the sentence around a place, as far as it is not too long."""
    marks = ("\n", ". ", "! ", "? ", "。", "！", "？")
    low, high = max(0, start - _BETWEEN_CHARS), min(len(text), end + _BETWEEN_CHARS)
    begin = max(low, *(text.rfind(mark, low, start) + len(mark) if mark in text[low:start] else low for mark in marks))
    stop = [place + 1 for mark in marks if (place := text.find(mark, end, high)) >= 0]
    line = text.rfind("\n", low, start) + 1
    return (line if text[line : line + 1] in {">", "|"} else begin), min([*stop, high])


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """The lines of prose. What is in fences, quoted or printed by machines is not the author's."""
    fence = ""
    for number, line in enumerate(text.splitlines()):
        if number >= MAX_LINES:
            return
        bare = line.strip()
        if fence:
            fence = "" if bare.endswith(fence) or bare.startswith(fence) else fence
            continue
        fence = _opened_fence(bare)
        if fence or not bare or bare[0] in ">|" or _MACHINE.match(bare) or line.startswith(("    ", "\t")):
            continue
        marker = _MARKER.match(bare)
        yield (bare[marker.end() :], True) if marker else (bare, False)


def _opened_fence(line: str) -> str:
    """What ends the stretch of other people's text that a line begins; nothing if it begins none.

    >>> [_opened_fence(line) for line in ("```python", "```ls``` fails.", "<document>", '"Hello.', "---", "plain")]
    ['```', '', '</document>', '"', '---', '']
    """
    for mark in ("```", "~~~", '"""', "---"):
        if line.startswith(mark):
            return "" if mark in line[3:] else mark
    if tag := _TAG.match(line):
        return "" if f"</{tag[1]}>" in line else f"</{tag[1]}>"
    return '"' if line.count('"') == 1 and (line[0] == '"' or ': "' in line) else ""


def _split(line: str) -> Iterator[tuple[str, str]]:
    """The sentences of a line as written and in small letters, with quoted stretches blanked."""
    line = _SPACE.sub(" ", _HIDDEN.sub(" ", line)).strip()
    lower = line.lower()
    if len(lower) != len(line):  # a few capitals have a longer small form; patterns need equal places
        lower = "".join(sign.lower() if len(sign.lower()) == 1 else sign for sign in line)
    lower = _QUOTED.sub(_blanked, lower.replace("’", "'"))
    start = 0
    for border in _END.finditer(lower):
        if lower[border.start()] == "." and _ABBREVIATED.search(lower, max(0, border.start() - 8), border.end()):
            continue
        end = start + len(line[start : border.end()].rstrip())
        if end - start > 1:
            yield from _windows(line, lower, start, end)
        start = border.end()
    yield from _windows(line, lower, start, len(line))


def _windows(line: str, lower: str, start: int, end: int) -> Iterator[tuple[str, str]]:
    """A sentence; one that does not end is cut at a comma or a space."""
    while end - start > MAX_SENTENCE:
        reach = start + MAX_SENTENCE
        found = next((at for mark in (", ", "，", " ") if (at := lower.rfind(mark, start + 1, reach)) > 0), reach - 1)
        yield line[start : found + 1], lower[start : found + 1]
        start = found + 1
    if end > start:
        yield line[start:end], lower[start:end]


def _blanked(found: re.Match[str]) -> str:
    """A quoted stretch without its words; the sign that ends a sentence inside it still ends one."""
    last = found.group()[-2:]
    return _BLANK * (len(found.group()) - 2) + (last if last[0] in ".!?。！？" else _BLANK * 2)


def _segments(lower: str) -> list[Segment]:
    segments: list[Segment] = []
    start = 0
    for border in _BORDER.finditer(lower):
        if border.start() > start:
            segments.append(Segment(start, border.start()))
        start = border.end()
    if start < len(lower):
        segments.append(Segment(start, len(lower)))
    return segments


def quoted(lower: str) -> bool:
    return _BLANK in lower
