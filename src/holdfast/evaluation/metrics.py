"""Measures of ranked results. Pure functions.

The headline, R@k for turns and S@k for sessions, is `share`: the share of a question's evidence that is among the first
k results, as a mean over questions. This is recall as information retrieval defines it. `any` counts the questions with
at least one piece of evidence among them, and `all` those with every piece; published figures may use either.
"""

import math
from collections.abc import Collection, Iterable, Sequence

from holdfast.model.base import WireStruct

CUTOFFS = (1, 3, 5, 10, 20)
NDCG_CUTOFF = 10


class Scores(WireStruct, frozen=True, kw_only=True):
    """The measures of one question, or their means over several."""

    share: dict[int, float]
    """By cutoff: the share of the evidence that is among the first k results."""
    any: dict[int, float]
    all: dict[int, float]
    ndcg: float
    """At 10; every piece of evidence has the same gain."""
    mrr: float
    """1 / the rank of the first evidence, or 0 if none was found."""


def score_ranking(ranked: Iterable[str], relevant: Collection[str]) -> Scores:
    """Score ranked results by the relevant ones. A result that occurs again is counted once, at its first place.

    >>> score_ranking(["b", "a", "c"], {"a", "d"}).share
    {1: 0.0, 3: 0.5, 5: 0.5, 10: 0.5, 20: 0.5}
    """
    results = distinct(ranked)
    found = [result in relevant for result in results]
    total = len(set(relevant))
    if total == 0:
        raise ValueError("a question without evidence cannot be scored")
    counts = {k: sum(found[:k]) for k in CUTOFFS}
    return Scores(
        share={k: count / total for k, count in counts.items()},
        any={k: float(count > 0) for k, count in counts.items()},
        all={k: float(count == total) for k, count in counts.items()},
        ndcg=_gain(found[:NDCG_CUTOFF]) / _gain([True] * min(total, NDCG_CUTOFF)),
        mrr=1 / (found.index(True) + 1) if True in found else 0.0,
    )


def mean_scores(scores: Sequence[Scores]) -> Scores:
    """Return the mean of each measure over questions."""
    if not scores:
        raise ValueError("there are no questions")
    return Scores(
        share={k: _mean([each.share[k] for each in scores]) for k in CUTOFFS},
        any={k: _mean([each.any[k] for each in scores]) for k in CUTOFFS},
        all={k: _mean([each.all[k] for each in scores]) for k in CUTOFFS},
        ndcg=_mean([each.ndcg for each in scores]),
        mrr=_mean([each.mrr for each in scores]),
    )


def rank_of_first(ranked: Iterable[str], relevant: Collection[str]) -> int | None:
    """Return the rank of the first relevant result, from 1 on."""
    return next((rank for rank, result in enumerate(distinct(ranked), 1) if result in relevant), None)


def distinct(items: Iterable[str]) -> list[str]:
    """Return the items without repetition, in order."""
    return list(dict.fromkeys(items))


def _gain(found: Sequence[bool]) -> float:
    return sum(1 / math.log2(rank + 1) for rank, is_relevant in enumerate(found, 1) if is_relevant)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
