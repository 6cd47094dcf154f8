"""The part of YAML that front matter uses: mappings, lists, and texts of all kinds.

Every scalar is a text, and null is None. Anchors, aliases and tags are refused, so that the values are never larger
than the text. Every line is read once.
"""

from typing import Any, NamedTuple

from holdfast.errors import short_repr
from holdfast.skills import yaml_scalars
from holdfast.skills.yaml_scalars import YamlError

__all__ = ["Mapping", "YamlError", "parse_mapping"]

Mapping = dict[str, Any]
"""Values are texts, None, lists or mappings."""
MAX_DEPTH = 16
_REFUSED = {"&": "an anchor", "*": "an alias", "!": "a tag", "%": "a directive", "@": "a reserved sign", "`": "one too"}


class _Line(NamedTuple):
    indent: int
    text: str
    """Without the indentation and the spaces at its end."""
    number: int


def parse_mapping(lines: list[str]) -> tuple[Mapping, list[str]]:
    """Return the names and values of some lines, and notes about what other readers of YAML refuse."""
    reader = _Reader(lines)
    first = reader.peek()
    if first is None:
        return {}, []
    value = reader.block(first.indent, 0)
    if not isinstance(value, dict):
        raise YamlError(f"line {first.number} is not `name: value`: {short_repr(first.text)}")
    rest = reader.peek()
    if rest is not None:
        raise YamlError(f"line {rest.number} is indented less than the first line: {short_repr(rest.text)}")
    return value, reader.notes


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self._raw = ["", *lines]  # the first line is `---`, so that the numbers of lines are those of the file
        self._at = 0
        self.notes: list[str] = []

    def peek(self) -> _Line | None:
        """Return the next line that is not empty and no comment, and skip those before it."""
        while self._at < len(self._raw):
            raw = self._raw[self._at]
            text = raw.strip()
            if text and not text.startswith("#"):
                stripped = raw.lstrip(" ")
                if stripped.startswith("\t"):
                    raise YamlError(f"line {self._at + 1} is indented by a tab; use spaces")
                return _Line(len(raw) - len(stripped), text, self._at + 1)
            self._at += 1
        return None

    def block(self, indent: int, depth: int) -> Any:
        """Read the mapping, list or text that begins with the next line."""
        if depth > MAX_DEPTH:
            raise YamlError(f"line {self._at + 1} is nested deeper than {MAX_DEPTH} levels; flatten it")
        line = self.peek()
        if line is None:
            return None
        if _is_item(line.text):
            return self._list(indent, depth)
        if _split_key(line.text) is not None:
            return self._mapping(indent, depth)
        self._at += 1
        return self._scalar(line.text, indent - 1, depth, line.number)

    def _mapping(self, indent: int, depth: int) -> Mapping:
        values: Mapping = {}
        while (line := self.peek()) is not None and line.indent >= indent:
            pair = _split_key(line.text)
            if line.indent > indent or pair is None or _is_item(line.text):
                raise YamlError(f"line {line.number} is not `name: value` at the same indentation as those before")
            key, rest = pair
            if key in values:
                raise YamlError(f"line {line.number} has the name {short_repr(key)} for the second time; remove one")
            self._at += 1
            values[key] = self._value(rest, indent, depth, line.number, in_mapping=True)
        return values

    def _list(self, indent: int, depth: int) -> list[Any]:
        items = []
        while (line := self.peek()) is not None and line.indent == indent and _is_item(line.text):
            rest = line.text[1:].lstrip()
            inner = indent + len(line.text) - len(rest)
            if rest and (_is_item(rest) or (_split_key(rest) is not None and rest[0] not in "\"'[{|>")):
                self._raw[self._at] = " " * inner + rest  # an item that is itself a list or a mapping
                items.append(self.block(inner, depth + 1))
                continue
            self._at += 1
            items.append(self._value(rest, indent, depth, line.number, in_mapping=False))
        return items

    def _value(self, rest: str, indent: int, depth: int, number: int, *, in_mapping: bool) -> Any:
        """Read what follows a name or the sign of an item, on its line or below it."""
        if rest and not rest.startswith("#"):
            return self._scalar(rest, indent, depth, number)
        line = self.peek()
        if line is not None and (
            line.indent > indent or (in_mapping and line.indent == indent and _is_item(line.text))
        ):
            return self.block(line.indent, depth + 1)
        return None

    def _scalar(self, text: str, indent: int, depth: int, number: int) -> Any:
        sign = text[0]
        if sign in "|>":
            return self._block_text(text, indent, number)
        if sign in "\"'":
            return self._quoted(text, number)
        if sign in "[{":
            return self._flow(text, depth, number)
        if sign in _REFUSED:
            raise YamlError(f"line {number} has a value that begins with {sign}, {_REFUSED[sign]} in YAML; quote it")
        pieces = [self._plain(text, number)]
        empty = 0
        while self._at < len(self._raw):
            raw = self._raw[self._at]
            line = raw.strip()
            if line and len(raw) - len(raw.lstrip(" ")) <= indent:
                break
            self._at += 1
            if not line:
                empty += 1
            elif not line.startswith("#"):
                pieces.append("\n" * empty if empty else " ")
                pieces.append(self._plain(line, self._at))
                empty = 0
        return yaml_scalars.resolve("".join(pieces))

    def _plain(self, text: str, number: int) -> str:
        plain = text.partition(" #")[0].rstrip()
        if ": " in plain or plain.endswith(":"):
            self.notes.append(f"line {number} has a colon in a text without quotes; quote the text")
        return plain

    def _block_text(self, header: str, indent: int, number: int) -> str:
        lines = []
        while self._at < len(self._raw):
            raw = self._raw[self._at]
            if raw.strip() and len(raw) - len(raw.lstrip(" ")) <= indent:
                break
            lines.append(raw)
            self._at += 1
        return yaml_scalars.block_text(header, lines, indent, number)

    def _quoted(self, text: str, number: int) -> str:
        """Read a text in quotes, which may go on in the lines below."""
        lines = [text]
        while (end := yaml_scalars.closing_quote(lines[-1], text[0], 1 if len(lines) == 1 else 0)) < 0:
            if self._at >= len(self._raw):
                raise YamlError(f"the text in quotes that begins in line {number} has no closing {text[0]}")
            lines.append(self._raw[self._at].strip())
            self._at += 1
        rest = lines[-1][end + 1 :].strip()
        if rest and not rest.startswith("#"):
            raise YamlError(f"line {self._at} goes on after the closing quote: {short_repr(rest)}")
        lines[-1] = lines[-1][:end]
        lines[0] = lines[0][1:]
        return yaml_scalars.unquote(yaml_scalars.fold(lines), text[0], number)

    def _flow(self, text: str, depth: int, number: int) -> Any:
        """Read a list in [] or a mapping in {}, which may go on in the lines below."""
        flow = yaml_scalars.FlowReader(text, number, MAX_DEPTH - depth)
        while not flow.is_complete():
            if self._at >= len(self._raw):
                raise YamlError(f"the {text[0]} in line {number} is never closed")
            flow.add_line(self._raw[self._at].strip())
            self._at += 1
        return flow.read()


def _is_item(text: str) -> bool:
    return text == "-" or text.startswith("- ")


def _split_key(text: str) -> tuple[str, str] | None:
    """Return the name that a line begins with and the rest of the line, or None if there is no name."""
    if text[0] in "\"'":
        end = yaml_scalars.closing_quote(text, text[0], 1)
        after = text[end + 1 :].lstrip() if end > 0 else ""
        if not after.startswith(":") or after[1:2] not in {"", " "}:
            return None
        return yaml_scalars.unquote(text[1:end], text[0], 0), after[1:].lstrip()
    if text[0] in "[{|>&*!%@`#?" or _is_item(text):
        return None
    key, colon, rest = text.partition(": ")
    if colon:
        return key.rstrip(), rest.lstrip()
    return (text[:-1].rstrip(), "") if text.endswith(":") else None
