"""How much the uses of a document raise it."""

from holdfast.search.times.periods import MICROSECONDS_PER_DAY

HALF_LIFE_DAYS = 7.0
"""After this time without a use, a document is half as hot."""


def hotness(active_count: int, last_used_at: int, now: int) -> float:
    """Return how hot a document is, from 0 to 1: more by more uses, and less the longer the last one is ago.

    `active_count` is the number of commits whose sessions used it. Times are in microseconds.

    >>> day = 86_400_000_000
    >>> hotness(1, 0, 0), hotness(3, 0, 0), hotness(1, 0, 7 * day), hotness(0, 0, 0)
    (0.5, 0.75, 0.25, 0.0)
    """
    age_days = max(0, now - last_used_at) / MICROSECONDS_PER_DAY
    return float(max(0, active_count) / (max(0, active_count) + 1) * 0.5 ** min(age_days / HALF_LIFE_DAYS, 1_000.0))
