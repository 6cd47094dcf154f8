"""Reading a file of the `viking://` tree in parts of limited size."""

from collections.abc import Iterator

from holdfast.client.sync.client import Client

PART_CHARS = 1_000_000
MAX_LINES = 10_000
"""The largest number of lines that a read accepts."""


def read_parts(client: Client, uri: str, *, offset: int = 0, limit: int | None = None) -> Iterator[str]:
    """Read `limit` lines of a file from line `offset` on, or all of them, in parts of at most `PART_CHARS` characters.

    A part may end inside of a line.
    """
    line, char = offset, 0
    end = None if limit is None else offset + limit
    while end is None or line < end:
        lines = -1 if end is None else min(MAX_LINES, end - line)
        part = client.read(uri, line, lines, char_offset=char, char_limit=PART_CHARS)
        yield part
        newlines = part.count("\n")
        if len(part) < PART_CHARS and newlines != lines:
            return
        line += newlines
        char = len(part) - part.rindex("\n") - 1 if newlines else char + len(part)
