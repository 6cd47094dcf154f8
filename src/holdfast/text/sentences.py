"""From the text of messages to single sentences that know where they come from."""

# ruff: noqa: RUF001 - the punctuation of Chinese
import re
from dataclasses import dataclass, field
from typing import Literal as Choice
from typing import NamedTuple

from holdfast.model.messages import Role
from holdfast.text.literals import Literal

Origin = Choice["said", "code", "call", "open", "output", "failure", "shown"]
"""Words, code, a tool call, one without a result, a tool's output, its error, or an image that was shown."""

MESSAGE_CHARS = 24_000
"""What is read of one message, from its beginning and its end; beyond lies machine output, not something said."""
SENTENCE_CHARS = 420
_LONG = 170

_FENCE = re.compile(r"^[ \t]*(?:```|~~~).*$", re.MULTILINE)
_MARKER = re.compile(r"^(?:\s+|#{2,}|#(?=\s|$)|[>|]|[-*+•·]\s+|\(?\d{1,2}[.)、]\s*(?=\D)|\[[ xX]\]\s*)+")
_END = re.compile(
    r"(?<=[.!?])[\"')\]*]*\s+(?=[^a-z\s])|(?<=[a-z)`][.!?])\s+(?=[a-z])|(?<=[。！？；])[”」』）]?\s*"
    r"|(?<=[!?])(?=[\u3400-\u9fff])|(?<=…)\s+"
)
_ABBREVIATED = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|[Mm]rs?|[Mm]s|[Dd]r|[Pp]rof|[Nn]o|approx|ca|cf|[Ss]t|[Ii]nc|[Ll]td|[Ff]ig|incl|resp|est|min"
    r"|max|dept)\.|\b[A-Z]\.)$"
)
_ITEM = re.compile(r";\s|\s(?=\(?\d[.)]\s\D)")
_EMPHASIS = re.compile(r"\*\*|__(?=\S)|(?<=\S)__|</?[a-z]{1,10}>")
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\u200b\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_SPACE = re.compile(r"\s+")
_WORD = re.compile(r"[a-z0-9][a-z0-9_'’]*", re.ASCII)
_OTHER_WORD = re.compile(r"[^\W\d_]{2,}")
_HAN_RUN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\u3040-\u30ff\uac00-\ud7af]+")


class Piece(NamedTuple):
    text: str
    origin: Origin
    listed: bool = False
    """Whether it is an item of a list: what the words above the list say holds for it."""


@dataclass(slots=True, eq=False)
class Sentence:
    text: str
    place: int
    """The index of its message."""
    sources: list[int]
    """The numbers of the messages it rests on."""
    role: Role
    origin: Origin
    words: frozenset[str] = frozenset()
    cues: frozenset[str] = frozenset()
    literals: list[Literal] = field(default_factory=list)
    weight: float = 0.0
    centrality: float = 0.0
    times: int = 1
    """How often it was said with nothing but other literals, where that is routine."""
    common: bool = False
    """Whether much of the like was said."""
    routine: bool = False
    """Whether others of its kind were there before it."""
    row: int = -1
    """Its row in the matrix of vectors, or -1 if it has none."""


def flat(text: str) -> str:
    """One line without invisible characters."""
    if _UNSEEN.search(text):
        text = _UNSEEN.sub(" ", text)
    return _SPACE.sub(" ", text).strip()


def bounds_of(text: str, chars: int = MESSAGE_CHARS) -> tuple[int, int]:
    """Where the beginning of a long text ends that is read, and where its end begins."""
    return chars * 2 // 3, len(text) - chars // 3


def bounded(text: str, chars: int = MESSAGE_CHARS) -> str:
    """The beginning and the end of a text too long to be read whole."""
    first, last = bounds_of(text, chars)
    return text if len(text) <= chars else f"{text[:first]}\n{text[last:]}"


def split(text: str) -> list[Piece]:
    """The sentences of a message's text, said or in a code block.

    >>> [piece.text for piece in split("Use v1.2, e.g. now. 不要重启。好的")]
    ['Use v1.2, e.g. now.', '不要重启。', '好的']
    """
    found: list[Piece] = []
    for number, block in enumerate(_FENCE.split(text) if "```" in text or "~~~" in text else (text,)):
        for line in block.splitlines():
            bare = line.strip()
            marked = _MARKER.sub("", bare)
            plain = flat(_EMPHASIS.sub("", marked))
            if not plain:
                continue
            if number % 2:
                found.append(Piece(plain[:SENTENCE_CHARS], "code"))
            else:
                found += _sentences(plain, listed=len(marked) < len(bare) and bare[0] not in "#>|")
    return found


def _sentences(line: str, *, listed: bool) -> list[Piece]:
    pieces: list[str] = []
    for piece in _END.split(line):
        if pieces and _ABBREVIATED.search(pieces[-1][-8:]):
            pieces[-1] = f"{pieces[-1]} {piece}"
        elif piece and piece.strip():
            pieces.append(piece.strip())
    return [
        Piece(part, "said", listed or number > 0)
        for piece in pieces
        for number, item in enumerate(_items(piece))
        for part in _cut(item)
    ]


def _items(piece: str) -> list[str]:
    """A long enumeration as its items."""
    if len(piece) <= _LONG:
        return [_MARKER.sub("", piece) or piece]
    return [item for each in _ITEM.split(piece) if (item := _MARKER.sub("", each.strip(" ;")))]


def _cut(piece: str) -> list[str]:
    """A sentence without end is cut where a space or a comma allows it."""
    parts: list[str] = []
    while len(piece) > SENTENCE_CHARS:
        at = max(piece.rfind(sign, SENTENCE_CHARS // 2, SENTENCE_CHARS) for sign in (" ", "，", ","))
        at = at + 1 if at > 0 else SENTENCE_CHARS
        parts.append(piece[:at].strip())
        piece = piece[at:]
    return [*parts, piece.strip()] if piece.strip() else parts


def words_of(text: str) -> frozenset[str]:
    """The words of a text in lower case; of a script without spaces, each pair of signs.

    >>> sorted(words_of("Deploy 到生产"))
    ['deploy', '到生', '生产']
    """
    lower = text.lower()
    words = _WORD.findall(lower)
    if text.isascii():
        return frozenset(words)
    for run in _HAN_RUN.findall(lower):
        words += [run[at : at + 2] for at in range(max(1, len(run) - 1))]
    words += [word for word in _OTHER_WORD.findall(lower) if not word.isascii() and not _HAN_RUN.search(word)]
    return frozenset(words)


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """How much of the smaller set of words is in the larger one, if it is not much smaller."""
    smaller = min(len(one), len(other))
    return len(one & other) / (smaller + 0.5 * abs(len(one) - len(other))) if smaller else 0.0
