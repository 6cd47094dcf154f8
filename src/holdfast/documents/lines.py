"""The lines of a text, one after the other: a list of all lines may take ten times the memory of the text."""

from collections.abc import Iterator

MAX_SECTIONS = 50_000
"""The largest number of sections of a text. What follows belongs to the last one."""
_CHUNK_CHARS = 1 << 18


def iter_lines(text: str, start: int = 0) -> Iterator[tuple[int, str]]:
    r"""Return the position of each line, and the line without its end.

    >>> list(iter_lines("a\nb\n\nc"))
    [(0, 'a'), (2, 'b'), (4, ''), (5, 'c')]
    """
    at = start
    while at < len(text):
        end = text.rfind("\n", at, at + _CHUNK_CHARS)
        if end < 0:
            end = text.find("\n", at + _CHUNK_CHARS)
        end = len(text) if end < 0 else end
        for line in text[at:end].split("\n"):
            yield at, line
            at += len(line) + 1
