"""Stems of English words, so that "painted" and "paintings" match "paint". Words of other scripts are unchanged."""

import functools

MIN_LENGTH = 4
"""Shorter words are their own stems."""
_VOWELS = frozenset("aeiouy")
_KEPT_DOUBLE = frozenset("lsz")


@functools.lru_cache(100_000)
def stem(word: str) -> str:
    """Return the stem of a word in lower case.

    >>> [stem(word) for word in ["painted", "paintings", "stories", "running", "quickly", "config.yaml"]]
    ['paint', 'paint', 'story', 'run', 'quick', 'config.yaml']
    """
    if len(word) < MIN_LENGTH or not word.isascii() or not word.isalpha():
        return word
    word = _without_ending(_singular(word))
    if word.endswith("ly") and len(word) > 5:  # noqa: PLR2004
        word = word[:-2]
    return word[:-1] if word.endswith("e") and len(word) > MIN_LENGTH else word


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > MIN_LENGTH:
        return word[:-3] + "y"
    if word.endswith("sses"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _without_ending(word: str) -> str:
    """Remove the ending of a verb form."""
    if word.endswith("ied") and len(word) > MIN_LENGTH:
        return word[:-3] + "y"
    for ending in ("ed", "ing"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) > 2 and not _VOWELS.isdisjoint(rest):  # noqa: PLR2004
            is_doubled = rest[-1] == rest[-2] and rest[-1] not in _KEPT_DOUBLE
            return rest[:-1] if is_doubled else rest
    return word
