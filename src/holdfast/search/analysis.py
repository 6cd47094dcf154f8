"""What the index stores of a document: its terms, the dates in it, and whether it asks something."""

import re
from typing import NamedTuple

from holdfast.search.time_expressions import find_times
from holdfast.text.words import split_words

MAX_TERMS = 2_000
"""Terms of a document that are ranked. The text index has the words of longer documents, too."""
MAX_IDENTIFIER_CHARS = 100
MAX_DATES = 20
"""Times in a text that are stored."""
ASKS = 1
"""The flag of a document that asks something."""

_IDENTIFIER = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]++(?:[._/@:#+\-][A-Za-z0-9]++)++")


class Analysis(NamedTuple):
    words: list[str]
    """The terms in order, in lower case and without accents. An identifier is there whole and in pieces."""
    dates: list[tuple[int, int]]
    """The first and last day of each period that the text names, as days since 1970."""
    flags: int


def analyse(text: str, created_at: int) -> Analysis:
    """Analyse the text of a document that was written at `created_at`, in microseconds since 1970."""
    dates = [(time.first_day, time.last_day) for time in find_times(text, created_at, MAX_DATES)]
    return Analysis(terms_of(text), dates, ASKS if "?" in text or "？" in text else 0)  # noqa: RUF001


def terms_of(text: str) -> list[str]:
    """Return the terms of a text or of a query.

    >>> terms_of("Open config.yaml for ORD-4711")
    ['open', 'config', 'yaml', 'for', 'ord', '4711', 'config.yaml', 'ord-4711']
    """
    words = [word.lower() for word in split_words(text.replace("_", " "))]
    whole = [match[0].lower() for match in _IDENTIFIER.finditer(text) if len(match[0]) <= MAX_IDENTIFIER_CHARS]
    return (words + whole)[:MAX_TERMS]
