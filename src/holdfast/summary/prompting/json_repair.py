"""Repair of JSON in models' replies: inside prose or code fences, with extra commas, single quotes or a missing end."""

import re
from collections.abc import Collection
from typing import Any

import msgspec

from holdfast.json_documents import decode_json

MAX_DEPTH = 40
MAX_CHARS = 2_000_000
MAX_STARTS = 12
"""How many opening braces are tried, since the prose before the JSON may contain braces."""

_QUOTES = {'"': '"', "'": "'", "\u201c": "\u201d"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_CONSTANTS = {"true": True, "false": False, "null": None, "none": None, "undefined": None}
_SPACE_OR_COMMENT = re.compile(r"(?:\s|//[^\n]*)*")
_UNQUOTED = re.compile(r"[^\s,:\[\]{}\"][^,:\[\]{}\"\n]*")
_AFTER_STRING = re.compile(r"\s*(?:[,:}\]]|$)|[ \t]*\n\s*[\"'{\[]")


def find_object(text: str, keys: Collection[str]) -> dict[str, Any] | None:
    """Return the first object in `text` that has one of the `keys`, also inside another object; None without one.

    >>> find_object("Sure! ```json {'topic': 'ships', 'steps': ['build', ]", {"topic"})
    {'topic': 'ships', 'steps': ['build']}
    """
    text = text[:MAX_CHARS]
    try:
        decoded = decode_json(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        decoded = text
    if not isinstance(decoded, str):
        return _object_with_keys(decoded, keys)
    text = decoded  # the reply may be a JSON string that contains JSON
    for start in [match.start() for match in re.finditer(r"\{", text)][:MAX_STARTS]:
        try:
            found = _object_with_keys(_LenientParser(text, start).value(0), keys)
        except _TooDeepError:
            continue
        if found is not None:
            return found
    return None


def _object_with_keys(value: Any, keys: Collection[str]) -> dict[str, Any] | None:
    """Return `value`, the only item of it, or the first object in it that has one of the `keys`."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, dict):
        return None
    if any(key in value for key in keys):
        return value
    inner_objects = (inner for inner in value.values() if isinstance(inner, dict))
    return next((inner for inner in inner_objects if any(key in inner for key in keys)), None)


class _TooDeepError(Exception):
    pass


class _LenientParser:
    """Parses one value. An error is read as the valid JSON that was most likely meant."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._at = start
        self._last_comment_end = text.rfind("*/")

    def value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise _TooDeepError
        match self._peek():
            case "{":
                return self._object(depth)
            case "[":
                return self._list(depth)
            case character if character in _QUOTES:
                return self._string(_QUOTES[character])
            case _:
                return self._unquoted()

    def _object(self, depth: int) -> dict[str, Any]:
        parsed: dict[str, Any] = {}
        self._at += 1
        while True:
            character = self._peek()
            if not character:
                return parsed
            if character == "}":
                self._at += 1
                return parsed
            if character in ",]:[{":  # superfluous
                self._at += 1
                continue
            key = self._string(_QUOTES[character]) if character in _QUOTES else str(self._unquoted())
            if self._peek() != ":":
                continue  # a value without a key, or the end of the text
            self._at += 1
            if self._peek() not in {"", "}", ","}:
                parsed[key] = self.value(depth + 1)

    def _list(self, depth: int) -> list[Any]:
        parsed: list[Any] = []
        self._at += 1
        while True:
            character = self._peek()
            if not character or character == "}":  # the list is not closed; the brace ends the object around it
                return parsed
            if character == "]":
                self._at += 1
                return parsed
            if character in ",:":
                self._at += 1
                continue
            parsed.append(self.value(depth + 1))

    def _string(self, quote: str) -> str:
        """Parse a string. A quote inside it ends it only if the text after it may follow a string."""
        text, at, pieces = self._text, self._at + 1, list[str]()
        while at < len(text):
            character = text[at]
            if character == "\\":
                piece, at = self._escape(at + 1)
                pieces.append(piece)
                continue
            if character == quote and _AFTER_STRING.match(text, at + 1):
                at += 1
                break
            pieces.append(character)
            at += 1
        self._at = at
        return "".join(pieces)

    def _escape(self, at: int) -> tuple[str, int]:
        """Parse the escape sequence whose backslash is before `at`. Return its character and the position after it."""
        letter = self._text[at : at + 1]
        if letter != "u":
            return _ESCAPES.get(letter, letter), at + 1
        code = re.match(r"[0-9a-fA-F]{4}", self._text[at + 1 : at + 5])
        if code is None:
            return "", at + 1
        unit, after = int(code[0], 16), at + 5
        low = re.match(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})", self._text[after : after + 6])
        if 0xD800 <= unit < 0xDC00 and low:  # noqa: PLR2004 - a surrogate pair
            return chr(0x10000 + ((unit - 0xD800) << 10) + int(low[1], 16) - 0xDC00), after + 6
        return ("\ufffd" if 0xD800 <= unit < 0xE000 else chr(unit)), after  # noqa: PLR2004 - a lone surrogate

    def _unquoted(self) -> Any:
        match = _UNQUOTED.match(self._text, self._at)
        if match is None:
            self._at += 1
            return ""
        self._at = match.end()
        word = match[0].strip()
        if word.lower() in _CONSTANTS:
            return _CONSTANTS[word.lower()]
        try:
            return int(word)
        except ValueError:
            return word

    def _peek(self) -> str:
        """Skip spaces and comments, and return the next character without consuming it."""
        while True:
            skipped = _SPACE_OR_COMMENT.match(self._text, self._at)
            self._at = skipped.end() if skipped else self._at
            # Without the comparison, each comment that is not closed would be searched to the end of the text.
            is_comment = self._text.startswith("/*", self._at) and self._at + 2 <= self._last_comment_end
            if not is_comment:
                return self._text[self._at : self._at + 1]
            self._at = self._text.index("*/", self._at + 2) + 2
