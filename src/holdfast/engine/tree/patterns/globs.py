"""Patterns of names as regular expressions over encoded paths."""

import re

from holdfast.errors import InvalidArgumentError
from holdfast.model.uris import encode_path

MAX_NESTING = 10
ANY = "(?:[^/%\\n]|%[0-9A-F][0-9A-F])"
"""One character of a name. Some characters are encoded in a path."""
FOLDERS = f"(?:{ANY}+/)*"
MAGIC = frozenset("*?[{")


def has_magic(segment: str) -> bool:
    return bool(MAGIC & set(segment))


def translate(pattern: str) -> str:
    r"""Return the regular expression of a pattern.

    >>> translate("**/*.md") == f"^{FOLDERS}{ANY}*\\.md$"
    True
    """
    return f"^{_Translation(pattern).run()}$"


class _Translation:
    """Translates a pattern, one sign after the other."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern.strip("/")
        self._position = 0
        self._nesting = 0
        self._closing = _closing_braces(self._pattern)

    def run(self) -> str:
        parts: list[str] = []
        while self._position < len(self._pattern):
            parts.append(self._next())
        return "".join(parts)

    def _next(self) -> str:  # noqa: PLR0911 - one for each sign
        pattern, position = self._pattern, self._position
        sign = pattern[position]
        self._position += 1
        if sign == "*":
            return self._stars(position)
        if sign == "?":
            return ANY
        if sign == "[":
            return self._set(position)
        if sign == "{" and position in self._closing:
            self._nesting += 1
            if self._nesting > MAX_NESTING:
                raise InvalidArgumentError("pattern", f"has more than {MAX_NESTING} braces in one another; use fewer")
            return "(?:"
        if self._nesting and sign == ",":
            return "|"
        if self._nesting and sign == "}":
            self._nesting -= 1
            return ")"
        return "/" if sign == "/" else re.escape(_encoded(sign))

    def _stars(self, position: int) -> str:
        pattern = self._pattern
        end = position
        while pattern[end : end + 1] == "*":
            end += 1
        self._position = end
        is_whole = end - position > 1 and pattern[position - 1 : position] in {"", "/", "{", ","}
        if is_whole and pattern[end : end + 1] == "/":
            self._position = end + 1
            return FOLDERS
        if is_whole and pattern[end : end + 1] in {"", "}", ","}:
            return f"(?:{FOLDERS}{ANY}+)"
        return f"{ANY}*"

    def _set(self, position: int) -> str:
        """Translate a set such as `[a-z]`. A bracket without an end is a character as any other."""
        pattern = self._pattern
        is_negated = pattern[position + 1 : position + 2] in {"!", "^"}
        first = position + 1 + is_negated
        end = pattern.find("]", first + 1)
        if end < 0 or "/" in pattern[first:end]:
            return "\\["
        self._position = end + 1
        members = _members(pattern[first:end])
        plain = "".join(_in_class(low, high) for low, high in members)
        encoded = [_encoded(low) for low, high in members if low == high]
        if is_negated:
            return f"(?:[^{plain}/%\\n]|%[0-9A-F][0-9A-F])"
        return f"(?:{'|'.join([f'[{plain}]', *(re.escape(each) for each in encoded if each.startswith('%'))])})"


def _encoded(sign: str) -> str:
    """Return a character as it is in an encoded path."""
    return sign if sign == "." else encode_path([sign])


def _members(text: str) -> list[tuple[str, str]]:
    """Return the characters and ranges of a set, each as its first and last character."""
    members: list[tuple[str, str]] = []
    position = 0
    while position < len(text):
        is_range = text[position + 1 : position + 2] == "-" and position + 2 < len(text)
        low, high = text[position], text[position + 2] if is_range else text[position]
        if low > high:
            raise InvalidArgumentError("pattern", f"has the range {low}-{high}, which is empty; swap its ends")
        members.append((low, high))
        position += 3 if is_range else 1
    return members


def _in_class(low: str, high: str) -> str:
    return f"\\x{{{ord(low):x}}}" + ("" if low == high else f"-\\x{{{ord(high):x}}}")


def _closing_braces(pattern: str) -> dict[int, int]:
    """Return where the braces that are closed open and close."""
    opened: list[int] = []
    pairs: dict[int, int] = {}
    for position, sign in enumerate(pattern):
        if sign == "{":
            opened.append(position)
        elif sign == "}" and opened:
            pairs[opened.pop()] = position
    return pairs
