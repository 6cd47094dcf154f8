"""The texts of YAML: plain, quoted, folded and literal ones, and lists and mappings on one line."""

import re
from typing import Any

from holdfast.errors import short_repr

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
"""Stands for a character that cannot be stored."""
_ESCAPES = {
    "0": _REPLACEMENT, "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b",
    " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
_CODE_DIGITS = {"x": 2, "u": 4, "U": 8}
_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
_HEADER = re.compile(r"[|>][-+1-9]{0,2}\Z")


class YamlError(ValueError):
    """A text is not YAML that is read here. Its message says where and why."""


def resolve(plain: str) -> str | None:
    """Return a plain text, or None if it means null."""
    return None if plain in _NULLS else plain


def closing_quote(text: str, quote: str, start: int) -> int:
    """Return the position of the quote that ends a text in quotes, or -1."""
    at = start
    while (end := text.find(quote, at)) >= 0:
        if quote == "'":
            if text[end + 1 : end + 2] != "'":
                return end
            at = end + 2
            continue
        slashes = end
        while slashes > at and text[slashes - 1] == "\\":
            slashes -= 1
        if (end - slashes) % 2 == 0:
            return end
        at = end + 1
    return -1


def unquote(text: str, quote: str, number: int) -> str:
    """Return what is between quotes, without its escapes."""
    if quote == "'":
        return text.replace("''", "'")
    if "\\" not in text:
        return text

    def escape(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] in _CODE_DIGITS and len(code) > 1:
            value = int(code[1:], 16)
            if value > 0x10FFFF:  # noqa: PLR2004 - the last character
                raise YamlError(f"line {number} has the escape \\{code}, which is no character")
            return chr(value) if value else _REPLACEMENT
        if code not in _ESCAPES:
            raise YamlError(f"line {number} has the unknown escape {short_repr(match[0])}; write \\\\ for a backslash")
        return _ESCAPES[code]

    unescaped = _ESCAPE.sub(escape, text)
    return unescaped.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")  # joins pairs of surrogates


def fold(lines: list[str]) -> str:
    """Join lines: a line break is a space, an empty line a line break."""
    pieces = [lines[0]]
    empty = 0
    for line in lines[1:]:
        if not line:
            empty += 1
            continue
        pieces += ["\n" * empty or " ", line]
        empty = 0
    if empty:  # the quote is closed at the beginning of a line
        pieces.append("\n" * (empty - 1) or " ")
    return "".join(pieces)


def block_text(header: str, lines: list[str], indent: int, number: int) -> str:
    """Return the text of `|` or `>` with the lines below it."""
    mark = header.partition(" #")[0].rstrip()
    if not _HEADER.match(mark):
        raise YamlError(f"line {number} has {short_repr(header)}; use | or >, with - or + if needed")
    digits = [int(sign) for sign in mark if sign.isdigit()]
    first = next((line for line in lines if line.strip()), "")
    width = max(indent, 0) + digits[0] if digits else len(first) - len(first.lstrip(" "))
    texts = [line[width:] if line.strip() else "" for line in lines]
    kept = len(texts)
    while kept and not texts[kept - 1]:
        kept -= 1
    text = "\n".join(texts[:kept]) if mark[0] == "|" else _folded_block(texts[:kept])
    if "+" in mark:
        return text + "\n" * (len(texts) - kept + bool(kept))
    return text if "-" in mark or not text else f"{text}\n"


def _folded_block(lines: list[str]) -> str:
    """Fold lines. Those that are indented more keep their line breaks."""
    pieces: list[str] = []
    empty, was_more = 0, True
    for line in lines:
        if not line:
            empty += 1
            continue
        is_more = line[0] in " \t"
        if pieces:
            breaks = empty + 1 if is_more or was_more else empty
            pieces.append("\n" * breaks or " ")
        else:
            pieces.append("\n" * empty)
        pieces.append(line)
        empty, was_more = 0, is_more
    return "".join(pieces)


class FlowReader:
    """A list in [] or a mapping in {}. Lines are added until it is complete."""

    def __init__(self, text: str, number: int, max_depth: int) -> None:
        self._pieces: list[str] = []
        self._number = number
        self._max_depth = max_depth
        self._open = 0
        self._quote = ""
        self._text = ""
        self._at = 0
        self.add_line(text)

    def add_line(self, line: str) -> None:
        """Add a line, and count the brackets in it."""
        previous = " "
        at = 0
        while at < len(line):
            sign = line[at]
            if self._quote:
                end = closing_quote(line, self._quote, at)
                if end < 0:
                    break
                self._quote = ""
                at = end
            elif sign in "\"'" and previous in " ,[{:":
                self._quote = sign
            elif sign in "[{":
                self._open += 1
            elif sign in "]}":
                self._open -= 1
            elif sign == "#" and previous == " ":
                line = line[:at]
                break
            previous = sign
            at += 1
        self._pieces.append(line)

    def is_complete(self) -> bool:
        return self._open <= 0 and not self._quote

    def read(self) -> Any:
        self._text = " ".join(self._pieces)
        value = self._read_value(0)
        if self._text[self._at :].strip():
            raise YamlError(f"line {self._number} goes on after its closing bracket; quote the text")
        return value

    def _error(self) -> YamlError:
        near = short_repr(self._text[self._at : self._at + 40])
        return YamlError(f"line {self._number} has a list or mapping that is not closed properly, near {near}")

    def _skip(self) -> str:
        while self._text[self._at : self._at + 1] == " ":
            self._at += 1
        return self._text[self._at : self._at + 1]

    def _read_value(self, depth: int) -> Any:
        if depth > self._max_depth:
            raise YamlError(f"line {self._number} is nested too deep; flatten it")
        sign = self._skip()
        if sign == "[":
            return self._read_list(depth)
        if sign == "{":
            return self._read_mapping(depth)
        if sign and sign in "\"'":
            return self._read_quoted(sign)
        return resolve(self._read_plain(",]}"))

    def _read_list(self, depth: int) -> list[Any]:
        self._at += 1
        items = []
        while (sign := self._skip()) != "]":
            if not sign or sign == "}":
                raise self._error()
            items.append(self._read_value(depth + 1))
            self._end_item("]")
        self._at += 1
        return items

    def _read_mapping(self, depth: int) -> dict[str, Any]:
        self._at += 1
        values: dict[str, Any] = {}
        while (sign := self._skip()) != "}":
            if not sign or sign == "]":
                raise self._error()
            key = self._read_quoted(sign) if sign in "\"'" else self._read_plain(":,}]")
            values[key] = None
            if self._skip() == ":":
                self._at += 1
                values[key] = self._read_value(depth + 1)
            self._end_item("}")
        self._at += 1
        return values

    def _end_item(self, closing: str) -> None:
        sign = self._skip()
        if sign == ",":
            self._at += 1
        elif sign != closing:
            raise self._error()

    def _read_quoted(self, quote: str) -> str:
        end = closing_quote(self._text, quote, self._at + 1)
        if end < 0:
            raise self._error()
        text = unquote(self._text[self._at + 1 : end], quote, self._number)
        self._at = end + 1
        return text

    def _read_plain(self, ends: str) -> str:
        start = self._at
        if self._text[start : start + 1] in set("&*!"):
            raise YamlError(f"line {self._number} has an anchor, an alias or a tag; quote the text")
        while self._at < len(self._text) and self._text[self._at] not in ends:
            self._at += 1
        return self._text[start : self._at].rstrip()
