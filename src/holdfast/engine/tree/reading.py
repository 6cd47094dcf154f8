"""Reading a part of a file: some lines, or some characters of them, and never more than fits in one result."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec

from holdfast.errors import TooLargeError

MAX_LINES = 10_000
"""Largest number of lines that one read returns, unless it limits the characters."""
MAX_CHARS = 64_000_000
"""Largest number of characters that one read returns."""
_COUNTED_CHARS = 65_536

_encode = msgspec.json.Encoder().encode


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a file that a caller asks for: some of its lines, then some characters of these lines."""

    offset: int = 0
    limit: int | None = None
    """The number of lines; None for all."""
    char_offset: int = 0
    char_limit: int | None = None
    """The number of characters; None for all."""


def select_from_text(uri: str, text: str, selection: Selection) -> str:
    r"""Return the selected part of a text. Only a newline ends a line.

    >>> select_from_text("viking://x", "one\ntwo\nthree", Selection(offset=1, limit=1))
    'two\n'
    >>> select_from_text("viking://x", "one\ntwo\nthree", Selection(offset=1, char_offset=2, char_limit=4))
    'o\nth'
    """
    start = _skip_lines(text, 0, selection.offset)
    end = len(text) if selection.limit is None else _skip_lines(text, start, selection.limit)
    start = min(start + selection.char_offset, end)
    if selection.char_limit is not None:
        return text[start : min(end, start + selection.char_limit)]
    check_size(uri, text.count("\n", start, end), end - start)
    return text[start:end]


def select_from_lines(uri: str, lines: Iterable[str], selection: Selection) -> str:
    """Return the selected part of a file whose lines, from line `selection.offset` on, are generated one by one."""
    chosen: list[str] = []
    chars = 0
    to_skip = selection.char_offset
    for number, line in enumerate(islice(lines, selection.limit), 1):
        rest = line[to_skip:]
        to_skip -= min(to_skip, len(line))
        if selection.char_limit is None:
            check_size(uri, number, chars + len(rest))
        else:
            rest = rest[: selection.char_limit - chars]
        chosen.append(rest)
        chars += len(rest)
        if chars == selection.char_limit:
            break
    return "".join(chosen)


def document_lines(header: bytes, rows: Callable[[int], Iterator[Any]], offset: int) -> Iterator[str]:
    """Yield the lines, from line `offset` on, of a JSON object that ends in a list with one row per line.

    `rows` yields the rows of the list, from a number on. The first line is the header.
    """
    if offset == 0:
        yield f"{header.decode()}\n"
    # The row before the first one shows whether the offset is still inside of the document.
    remaining = rows(max(0, offset - 2))
    if offset > 1 and next(remaining, None) is None:
        return
    row = next(remaining, None)
    while row is not None:
        following = next(remaining, None)
        yield _encode(row).decode() + ("\n" if following is None else ",\n")
        row = following
    yield "]}\n"


def _skip_lines(text: str, start: int, count: int) -> int:
    """Return the position after `count` lines from `start` on. Whole blocks of text are skipped by counting."""
    while count > 0 and start < len(text):
        in_block = text.count("\n", start, start + _COUNTED_CHARS)
        if in_block < count:
            start, count = min(len(text), start + _COUNTED_CHARS), count - in_block
            continue
        for _ in range(count):
            start = text.index("\n", start) + 1
        return start
    return start


def check_size(uri: str, lines: int, chars: int) -> None:
    if lines > MAX_LINES or chars > MAX_CHARS:
        raise TooLargeError(
            f"{uri} is too long: one read returns at most {MAX_LINES:,} lines and {MAX_CHARS:,} characters;"
            " read it in several parts, with offset and limit, or with char_limit",
            uri=uri,
            most=MAX_LINES,
        )
