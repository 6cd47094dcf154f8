"""JSON as models write it: inside prose or code fences, with a comma too many, single quotes, or the end missing."""

import re
from collections.abc import Collection
from typing import Any

import msgspec

MAX_DEPTH = 40
MAX_CHARS = 2_000_000
STARTS = 12
"""How many opening brackets are tried: prose may have some of its own."""

_QUOTES = {'"': '"', "'": "'", "\u201c": "\u201d"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_WORDS = {"true": True, "false": False, "null": None, "none": None, "undefined": None}
_GAP = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_BARE = re.compile(r"[^\s,:\[\]{}\"][^,:\[\]{}\"\n]*")
_AFTER_A_STRING = re.compile(r"\s*(?:[,:}\]]|$)|[ \t]*\n\s*[\"'{\[]")


def find_object(text: str, keys: Collection[str]) -> dict[str, Any] | None:
    """The first object in `text` that has one of the `keys`, itself or in an object that wraps it; None without one.

    >>> find_object("Sure! ```json {'topic': 'ships', 'steps': ['build', ]", {"topic"})
    {'topic': 'ships', 'steps': ['build']}
    """
    text = text[:MAX_CHARS]
    try:
        whole = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        whole = text
    if not isinstance(whole, str):
        return _with_keys(whole, keys)
    text = whole  # JSON inside a JSON string is JSON all the same
    for start in [found.start() for found in re.finditer(r"\{", text)][:STARTS]:
        try:
            found = _with_keys(_Reader(text, start).value(0), keys)
        except _TooDeepError:
            continue
        if found is not None:
            return found
    return None


def _with_keys(value: Any, keys: Collection[str]) -> dict[str, Any] | None:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, dict):
        return None
    if any(key in value for key in keys):
        return value
    inner = [one for one in value.values() if isinstance(one, dict) and any(key in one for key in keys)]
    return inner[0] if inner else None


class _TooDeepError(Exception):
    pass


class _Reader:
    """Reads one value, and takes every mistake for what was most likely meant."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._at = start

    def value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise _TooDeepError
        match self._next():
            case "{":
                return self._object(depth)
            case "[":
                return self._list(depth)
            case mark if mark in _QUOTES:
                return self._string(_QUOTES[mark])
            case _:
                return self._bare()

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self._at += 1
        while True:
            mark = self._next()
            if not mark:
                return found
            if mark == "}":
                self._at += 1
                return found
            if mark in ",]:[{":  # one too many
                self._at += 1
                continue
            key = self._string(_QUOTES[mark]) if mark in _QUOTES else str(self._bare())
            if self._next() != ":":
                continue  # a value without a name, or the text ends here
            self._at += 1
            if self._next() not in {"", "}", ","}:
                found[key] = self.value(depth + 1)

    def _list(self, depth: int) -> list[Any]:
        found: list[Any] = []
        self._at += 1
        while True:
            mark = self._next()
            if not mark or mark == "}":  # not closed: what follows belongs to the object around it
                return found
            if mark == "]":
                self._at += 1
                return found
            if mark in ",:":
                self._at += 1
                continue
            found.append(self.value(depth + 1))

    def _string(self, end: str) -> str:
        """Up to the quote that ends it: one that something follows which may follow a string."""
        text, at, pieces = self._text, self._at + 1, list[str]()
        while at < len(text):
            letter = text[at]
            if letter == "\\":
                piece, at = self._escaped(at + 1)
                pieces.append(piece)
                continue
            if letter == end and _AFTER_A_STRING.match(text, at + 1):
                at += 1
                break
            pieces.append(letter)
            at += 1
        self._at = at
        return "".join(pieces)

    def _escaped(self, at: int) -> tuple[str, int]:
        letter = self._text[at : at + 1]
        if letter != "u":
            return _ESCAPES.get(letter, letter), at + 1
        code = re.match(r"[0-9a-fA-F]{4}", self._text[at + 1 : at + 5])
        if code is None:
            return "", at + 1
        unit, after = int(code[0], 16), at + 5
        low = re.match(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})", self._text[after : after + 6])
        if 0xD800 <= unit < 0xDC00 and low:  # noqa: PLR2004 - two units make one character
            return chr(0x10000 + ((unit - 0xD800) << 10) + int(low[1], 16) - 0xDC00), after + 6
        return ("\ufffd" if 0xD800 <= unit < 0xE000 else chr(unit)), after  # noqa: PLR2004 - half a character

    def _bare(self) -> Any:
        found = _BARE.match(self._text, self._at)
        if found is None:
            self._at += 1
            return ""
        self._at = found.end()
        word = found[0].strip()
        if word.lower() in _WORDS:
            return _WORDS[word.lower()]
        try:
            return int(word)
        except ValueError:
            return word

    def _next(self) -> str:
        """The character that comes next, behind blanks and comments."""
        gap = _GAP.match(self._text, self._at)
        self._at = gap.end() if gap else self._at
        return self._text[self._at : self._at + 1]
