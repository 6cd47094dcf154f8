r"""Builds patterns of words, and an index that selects the patterns which can match a sentence.

In the patterns of this package, `[^\x1a]` is any character outside a quote: `splitting` replaces each character of a
quote by `\x1a`.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple


class TriggeredPattern(NamedTuple):
    """A pattern and its trigger words: a sentence with none of them cannot match, and most sentences have none."""

    triggers: frozenset[str]
    pattern: re.Pattern[str]


class PatternIndex:
    """Finds the patterns that can match a sentence. The time depends on its words, not on the number of patterns."""

    def __init__(self, *groups: Sequence[TriggeredPattern]) -> None:
        self._groups = len(groups)
        self._patterns = [(number, each.pattern) for number, group in enumerate(groups) for each in group]
        self._by_word: dict[str, list[int]] = {}
        for index, each in enumerate(each for group in groups for each in group):
            for word in each.triggers:
                self._by_word.setdefault(word, []).append(index)
        self.words = frozenset(self._by_word)

    def find_candidates(self, words: frozenset[str]) -> list[list[re.Pattern[str]]]:
        """Return the patterns of each group that a sentence with these words can match, in their order."""
        candidates: list[list[re.Pattern[str]]] = [[] for _ in range(self._groups)]
        for index in sorted({index for word in words & self.words for index in self._by_word[word]}):
            group, pattern = self._patterns[index]
            candidates[group].append(pattern)
        return candidates


def phrase(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of words. A space in it also matches the asterisks of Markdown emphasis.

    The apostrophe of "don't" and "I'm" is optional.

    >>> bool(phrase("never again").search("**never** again"))
    True
    >>> bool(phrase("i don't").search("i dont"))
    True
    """
    for short in ("n't", "i'm", "i've"):
        pattern = pattern.replace(short, short.replace("'", "'?"))
    return re.compile(pattern.replace(" ?", "[\\x20*]{0,4}").replace(" ", "[ *]{1,4}"))


def any_of(words: str) -> str:
    """Return the pattern for one of several phrases, which are separated by slashes or line breaks.

    >>> any_of("a lot / a bit")
    '(?:a lot|a bit)'
    """
    return f"(?:{'|'.join(each.strip() for line in words.splitlines() for each in line.split('/') if each.strip())})"


def word_set(words: str) -> frozenset[str]:
    """Return the words, each also in its spelling without an apostrophe."""
    return frozenset(each for word in words.split() for each in (word, word.replace("n't", "nt").replace("i'm", "im")))


def triggered(triggers: str, pattern: str | re.Pattern[str]) -> TriggeredPattern:
    return TriggeredPattern(word_set(triggers), phrase(pattern) if isinstance(pattern, str) else pattern)
