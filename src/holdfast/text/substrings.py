"""Occurrences of a string in a long text, in time that grows with the length of the text only."""

from collections.abc import Iterator

CHUNK_CHARS = 65_536
"""Characters that are folded at once. Other threads can run between two chunks."""
_EQUIVALENTS = {"İ": "i", "ı": "i", "ſ": "s", "ς": "σ", "µ": "μ", "ẞ": "ß"}  # noqa: RUF001 - letters of many scripts
"""Letters that match another one although `lower` does not map them to it, or maps them to two."""


def find_ignoring_case(text: str, searched: str) -> Iterator[int]:
    """Return where `searched` occurs in `text`, ignoring case. Occurrences do not overlap.

    A regular expression would try every position to the end of `searched`, which takes minutes for a long repetitive
    text. `str.find` does not.

    >>> list(find_ignoring_case("one Two three two", "TWO"))
    [4, 14]
    """
    folded, folded_searched = fold_case(text), fold_case(searched)
    at = folded.find(folded_searched)
    while at >= 0:
        yield at
        at = folded.find(folded_searched, at + len(folded_searched))


def fold_case(text: str) -> str:
    """Return a text of the same length in which letters that differ only in case are equal.

    >>> fold_case("Straße İN")
    'straße in'
    """
    return "".join([_fold_chunk(text[at : at + CHUNK_CHARS]) for at in range(0, len(text), CHUNK_CHARS)])


def _fold_chunk(text: str) -> str:
    if text.isascii():
        return text.lower()
    # `lower` keeps the length of every other letter. The forms of sigma that it chooses by position become one.
    for letter in ("İ", "ẞ"):
        text = text.replace(letter, _EQUIVALENTS[letter])
    text = text.lower()
    for letter, equivalent in _EQUIVALENTS.items():
        text = text.replace(letter, equivalent)
    return text
