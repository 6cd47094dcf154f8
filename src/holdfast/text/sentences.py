"""Sentences of messages, and the words of a text.

`summary/rules` has a splitter of its own. It blanks quoted text, drops text that the author did not write and keeps
positions in the original line, which would change the sentences here.
"""

# ruff: noqa: RUF001 - the punctuation of Chinese
import re
from dataclasses import dataclass, field
from typing import Literal as Choice
from typing import NamedTuple

from holdfast.model.messages import Role
from holdfast.text.literals import Literal
from holdfast.text.scripts import HAN_AND_HEXAGRAMS, PAIRED

Origin = Choice["prose", "code", "call", "open_call", "failed_call", "output", "image"]
"""Where a sentence comes from. An `open_call` has no result yet; an `image` is the description of one."""

MAX_MESSAGE_CHARS = 24_000
"""Characters read of one message, from its beginning and its end. A longer text is mostly pasted output of programs."""
MAX_SENTENCE_CHARS = 420
_MIN_ENUMERATION_CHARS = 170
"""Length from which a sentence is split into the items that it enumerates."""

_FENCE = re.compile(r"^[ \t]*(?:```|~~~).*$", re.MULTILINE)
_LIST_MARKER = re.compile(r"^(?:\s+|#{2,}|#(?=\s|$)|[>|]|[-*+•·]\s+|\(?\d{1,2}[.)、]\s*(?=\D)|\[[ xX]\]\s*)+")
_SENTENCE_END = re.compile(
    r"(?<=[.!?])[\"')\]*]*\s+(?=[^a-z\s])|(?<=[a-z)`][.!?])\s+(?=[a-z])|(?<=[。！？；])[”」』）]?\s*"
    rf"|(?<=[!?])(?=[{HAN_AND_HEXAGRAMS}])|(?<=…)\s+"
)
_ABBREVIATION_AT_END = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|[Mm]rs?|[Mm]s|[Dd]r|[Pp]rof|[Nn]o|approx|ca|cf|[Ss]t|[Ii]nc|[Ll]td|[Ff]ig|incl|resp|est|min"
    r"|max|dept)\.|\b[A-Z]\.)$"
)
_ITEM_BORDER = re.compile(r";\s|\s(?=\(?\d[.)]\s\D)")
_EMPHASIS = re.compile(r"\*\*|__(?=\S)|(?<=\S)__|</?[a-z]{1,10}>")
_INVISIBLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\u200b\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_SPACE = re.compile(r"\s+")
_WORD = re.compile(r"[a-z0-9][a-z0-9_'’]*", re.ASCII)
_OTHER_WORD = re.compile(r"[^\W\d_]{2,}")
_PAIRED_RUN = re.compile(f"[{PAIRED}]+")


class Piece(NamedTuple):
    text: str
    origin: Origin
    is_list_item: bool = False
    """Whether it is an item of a list. The sentence that announces a list applies to its items too."""


@dataclass(slots=True, eq=False)
class Sentence:
    text: str
    message_index: int
    sources: list[int]
    """Sequence numbers of the messages that the sentence is from."""
    role: Role
    origin: Origin
    words: frozenset[str] = frozenset()
    cues: frozenset[str] = frozenset()
    literals: list[Literal] = field(default_factory=list)
    weight: float = 0.0
    """How important the sentence is for a summary: by its role, its cues and its literals."""
    centrality: float = 0.0
    """How similar the sentence is to the others, from 0 to 1."""
    occurrences: int = 1
    """How many sentences, itself included, differ only in literals. 1 if they are too few to be routine."""
    is_common: bool = False
    """Whether many sentences have the same shape: the same text except for literals. All of them are common."""
    is_routine: bool = False
    """Whether it is common, but not the first sentence of its shape."""
    vector_row: int = -1
    """Its row in the matrix of vectors, or -1 if it has none."""


def to_single_line(text: str) -> str:
    """Return the text on one line, without invisible characters."""
    if text.isprintable():  # it has no invisible characters, and no whitespace except spaces
        return (_SPACE.sub(" ", text) if "  " in text else text).strip()
    return _SPACE.sub(" ", _INVISIBLE.sub(" ", text)).strip()


