"""Patterns of words, with the words that must be there before a pattern is tried."""

import re
from collections.abc import Sequence
from typing import NamedTuple


class Gated(NamedTuple):
    """A pattern and its gate: a sentence with none of these words cannot match, and most sentences have none."""

    gate: frozenset[str]
    pattern: re.Pattern[str]


class Gates:
    """Finds the patterns whose gates a sentence opens in the time of its words, however many patterns there are."""

    def __init__(self, *groups: Sequence[Gated]) -> None:
        self._groups = len(groups)
        self._patterns = [(number, each.pattern) for number, group in enumerate(groups) for each in group]
        self._opened: dict[str, list[int]] = {}
        for place, each in enumerate(each for group in groups for each in group):
            for word in each.gate:
                self._opened.setdefault(word, []).append(place)
        self.words = frozenset(self._opened)

    def opened(self, words: frozenset[str]) -> list[list[re.Pattern[str]]]:
        """The patterns worth trying, of each group in their order."""
        opened: list[list[re.Pattern[str]]] = [[] for _ in range(self._groups)]
        for place in sorted({place for word in words & self.words for place in self._opened[word]}):
            number, pattern = self._patterns[place]
            opened[number].append(pattern)
        return opened


def phrase(pattern: str) -> re.Pattern[str]:
    """A pattern of words; a space stands for a gap, which may hold the signs of emphasis.

    The apostrophe of "don't" and "I'm" may be missing.

    >>> bool(phrase("never again").search("**never** again"))
    True
    >>> bool(phrase("i don't").search("i dont"))
    True
    """
    for short in ("n't", "i'm", "i've"):
        pattern = pattern.replace(short, short.replace("'", "'?"))
    return re.compile(pattern.replace(" ?", "[\\x20*]{0,4}").replace(" ", "[ *]{1,4}"))


def any_of(words: str) -> str:
    """The pattern for one of several phrases, which stand one per line or, on one line, apart by a slash.

    >>> any_of("a lot / a bit")
    '(?:a lot|a bit)'
    """
    return f"(?:{'|'.join(each.strip() for line in words.splitlines() for each in line.split('/') if each.strip())})"


def word_set(words: str) -> frozenset[str]:
    """The words, also as they are written without an apostrophe."""
    return frozenset(each for word in words.split() for each in (word, word.replace("n't", "nt").replace("i'm", "im")))


def gated(gate: str, pattern: str | re.Pattern[str]) -> Gated:
    return Gated(word_set(gate), phrase(pattern) if isinstance(pattern, str) else pattern)
