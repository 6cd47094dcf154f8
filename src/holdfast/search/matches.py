"""Chooses the documents to rank, from the places where the words of a query occur."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from holdfast.search.documents import Place

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

MAX_CANDIDATES = 400
"""How many documents are ranked."""
SEGMENT_BEFORE, SEGMENT_AFTER = 4, 3
"""A segment: the turns around a turn that usually have the same topic."""
ASSISTANT_SHARE = 0.3
"""What a match in a turn of an assistant or a tool counts for the turns around it. Such turns are long and general."""
_PREVIOUS, _NEXT, _SEGMENT, _SESSION = 0.5, 0.25, 0.5, 0.2
"""What matches around a turn count for its choice, compared to a match in it."""
_MEANING, _MEANING_AROUND = 0.4, 0.2
_NUMBER_BITS = 32
_SATURATION = 0.9


class Layout(NamedTuple):
    """Documents in the order of their logs and numbers, each once, with what is around them. Never changed."""

    places: "tuple[Array, Array]"
    """The log of each document, which is 0 if it has none, and its number."""
    positions: "Array"
    """Where each of the documents is that the layout was made of."""
    has_previous: "Array"
    """Whether the document before it is the one before it in its log."""
    segments: "tuple[Array, Array]"
    """The first position of the segment of each document, and the position after it."""
    in_log: "Array"
    log_of: "Array"
    """The index of the log of each document."""
    log_bounds: "Array"
    """Where the documents of each log begin, and the end of the last one."""

    def previous(self, values: "Array") -> "Array":
        """Return the value of the document before each, or 0."""
        shifted = np.zeros(len(values))
        shifted[1:] = values[:-1]
        return shifted * self.has_previous

    def following(self, values: "Array") -> "Array":
        shifted = np.zeros(len(values))
        shifted[:-1] = values[1:] * self.has_previous[1:]
        return shifted


def arrange(log_ids: "Array", numbers: "Array") -> Layout:
    """Arrange documents by their logs and numbers."""
    logs, codes = np.unique(log_ids, return_inverse=True)
    keys, positions = np.unique((codes.astype(np.int64) << _NUMBER_BITS) | numbers, return_inverse=True)
    log_of = keys >> _NUMBER_BITS
    ordered_logs, ordered_numbers = logs[log_of], keys & ((1 << _NUMBER_BITS) - 1)
    in_log = ordered_logs != 0
    bounds = np.searchsorted(log_of, np.arange(len(logs) + 1))
    first, last = log_of << _NUMBER_BITS, (log_of + 1) << _NUMBER_BITS
    has_previous = np.zeros(len(keys), bool)
    has_previous[1:] = (keys[1:] == keys[:-1] + 1) & in_log[1:]
    return Layout(
        places=(ordered_logs, ordered_numbers),
        positions=positions,
        has_previous=has_previous,
        segments=(
            np.searchsorted(keys, np.maximum(keys - SEGMENT_BEFORE, first)),
            np.searchsorted(keys, np.minimum(keys + SEGMENT_AFTER + 1, last)),
        ),
        in_log=in_log,
        log_of=log_of,
        log_bounds=bounds,
    )


class WordMatches(NamedTuple):
    """The documents in which a word of the query occurs."""

    documents: int
    """How many there are. If there are very many, only this is known."""
    positions: "Array"
    """Where they are in the layout."""
    is_person: "Array"
    """Whether a person wrote each, and not an assistant or a tool."""


class Candidates(NamedTuple):
    """The documents to rank, and what the matches around each say."""

    places: list[Place]
    presence: "Array"
    """A row for each with the words of the query that it has, according to the text index."""
    segment: "Array"
    """How well the turns around it match."""
    session: "Array"
    """How well its session matches."""
    idf: "Array"
    """The weight of each word of the query: rare words tell more."""


def inverse_frequency(documents: int, counts: "Array") -> "Array":
    """Return the weight of words that occur in some of the documents."""
    counts = np.minimum(counts, documents)
    return np.log1p((documents - counts + 0.5) / (counts + 0.5))


def choose(
    words: Sequence[WordMatches], documents: int, layout: Layout, cosines: "Array", closeness: "Array"
) -> Candidates:
    """Choose the documents to rank.

    `documents` is the number of documents that the caller can find. For each document of the layout, `cosines` says how
    close it is to the query in meaning, with not a number for an unknown one, and `closeness` how well who wrote it,
    and when, fit the query, in standard deviations of the rest.
    """
    counts = np.array([each.documents for each in words], dtype=np.float64)
    idf = inverse_frequency(max(documents, int(counts.max(initial=0))), counts)
    own, segment, session = _measure(words, idf, layout)
    text = own + _SEGMENT * segment + _SESSION * session
    text += _PREVIOUS * layout.previous(own) + _NEXT * layout.following(own)
    meaning = standardised(with_mean(cosines))
    around = layout.previous(meaning) + layout.following(meaning)
    order = standardised(text) + _MEANING * meaning + _MEANING_AROUND * around + closeness
    chosen = _best(order, MAX_CANDIDATES)
    log_ids, numbers = (each[chosen].tolist() for each in layout.places)
    places = [Place(*place) for place in zip(log_ids, numbers, strict=True)]
    return Candidates(places, _presence(words, chosen, len(order)), segment[chosen], session[chosen], idf)


def _measure(words: Sequence[WordMatches], idf: "Array", layout: Layout) -> "tuple[Array, Array, Array]":
    """Return how well each document, its segment and its session match."""
    count = len(layout.in_log)
    own, segment, session = np.zeros(count), np.zeros(count), np.zeros(len(layout.log_bounds) - 1)
    begin, end = layout.segments
    for (_, positions, is_person), weight in zip(words, idf.tolist(), strict=True):
        own[positions] += weight
        sums = np.zeros(count + 1)
        sums[positions + 1] = np.where(is_person, 1.0, ASSISTANT_SHARE)
        np.cumsum(sums, out=sums)
        segment += _saturated(sums[end] - sums[begin], _SATURATION, weight)
        session += _saturated(np.diff(sums[layout.log_bounds]), 2 * _SATURATION, weight)
    return own, segment * layout.in_log, session[layout.log_of] * layout.in_log


def _presence(words: Sequence[WordMatches], chosen: "Array", count: int) -> "Array":
    """Return which words of the query each of the chosen documents has."""
    presence = np.zeros((len(chosen), len(words)), bool)
    index = np.full(count, -1)
    index[chosen] = np.arange(len(chosen))
    for number, word in enumerate(words):
        at = index[word.positions]
        presence[at[at >= 0], number] = True
    return presence


def _saturated(sums: "Array", saturation: float, weight: float) -> "Array":
    saturated: Array = sums / (sums + saturation)
    saturated *= weight
    return saturated


def _best(values: "Array", count: int) -> "Array":
    """Return the positions of the highest values, in order. Of equal ones, the first are taken."""
    if len(values) <= count:
        return np.arange(len(values))
    least = np.partition(values, len(values) - count)[-count]
    better = np.flatnonzero(values > least)
    equal = np.flatnonzero(values == least)[: count - len(better)]
    return np.sort(np.concatenate([better, equal]))


def with_mean(values: "Array") -> "Array":
    """Return values, with their mean in place of what is not a number."""
    known = ~np.isnan(values)
    if known.all():
        return values
    return np.where(known, values, values[known].mean() if known.any() else 0.0)


def standardised(values: "Array", min_deviation: float = 0.0) -> "Array":
    """Return values in units of their standard deviation, or of a minimum."""
    deviation = max(values.std(), min_deviation) if len(values) else 0.0
    return (values - values.mean()) / deviation if deviation > 0 else np.zeros(len(values))
