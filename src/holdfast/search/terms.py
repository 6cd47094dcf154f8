"""The words of documents as numbers, each with its stem and its vector, so that numpy can compare them."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from holdfast.search.stems import stem
from holdfast.search.stop_words import STOP_WORDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

WordVectors = Callable[[Sequence[str]], "Array"]
"""Returns a matrix with a vector of length one, or zeros, for each word."""

MAX_WORDS = 200_000
"""Words that a vocabulary remembers. A full one is replaced by an empty one."""
MAX_TERMS = 4_000_000
"""Terms of documents that a vocabulary remembers."""
MAX_DOCUMENT_TERMS = 250
"""Different words of a document that are compared with those of a query: the first ones."""
PADDING = 0
"""The number of a word that matches nothing. Every document has it, so that none is empty."""
_MIN_COSINE = 0.1
"""Two words with a lower cosine do not match."""


class Terms(NamedTuple):
    """The terms of several documents, one document after the other."""

    words: "Array"
    counts: "Array"
    starts: "Array"
    """Where the terms of each document begin."""
    lengths: "Array"
    """The number of words of each document."""


class Vocabulary:
    """Numbers words, and remembers the stems and vectors of words and the terms of documents. Not thread-safe."""

    def __init__(self, word_vectors: WordVectors) -> None:
        self._word_vectors = word_vectors
        self._clear()

    def _clear(self) -> None:
        self._numbers: dict[str, int] = {"": PADDING}
        self._stem_numbers: dict[str, int] = {"": PADDING}
        self._stems = np.zeros(1024, np.int64)
        self._is_stop_word = np.zeros(1024, bool)
        self._is_stop_word[PADDING] = True
        self._vectors = np.zeros((1024, 1), np.float32)
        self._with_vectors = 1
        self._documents: dict[str, tuple[Array, Array, int]] = {}
        self._term_count = 0

    def terms_of(self, texts: Sequence[str]) -> Terms:
        """Return the terms of documents. Each text has the terms of one, separated by spaces."""
        if len(self._numbers) > MAX_WORDS or self._term_count > MAX_TERMS:
            self._clear()
        known = self._documents
        found = [known.get(text) or self._add_document(text) for text in texts]
        sizes = np.array([len(each[0]) for each in found])
        return Terms(
            np.concatenate([each[0] for each in found]),
            np.concatenate([each[1] for each in found]),
            np.concatenate([[0], np.cumsum(sizes)[:-1]]),
            np.array([each[2] for each in found], dtype=np.float64),
        )

    def similarities(self, query: Sequence[str], words: "Array") -> "Array":
        """Return how well each word of a query matches each of the numbered words, from 0 to 1.

        Words with the same stem match by 1, others by their vectors. Numbers and identifiers match only themselves.
        """
        numbers = np.array([self._number(word) for word in query], dtype=np.int64)
        self._add_vectors()
        # A product of matrices would start threads, which costs more than it gains for so few words.
        cosines = np.vecdot(self._vectors[words][None], self._vectors[numbers][:, None])
        matches: Array = np.square(np.clip((cosines - _MIN_COSINE) / (1 - _MIN_COSINE), 0, 1))
        matches[[not word.isalpha() for word in query]] = 0
        matches[self._stems[numbers][:, None] == self._stems[words][None, :]] = 1
        matches[:, self._is_stop_word[words]] = 0
        # A query of stop words alone matches them.
        matches[numbers[:, None] == words[None, :]] = 1
        matches[:, words == PADDING] = 0
        return matches

    def _add_document(self, text: str) -> "tuple[Array, Array, int]":
        words = text.split()
        counts: dict[int, int] = {PADDING: 0}
        for word in words:
            number = self._numbers.get(word)
            if number is None and len(counts) <= MAX_DOCUMENT_TERMS:
                number = self._number(word)
            if number in counts or (number is not None and len(counts) <= MAX_DOCUMENT_TERMS):
                counts[number] = counts.get(number, 0) + 1
        self._term_count += len(counts)
        document = (
            np.fromiter(counts.keys(), np.int64, len(counts)),
            np.fromiter(counts.values(), np.float32, len(counts)),
            len(words),
        )
        self._documents[text] = document
        return document

    def _number(self, word: str) -> int:
        number = self._numbers.get(word)
        if number is None:
            number = self._numbers[word] = len(self._numbers)
            if number >= len(self._stems):
                self._stems = np.concatenate([self._stems, np.zeros_like(self._stems)])
                self._is_stop_word = np.concatenate([self._is_stop_word, np.zeros_like(self._is_stop_word)])
            word_stem = stem(word)
            self._stems[number] = self._stem_numbers.setdefault(word_stem, len(self._stem_numbers))
            self._is_stop_word[number] = word in STOP_WORDS
        return number

    def _add_vectors(self) -> None:
        """Look up the vectors of all words that have none yet."""
        count = len(self._numbers)
        if self._with_vectors == count:
            return
        new = self._word_vectors(list(self._numbers)[self._with_vectors :])
        if self._vectors.shape[1] != new.shape[1]:
            self._vectors = np.zeros((len(self._vectors), new.shape[1]), np.float32)
        if count > len(self._vectors):
            grown = np.zeros((len(self._stems), new.shape[1]), np.float32)
            grown[: len(self._vectors)] = self._vectors
            self._vectors = grown
        self._vectors[self._with_vectors : count] = new
        self._with_vectors = count
