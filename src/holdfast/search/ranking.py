"""Ranks candidates: features are compared within one query, weighted, added, and mapped to a score from 0 to 1."""

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from holdfast.model.search import Reason, Signal
from holdfast.search import experiments
from holdfast.search.features import Pool, measure
from holdfast.search.matches import standardised
from holdfast.search.query import Query
from holdfast.search.terms import Vocabulary
from holdfast.search.weights import SCORE_MIDDLE, SCORE_SCALE, USE_WEIGHT, WEIGHTS, Weight

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


MIN_COMPARED = 100
"""With fewer candidates, standard deviations would say little."""
WORDS_FACTOR = 2.0
"""How much more an absolute feature counts if the words alone decide, where relative ones say nothing."""
SHORT_QUERY_WORDS, SHORT_QUERY = 2, 0.8
"""Up to so many words are a search for these words, and not a question: they decide to this degree."""
_SIGNALS: tuple[Signal, ...] = (*(weight.signal for weight in WEIGHTS), "use")


class Ranked(NamedTuple):
    position: int
    """Which candidate of the pool it is."""
    score: float
    reasons: list[Reason]


class _Standardised(NamedTuple):
    rows: "Array"
    """A row for each candidate with its features in units of their standard deviation."""
    hotness: "Array"
    strength: float
    """How well the best candidate covers the query, from 0 to 1."""


def standardise(query: Query, pool: Pool, vocabulary: Vocabulary) -> _Standardised:
    """Measure the candidates of a pool, and compare them with each other."""
    measured = measure(query, pool, vocabulary)
    columns = [_compare(measured.features[weight.feature], weight, query) for weight in WEIGHTS]
    cosines = measured.features["cosine"]
    strength = max(float(measured.coverage.max()), float(cosines.max()))
    return _Standardised(np.stack(columns, axis=1), pool.hotness, min(max(strength, 0.0), 1.0))


def _compare(values: "Array", weight: Weight, query: Query) -> "Array":
    """Return the values of a feature on its scale. A few candidates are compared with documents that match nothing."""
    missing = max(MIN_COMPARED - len(values), 0)
    words_alone = max(missing / MIN_COMPARED, SHORT_QUERY if len(query.text.split()) <= SHORT_QUERY_WORDS else 0.0)
    if weight.scale == "absolute":
        return values * (1 + WORDS_FACTOR * words_alone)
    if weight.scale == "relative":
        return standardised(values, weight.min_deviation) * (1 - words_alone)
    return standardised(np.concatenate([values, np.zeros(missing)]))[: len(values)]


def rank(query: Query, pool: Pool, vocabulary: Vocabulary, limit: int) -> list[Ranked]:
    """Return the best candidates of a pool, best first."""
    compared = standardise(query, pool, vocabulary)
    running = experiments.current.get()
    weights = running.weights if running else [weight.weight for weight in WEIGHTS]
    shares = np.hstack([compared.rows * weights, USE_WEIGHT * compared.hotness[:, None]])
    totals = shares.sum(axis=1)
    scores = compared.strength / (1 + np.exp((SCORE_MIDDLE - totals) * SCORE_SCALE))
    order = np.argsort(-totals, kind="stable")
    if running:
        running.samples.append(compared.rows[order])
    return [Ranked(int(i), float(scores[i]), _reasons(shares[i], float(scores[i]))) for i in order[:limit]]


def _reasons(shares: "Array", score: float) -> list[Reason]:
    """Divide a score among the signals that speak for the document."""
    signals: dict[Signal, float] = defaultdict(float)
    for signal, share in zip(_SIGNALS, shares.tolist(), strict=True):
        signals[signal] += share
    positive = {signal: share for signal, share in signals.items() if share > 0} or {"kind": 1.0}
    total = sum(positive.values())
    ordered: Sequence[tuple[Signal, float]] = sorted(positive.items(), key=lambda item: -item[1])
    return [Reason(signal, score * share / total) for signal, share in ordered]