def head_and_tail_bounds(text: str, chars: int = MAX_MESSAGE_CHARS) -> tuple[int, int]:
    """Return where the head of a long text ends and where its tail begins: two thirds and one third of `chars`."""
    return chars * 2 // 3, len(text) - chars // 3


def head_and_tail(text: str, chars: int = MAX_MESSAGE_CHARS) -> str:
    """Return the head and the tail of a text longer than `chars`, and a shorter one unchanged."""
    head_end, tail_start = head_and_tail_bounds(text, chars)
    return text if len(text) <= chars else f"{text[:head_end]}\n{text[tail_start:]}"


def split_sentences(text: str) -> list[Piece]:
    """Split the text of a message into sentences of prose and lines of code blocks.

    >>> [piece.text for piece in split_sentences("Use v1.2, e.g. now. 不要重启。好的")]
    ['Use v1.2, e.g. now.', '不要重启。', '好的']
    """
    pieces: list[Piece] = []
    for number, block in enumerate(_FENCE.split(text) if "```" in text or "~~~" in text else (text,)):
        is_code = number % 2 == 1
        for line in block.splitlines():
            stripped = line.strip()
            unmarked = _LIST_MARKER.sub("", stripped)
            plain = to_single_line(_EMPHASIS.sub("", unmarked))
            if not plain:
                continue
            if is_code:
                pieces.append(Piece(plain[:MAX_SENTENCE_CHARS], "code"))
            else:
                is_list_item = len(unmarked) < len(stripped) and stripped[0] not in "#>|"
                pieces += _split_line(plain, is_list_item=is_list_item)
    return pieces


def _split_line(line: str, *, is_list_item: bool) -> list[Piece]:
    sentences: list[str] = []
    for piece in _SENTENCE_END.split(line):
        if sentences and _ABBREVIATION_AT_END.search(sentences[-1][-8:]):
            sentences[-1] = f"{sentences[-1]} {piece}"
        elif piece and piece.strip():
            sentences.append(piece.strip())
    return [
        Piece(part, "prose", is_list_item or number > 0)
        for sentence in sentences
        for number, item in enumerate(_split_enumeration(sentence))
        for part in _split_long(item)
    ]


def _split_enumeration(sentence: str) -> list[str]:
    """Split a long sentence into the items that it enumerates."""
    if len(sentence) <= _MIN_ENUMERATION_CHARS:
        return [_LIST_MARKER.sub("", sentence) or sentence]
    return [item for piece in _ITEM_BORDER.split(sentence) if (item := _LIST_MARKER.sub("", piece.strip(" ;")))]


def _split_long(sentence: str) -> list[str]:
    """Split a sentence that is too long at a space or a comma, or at the limit if there is none."""
    parts: list[str] = []
    while len(sentence) > MAX_SENTENCE_CHARS:
        border = max(sentence.rfind(mark, MAX_SENTENCE_CHARS // 2, MAX_SENTENCE_CHARS) for mark in (" ", "，", ","))
        end = border + 1 if border > 0 else MAX_SENTENCE_CHARS
        parts.append(sentence[:end].strip())
        sentence = sentence[end:]
    return [*parts, sentence.strip()] if sentence.strip() else parts


def extract_words(text: str) -> frozenset[str]:
    """Return the words of a text in lower case. Chinese, Japanese and Korean text counts as pairs of characters.

    >>> sorted(extract_words("Deploy 到生产"))
    ['deploy', '到生', '生产']
    """
    lower = text.lower()
    words = _WORD.findall(lower)
    if text.isascii():
        return frozenset(words)
    for run in _PAIRED_RUN.findall(lower):
        words += [run[start : start + 2] for start in range(max(1, len(run) - 1))]
    words += [word for word in _OTHER_WORD.findall(lower) if not word.isascii() and not _PAIRED_RUN.search(word)]
    return frozenset(words)


def word_similarity(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of the smaller set of words that is in the larger one, lowered if the sizes differ much."""
    smaller = min(len(one), len(other))
    return len(one & other) / (smaller + 0.5 * abs(len(one) - len(other))) if smaller else 0.0
