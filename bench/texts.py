"""Random texts with a natural word distribution: few words are frequent, most are rare."""

import random
from itertools import accumulate

_SYLLABLES = [consonant + vowel for consonant in "bdfghklmnprstvz" for vowel in ("a", "e", "i", "o", "u", "ea", "or")]
_ENDINGS = ["", "", "", "", "s", "ed", "ing", "er", "ly", "ation"]


class Texts:
    """A seeded source of texts of about `chars` characters."""

    def __init__(self, seed: int, chars: int = 240, vocabulary: int = 20_000) -> None:
        self._random = random.Random(seed)
        self._chars = chars
        self._words = [self._word() for _ in range(vocabulary)]
        # Zipf distribution: the frequency of the word of rank r is proportional to 1/r.
        self._weights = list(accumulate(1 / rank for rank in range(1, vocabulary + 1)))

    def one(self) -> str:
        words = self._random.choices(self._words, cum_weights=self._weights, k=self._chars // 6)
        return " ".join(words)[: self._chars]

    def frequent(self, count: int) -> list[str]:
        """Return the most frequent words."""
        return self._words[:count]

    def several(self, count: int) -> list[str]:
        return [self.one() for _ in range(count)]

    def _word(self) -> str:
        stem = "".join(self._random.choices(_SYLLABLES, k=self._random.choice((1, 2, 2, 3))))
        return stem + self._random.choice(_ENDINGS)
