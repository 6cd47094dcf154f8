"""The words of an English text, for the rules of time expressions."""

import re
from typing import NamedTuple

from holdfast.search.times.english_words import FUTURE, LAST, MAX_FUTURE_WORDS, NEXT, SUFFIXES, THIS
from holdfast.search.times.periods import Period

MAX_NUMBER_DIGITS = 3
MAX_GAP_CHARS = 3
_WORD = re.compile(r"[A-Za-z]+|[0-9]+")


class Found(NamedTuple):
    period: Period
    first: int
    """The first and the last word of the expression."""
    last: int


class Words:
    """The words of a text, and which of them are next to each other."""

    __slots__ = ("ends", "start", "starts", "text", "today", "words")

    def __init__(self, text: str, today: int) -> None:
        matches = list(_WORD.finditer(text))
        self.text = text
        self.today = today
        self.words = [match[0].lower() for match in matches]
        self.starts = [match.start() for match in matches]
        self.ends = [match.end() for match in matches]
        self.start = 0
        """The first word that is not part of an earlier expression."""

    def gap(self, index: int) -> str | None:
        """Return what is between a word and the next one, or None if there is no next one, or if it is far."""
        if index + 1 >= len(self.words) or self.starts[index + 1] - self.ends[index] > MAX_GAP_CHARS:
            return None
        return self.text[self.ends[index] : self.starts[index + 1]]

    def before(self, index: int) -> str:
        """Return the word before a word, or nothing if there is punctuation between them."""
        if index <= self.start:
            return ""
        gap = self.gap(index - 1)
        return self.words[index - 1] if gap is not None and (gap == "-" or gap.isspace()) else ""

    def after(self, index: int, separators: str = "") -> str:
        """Return the word after a word, or nothing if other punctuation than `separators` is between them."""
        gap = self.gap(index)
        return self.words[index + 1] if gap and not gap.strip(separators + " \t\r\n") else ""

    def suffix(self, index: int) -> int:
        """Return the index of the last word of a number, which may have a suffix such as "th"."""
        return index + 1 if self.gap(index) == "" and self.words[index + 1] in SUFFIXES else index

    def number_before(self, index: int) -> tuple[int, int] | None:
        """Return the number before a word, such as "7" or "7th of", and the index where it begins."""
        first = index - 1
        word = self.before(index)
        if word == "of":
            word, first = self.before(first), first - 1
        if word in SUFFIXES and first > self.start and self.gap(first - 1) == "":
            first -= 1
            word = self.words[first]
        return (int(word), first) if word.isdigit() and len(word) <= MAX_NUMBER_DIGITS else None

    def is_capital(self, index: int) -> bool:
        return self.text[self.starts[index]].isupper()

    def is_ahead(self, index: int) -> bool:
        """Whether the words before say that the time is in the future."""
        return not FUTURE.isdisjoint(self.words[max(self.start, index - MAX_FUTURE_WORDS) : index])

    def modifier(self, index: int) -> tuple[int, int] | None:
        """Return -1, 0 or 1 for "last", "this" or "next" before a word, and the index of that word."""
        word = self.before(index)
        if word in LAST:
            return -1, index - 2 if word == "past" and self.before(index - 1) == "this" else index - 1
        if word in THIS:
            return 0, index - 1
        return (1, index - 1) if word in NEXT else None
