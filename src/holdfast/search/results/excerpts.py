"""Excerpts of long texts: the part around the longest word of the query that occurs."""

from collections.abc import Iterable

MARK = "[...]"
"""Stands for the text that an excerpt leaves out."""
MAX_WORDS = 20
"""How many words of a query are looked for."""
_BEFORE_DIVISOR = 4
"""A quarter of an excerpt comes before the word."""


def excerpt(text: str, words: Iterable[str], max_chars: int) -> str:
    """Return at most `max_chars` of a text, and marks for what is left out: around its longest word of a query.

    >>> excerpt("The ferry leaves at nine. " * 40 + "The code is 4711. " + "Bring water. " * 40, ["code"], 40)
    '[...] The code is 4711. Bring water. [...]'
    """
    if len(text) <= max_chars:
        return text
    lowered = text.lower()
    longest = sorted({word.lower() for word in words if word}, key=lambda word: (-len(word), word))[:MAX_WORDS]
    found = [(word, at) for word in longest if (at := lowered.find(word)) >= 0]
    at = max(found, key=lambda each: (len(each[0]), -each[1]))[1] if found else 0
    first = max(0, min(at - max_chars // _BEFORE_DIVISOR, len(text) - max_chars))
    last = first + max_chars
    if first:
        first = _next_space(text, first, at)
    if last < len(text):
        last = text.rfind(" ", max(at + 1, last - 40), last) + 1 or last
    kept = text[first:last].strip()
    return f"{MARK + ' ' if first else ''}{kept}{' ' + MARK if last < len(text) else ''}"


def _next_space(text: str, first: int, last: int) -> int:
    """Return the beginning of the next word, so that none is cut."""
    space = text.find(" ", first, min(last, first + 40))
    return first if space < 0 else space + 1
