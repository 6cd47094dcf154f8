"""Which sentences say most, by the static vectors: near the heart of the conversation, far from each other."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.text.sentences import Sentence, likeness

if TYPE_CHECKING:
    import numpy as np

Embed = Callable[[Sequence[str]], "np.ndarray[Any, Any]"]

POOL = 260
"""Sentences that get a vector: those of the highest first weight."""
_TEXT_CHARS = 300
_SAME = 0.93
_ALIKE = 0.75


class Space:
    """The vectors of one conversation."""

    def __init__(
        self, sentences: Sequence[Sentence], others: Sequence[str], embed: Embed | None, yield_cpu: Callable[[], None]
    ) -> None:
        self.yield_cpu = yield_cpu
        pool = sorted(sentences, key=lambda each: (-each.weight, each.place))[:POOL]
        texts: dict[str, int] = {}
        for sentence in pool:
            sentence.row = texts.setdefault(sentence.text[:_TEXT_CHARS], len(texts))
        rows = [texts.setdefault(text, len(texts)) for text in others]
        self._alike: Any = None
        self.others: list[float] = [0.0] * len(others)
        if not texts or embed is None:
            return
        vectors = embed(list(texts))
        self._alike = vectors @ vectors.T
        weights = [0.0] * len(texts)
        for sentence in pool:
            weights[sentence.row] += sentence.weight
        # Likeness to the weighted centre is the weighted mean of the likeness to each.
        towards = _scaled(self._alike.dot(_row_like(self._alike, weights)).tolist())
        for sentence in pool:
            sentence.centrality = towards[sentence.row]
        self.others = [towards[row] for row in rows]

    def likeness(self, one: Sentence, other: Sentence) -> float:
        """1 for the same, by words or by vectors, whichever sees more in common."""
        by_words = likeness(one.words, other.words)
        if self._alike is None or one.row < 0 or other.row < 0:
            return by_words
        return max(by_words, float(self._alike[one.row, other.row]))

    def same(self, one: Sentence, other: Sentence) -> bool:
        if likeness(one.words, other.words) >= _ALIKE:
            return {each.text for each in one.literals} == {each.text for each in other.literals}
        return self.likeness(one, other) >= _SAME and {each.text for each in one.literals} == {
            each.text for each in other.literals
        }


def _row_like(matrix: Any, values: list[float]) -> Any:
    """The values as a row of the matrix' own type."""
    row = matrix[0].copy()
    row[:] = values
    return row


def _scaled(values: list[float]) -> list[float]:
    """Between 0 and 1; all 0 where nothing differs."""
    low, high = min(values), max(values)
    if not high - low > 1e-9:  # noqa: PLR2004 - also where a vector is not a number
        return [0.0] * len(values)
    return [round((value - low) / (high - low), 4) for value in values]


def spread(
    candidates: Sequence[tuple[Sentence, float]], count: int, space: Space, against: float = 0.6
) -> list[tuple[Sentence, float]]:
    """The best candidates by weight, each worth less the more it repeats one already chosen."""
    left = sorted(candidates, key=lambda each: (-each[1], each[0].place))[: 6 * count + 20]
    repeats = [0.0] * len(left)
    open_ = set(range(len(left)))
    chosen: list[tuple[Sentence, float]] = []
    while open_ and len(chosen) < count:
        space.yield_cpu()
        at = max(open_, key=lambda index: (left[index][1] * (1 - against * repeats[index]), -index))
        open_.remove(at)
        sentence, weight = left[at]
        chosen.append((sentence, weight * (1 - against * repeats[at])))
        for index in tuple(open_):
            other = left[index][0]
            if space.same(sentence, other):
                open_.remove(index)
            else:
                repeats[index] = max(repeats[index], min(1.0, space.likeness(sentence, other)))
    return chosen
