"""Splits the text of a message into sentences and segments, without code, quotes and pasted output."""

# ruff: noqa: RUF001 - the punctuation of Chinese
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from holdfast.text.scripts import HAN_AND_HEXAGRAMS

MAX_CHARS_READ = 24_000
"""A longer text is read completely only at its beginning and its end, this many characters in all."""
MAX_MIDDLE_CHARS = 1_000_000
"""How much of the middle of a long text is searched for sentences with rule words."""
MAX_SENTENCE_CHARS = 1_200
MAX_CLAUSE_CHARS = 200
MAX_LINES = 2_000
_MAX_MIDDLE_SENTENCES = 50
_MIDDLE_CONTEXT_CHARS = 400
"""How far from a rule word its sentence may begin and end."""
_CHUNK_CHARS = 32_768
_SENTENCES_PER_YIELD = 32

_RULE_WORDS = (
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
# These words select the sentences that are read in the middle of a long text.
_RULE_WORD = re.compile("|".join(map(re.escape, _RULE_WORDS)), re.IGNORECASE)
_LIST_MARKER = re.compile(r"(?:#{1,6}\s|[-*+•·]\s|\(?\d{1,2}[.)、]\s?(?=\D)|\[[ xX]\]\s)")  # "- item"
_MACHINE_OUTPUT = re.compile(  # "12:40:07 started"
    r"(?:\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|[{}<|$]|\[?[A-Z]{4,}\b[\]:]|import |def |class |at \w+\.)"
)
# Short quotes, such as a quoted word, are not blanked.
_STRAIGHT_QUOTE = re.compile(
    rf"\"[^\"\n]{{12,1000}}\"|\"(?=[^\"\n]{{0,40}}[{HAN_AND_HEXAGRAMS}])[^\"\n]{{2,1000}}\""
    r"|(?<![\w'])'[^'\n]{3,300}[,.!?]'(?!\w)"
)
_QUOTE = re.compile(
    rf"{_STRAIGHT_QUOTE.pattern}|“[^”\n]{{4,1000}}”|«[^»\n]{{4,1000}}»|「[^」\n]{{2,1000}}」|『[^』\n]{{2,1000}}』"
)
_CLOSING_MARKS = re.compile("[”»」』]")
_SENTENCE_END = re.compile(
    r"[.!?…]{1,3}[\"')\]*]{0,3}\s+(?=\S)|[。！？；]+[”」』）]?"
    rf"|[!?](?=[{HAN_AND_HEXAGRAMS}])"
)
_ABBREVIATION = re.compile(  # "e.g. "
    r"(?:\b(?:e\.g|i\.e|etc|vs|mrs?|ms|dr|prof|no|approx|ca|cf|st|inc|ltd|fig|incl|resp)|\b[a-z])\.\W{0,4}$"
)
_SEGMENT_BORDER = re.compile(
    r"(?:[,;:(]|\)[,;:]?|\s[-–—]{1,2}|(?<=[a-z0-9%'*)])(?=\s(?:so|because|since|hence)\s))\s+(?:so\s(?="
    r"(?:on|for|in|at|no|nothing|please|never|always|don't|do not|only|keep|use|i|i'm|we|if|when"
    r"|whenever|the|my|it|how|what|which"
    r"|who|where|could|can|would|do|does|is|are|by|from|with|this|that's|he|she|they|you|our|let's|leave"
    r"|give|show|add|make)\b)"
    r"|(?:because|hence)\s|since\s(?=(?:i|we|our|my|the|it|they|he|she|that|your|this)\b))?"
    rf"|—|\s\(|[，；：（）]|(?<=[{HAN_AND_HEXAGRAMS}])\s?[,;:]"
)
_WORD = re.compile(r"[a-z']+")
_SPACE = re.compile(r"\s+")
_INVISIBLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_TAG = re.compile(r"<([A-Za-z][\w\-]{0,40})(?:\s[^<>]{0,200})?>")
_BLANK = "\x1a"
"""Replaces each character of a quote, because a quote states no rule of the user. No other text contains it."""


class Clause(NamedTuple):
    """A part of a sentence that states a rule or a preference, as positions in the sentence."""

    start: int
    end: int


class Segment(NamedTuple):
    """A part of a sentence between two punctuation marks, as positions in the sentence."""

    start: int
    end: int


@dataclass(frozen=True)
class Sentence:
    text: str
    """The original text, without line breaks."""
    lower: str
    """The text in lower case, of the same length, with quotes blanked. Patterns are matched against it."""
    is_list_item: bool

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(_WORD.findall(self.lower))

    @cached_property
    def segments(self) -> list[Segment]:
        return _split_segments(self.lower)

    @property
    def is_question(self) -> bool:
        return self.text.rstrip(" )\"'*").endswith(("?", "？"))


def has_rule_word(text: str) -> bool:
    """Return whether a text has a word that most rules have."""
    lower = text.lower()
    return any(word in lower for word in _RULE_WORDS)


def split_sentences(text: str, yield_cpu: Callable[[], None]) -> Iterator[Sentence]:
    """Yield the sentences that the author of a message wrote, in order."""
    sections = iter((text,)) if len(text) <= MAX_CHARS_READ else _sections_of_long_text(text, yield_cpu)
    count = 0
    for section in sections:
        for line, is_list_item in _prose_lines(section):
            for original, lower in _split_line(line):
                count += 1
                if count % _SENTENCES_PER_YIELD == 0:
                    yield_cpu()
                yield Sentence(original, lower, is_list_item)


def _sections_of_long_text(text: str, yield_cpu: Callable[[], None]) -> Iterator[str]:
    """Yield the beginning of a long text, the sentences of its middle that have rule words, and its end."""
    middle_start, middle_end = MAX_CHARS_READ * 2 // 3, len(text) - MAX_CHARS_READ // 3
    yield text[:middle_start]
    if text.count("```", 0, middle_start) % 2 == 0:
        searched_end = min(middle_end, middle_start + MAX_MIDDLE_CHARS)
        yield from _sentences_with_rule_words(text, middle_start, searched_end, yield_cpu)
    yield text[middle_end:]


def _sentences_with_rule_words(text: str, first: int, last: int, yield_cpu: Callable[[], None]) -> Iterator[str]:
    hits, sentence_end, is_fenced = 0, first, False
    for start in range(first, last, _CHUNK_CHARS):
        yield_cpu()
        end = min(last, start + _CHUNK_CHARS)
        chunk = text[start:end]
        if not has_rule_word(chunk):
            is_fenced ^= chunk.count("```") % 2 == 1
            continue
        for found in _RULE_WORD.finditer(text, start, end):
            if found.start() < sentence_end:
                continue
            hits += 1
            if hits > _MAX_MIDDLE_SENTENCES:
                return
            is_code = is_fenced ^ (text.count("```", start, found.start()) % 2 == 1)
            sentence_start, sentence_end = _sentence_bounds(text, found.start(), found.end())
            if not is_code:
                yield text[sentence_start:sentence_end]
        is_fenced ^= chunk.count("```") % 2 == 1


def _sentence_bounds(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the start and end of the sentence around `start` to `end`, cut if it is too long."""
    marks = ("\n", ". ", "! ", "? ", "。", "！", "？")
    low, high = max(0, start - _MIDDLE_CONTEXT_CHARS), min(len(text), end + _MIDDLE_CONTEXT_CHARS)
    begin = max(low, *(text.rfind(mark, low, start) + len(mark) if mark in text[low:start] else low for mark in marks))
    stop = [position + 1 for mark in marks if (position := text.find(mark, end, high)) >= 0]
    line = text.rfind("\n", low, start) + 1
    return (line if text[line : line + 1] in {">", "|"} else begin), min([*stop, high])


def _prose_lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each line of prose and whether it is a list item. Code, quotes and output of programs are skipped."""
    fence = ""
    for number, line in enumerate(text.splitlines()):
        if number >= MAX_LINES:
            return
        bare = line.strip()
        if fence:
            fence = "" if bare.endswith(fence) or bare.startswith(fence) else fence
            continue
        fence = _closing_fence(bare)
        if fence or not bare or bare[0] in ">|" or _MACHINE_OUTPUT.match(bare) or line.startswith(("    ", "\t")):
            continue
        marker = _LIST_MARKER.match(bare)
        yield (bare[marker.end() :], True) if marker else (bare, False)


def _closing_fence(line: str) -> str:
    """Return the mark that closes the pasted text which a line opens, or an empty string if it opens none.

    >>> [_closing_fence(line) for line in ("```python", "```ls``` fails.", "<document>", '"Hello.', "---", "plain")]
    ['```', '', '</document>', '"', '---', '']
    """
    for mark in ("```", "~~~", '"""', "---"):
        if line.startswith(mark):
            return "" if mark in line[3:] else mark
    if tag := _TAG.match(line):
        return "" if f"</{tag[1]}>" in line else f"</{tag[1]}>"
    return '"' if line.count('"') == 1 and (line[0] == '"' or ': "' in line) else ""


def _split_line(line: str) -> Iterator[tuple[str, str]]:
    """Yield each sentence of a line, as written and in lower case with quotes blanked."""
    line = _SPACE.sub(" ", _INVISIBLE.sub(" ", line)).strip()
    lower = line.lower()
    if len(lower) != len(line):  # a few capitals become two characters; both texts must have the same positions
        lower = "".join(char.lower() if len(char.lower()) == 1 else char for char in line)
    # Each opening mark without a closing one would be searched for 1,000 characters.
    quote = _QUOTE if _CLOSING_MARKS.search(lower) else _STRAIGHT_QUOTE
    lower = quote.sub(_blank_quote, lower.replace("’", "'"))
    start = 0
    for border in _SENTENCE_END.finditer(lower):
        if lower[border.start()] == "." and _ABBREVIATION.search(lower, max(0, border.start() - 8), border.end()):
            continue
        end = start + len(line[start : border.end()].rstrip())
        if end - start > 1:
            yield from _cut_long_sentence(line, lower, start, end)
        start = border.end()
    yield from _cut_long_sentence(line, lower, start, len(line))


def _cut_long_sentence(line: str, lower: str, start: int, end: int) -> Iterator[tuple[str, str]]:
    """Yield a sentence, or the pieces of a sentence that is too long, cut at commas or spaces."""
    while end - start > MAX_SENTENCE_CHARS:
        limit = start + MAX_SENTENCE_CHARS
        cut = next((at for mark in (", ", "，", " ") if (at := lower.rfind(mark, start + 1, limit)) > 0), limit - 1)
        yield line[start : cut + 1], lower[start : cut + 1]
        start = cut + 1
    if end > start:
        yield line[start:end], lower[start:end]


def _blank_quote(found: re.Match[str]) -> str:
    """Replace a quote by blanks. A mark that ends a sentence inside it stays, so that it still ends one."""
    last = found.group()[-2:]
    return _BLANK * (len(found.group()) - 2) + (last if last[0] in ".!?。！？" else _BLANK * 2)


def _split_segments(lower: str) -> list[Segment]:
    segments: list[Segment] = []
    start = 0
    for border in _SEGMENT_BORDER.finditer(lower):
        if border.start() > start:
            segments.append(Segment(start, border.start()))
        start = border.end()
    if start < len(lower):
        segments.append(Segment(start, len(lower)))
    return segments


def has_quote(lower: str) -> bool:
    return _BLANK in lower
