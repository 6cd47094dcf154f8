"""Ranking of sentences by vectors: central to the conversation, and different from each other."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.text.sentences import Sentence, word_similarity

if TYPE_CHECKING:
    import numpy as np

Embed = Callable[[Sequence[str]], "np.ndarray[Any, Any]"]

MAX_SENTENCES = 260
"""How many sentences get a vector: those with the highest weight."""
_MAX_TEXT_CHARS = 300
_SAME_BY_VECTORS = 0.93
_SAME_BY_WORDS = 0.75
"""From this similarity, two sentences with the same literals state the same."""


class SentenceVectors:
    """Similarities between the sentences and concepts of a conversation."""

    def __init__(
        self, sentences: Sequence[Sentence], concepts: Sequence[str], embed: Embed | None, yield_cpu: Callable[[], None]
    ) -> None:
        """Set `vector_row` and `centrality` of the sentences with the highest weight."""
        self.yield_cpu = yield_cpu
        heaviest = sorted(sentences, key=lambda sentence: (-sentence.weight, sentence.message_index))[:MAX_SENTENCES]
        texts: dict[str, int] = {}
        for sentence in heaviest:
            sentence.vector_row = texts.setdefault(sentence.text[:_MAX_TEXT_CHARS], len(texts))
        concept_rows = [texts.setdefault(text, len(texts)) for text in concepts]
        self._similarities: Any = None
        self.concept_centrality: list[float] = [0.0] * len(concepts)
        if not texts or embed is None:
            return
        vectors = embed(list(texts))
        self._similarities = vectors @ vectors.T
        weights = [0.0] * len(texts)
        for sentence in heaviest:
            weights[sentence.vector_row] += sentence.weight
        # The similarity to the weighted centre is the weighted mean of the similarities to all texts.
        centrality = _scale(self._similarities.dot(_as_row(self._similarities, weights)).tolist())
        for sentence in heaviest:
            sentence.centrality = centrality[sentence.vector_row]
        self.concept_centrality = [centrality[row] for row in concept_rows]

    def similarity(self, one: Sentence, other: Sentence) -> float:
        """Return the similarity by words or by vectors, whichever is higher. Equal sentences have 1."""
        by_words = word_similarity(one.words, other.words)
        if self._similarities is None or one.vector_row < 0 or other.vector_row < 0:
            return by_words
        return max(by_words, float(self._similarities[one.vector_row, other.vector_row]))

    def is_same(self, one: Sentence, other: Sentence) -> bool:
        """Return whether two sentences state the same: they are similar and have the same literals."""
        if word_similarity(one.words, other.words) >= _SAME_BY_WORDS:
            return _have_same_literals(one, other)
        return self.similarity(one, other) >= _SAME_BY_VECTORS and _have_same_literals(one, other)


def _have_same_literals(one: Sentence, other: Sentence) -> bool:
    return {literal.text for literal in one.literals} == {literal.text for literal in other.literals}


def _as_row(matrix: Any, values: list[float]) -> Any:
    """Return the values as a vector of the matrix' type, without importing numpy, which only the embedder loads."""
    row = matrix[0].copy()
    row[:] = values
    return row


def _scale(values: list[float]) -> list[float]:
    """Scale values to 0 to 1. All are 0 if they do not differ."""
    low, high = min(values), max(values)
    if not high - low > 1e-9:  # noqa: PLR2004 - also if a value is not a number
        return [0.0] * len(values)
    return [round((value - low) / (high - low), 4) for value in values]


def select_diverse(
    candidates: Sequence[tuple[Sentence, float]], count: int, vectors: SentenceVectors, penalty: float = 0.6
) -> list[tuple[Sentence, float]]:
    """Select the sentences with the highest weights. A sentence loses weight if it is similar to a selected one."""
    ranked = sorted(candidates, key=lambda candidate: (-candidate[1], candidate[0].message_index))[: 6 * count + 20]
    max_similarity = [0.0] * len(ranked)
    remaining = set(range(len(ranked)))
    selected: list[tuple[Sentence, float]] = []
    while remaining and len(selected) < count:
        vectors.yield_cpu()
        best = max(remaining, key=lambda index: (ranked[index][1] * (1 - penalty * max_similarity[index]), -index))
        remaining.remove(best)
        sentence, weight = ranked[best]
        selected.append((sentence, weight * (1 - penalty * max_similarity[best])))
        for index in tuple(remaining):
            other = ranked[index][0]
            if vectors.is_same(sentence, other):
                remaining.remove(index)
            else:
                max_similarity[index] = max(max_similarity[index], min(1.0, vectors.similarity(sentence, other)))
    return selected
