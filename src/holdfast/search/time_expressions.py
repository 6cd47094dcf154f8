"""Times that a text names, such as "last May", "two weeks ago", "in 2023" or "昨天". Pure functions.

The same function reads documents, relative to when they were written, and queries, relative to the asker's now.
A fuzzy expression has a range: "two weeks ago" is that day and three days around it, "last month" is a calendar month.
"""

import re

from holdfast.search.times import chinese, english
from holdfast.search.times.english_words import (
    DAY_WORDS,
    MONTH_NUMBERS,
    SEASONS,
    SUFFIXES,
    TIMES_OF_DAY,
    UNITS,
    WEEKDAY_ABBREVIATIONS,
    WEEKDAY_NUMBERS,
    YEARS,
)
from holdfast.search.times.periods import day_at
from holdfast.search.times.ranges import TimeRange

__all__ = ["TRIGGERS", "TimeRange", "asks_for_time", "find_times", "has_time_words"]

MAX_CHARS = 100_000
"""Characters of a text that are read."""

TRIGGERS = frozenset(
    [
        *DAY_WORDS,
        *TIMES_OF_DAY,
        *UNITS,
        *MONTH_NUMBERS,
        *WEEKDAY_NUMBERS,
        *WEEKDAY_ABBREVIATIONS,
        *SEASONS,
        *YEARS,
        *(f"{decade}s" for decade in range(1900, 2101, 10)),
        *("q1", "q2", "q3", "q4"),
        *(f"{day}{suffix}" for day in range(1, 32) for suffix in SUFFIXES),
    ]
)
"""An English text without one of these words names no time."""

_TRIGGER_BYTES = frozenset(word.encode() for word in TRIGGERS)
_WORD_BYTES = bytes(code if chr(code).isascii() and chr(code).isalnum() else ord(" ") for code in range(256))
"""Translation table that leaves ASCII letters and digits: splitting its result is faster than a regular expression."""

_WHEN = re.compile(
    r"^\W{0,9}when\b|\b(?:and|or|since|until|till) when\b"
    r"|\bwhen(?:'s|’s| (?:did|do|does|was|were|is|are|will|has|have|had|would|am|can|could|should))\b"  # noqa: RUF001
    r"|\b(?:what|which) (?:exact )?(?:date|day|month|year|week|weekend|weekday|time|season|quarter)\b"
    r"|\bhow long (?:ago|since|has it been)\b|\bhow (?:recently|soon)\b|\bthe (?:exact )?date\b"
    r"|\bhow many (?:day|week|month|year)s (?:ago|since)\b"
    r"|什么时候|什麼時候|何时|何時|哪一?[天年日]|哪个月|几月|几号|几点|多久(?:以前|之前|前)|(?:什么|啥)(?:时间|日期)",
    re.IGNORECASE,
)


def find_times(text: str, now: int, limit: int | None = None) -> list[TimeRange]:
    """Return the times that a text names, in order and without overlap; at most `limit` of them, which is positive.

    `now` is in microseconds since 1970: when the text was written, or when the query is asked.

    >>> now = 1_683_554_160_000_000  # Monday, 8 May 2023
    >>> [(time.first_day, time.last_day) for time in find_times("We met yesterday", now)]
    [(19484, 19484)]
    """
    text = text[:MAX_CHARS]
    found: list[TimeRange] = []
    if has_time_words(text):
        found = english.find_times(text, day_at(now), limit)
    if text.isascii():
        return found
    return _without_overlap(found + chinese.find_times(text, day_at(now), limit))[:limit]


def _without_overlap(times: list[TimeRange]) -> list[TimeRange]:
    """Sort times by their places. Of two at one place, such as "2023" and "2023年", the longer one counts."""
    kept: list[TimeRange] = []
    for time in sorted(times, key=lambda time: (time.start, -time.end)):
        if not kept or time.start >= kept[-1].end:
            kept.append(time)
    return kept


def has_time_words(text: str) -> bool:
    """Whether a text has a word of an English time expression. It is a cheap check: most texts have none."""
    words = text.lower().encode("utf-8", "surrogatepass").translate(_WORD_BYTES).split()
    return not _TRIGGER_BYTES.isdisjoint(words)


def asks_for_time(query: str) -> bool:
    """Whether a query asks for a time.

    >>> asks_for_time("When did Anna move?"), asks_for_time("How did she feel when they moved?")
    (True, False)
    """
    return _WHEN.search(query) is not None
