"""Chooses the documents to rank, from the places where the words of a query occur."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from holdfast.search.documents import Place

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

MAX_CANDIDATES = 400
"""How many documents are ranked because of their words, and at most as many more because of their meaning."""
SEGMENT_BEFORE, SEGMENT_AFTER = 4, 3
"""A segment: the turns around a turn that usually have the same topic."""
ASSISTANT_SHARE = 0.3
"""What a match in a turn of an assistant or a tool counts for the turns around it. Such turns are long and general."""
_PREVIOUS, _NEXT, _SEGMENT, _SESSION = 0.5, 0.25, 0.5, 0.2
"""What matches around a turn count for its choice, compared to a match in it."""
_MEANING, _MEANING_AROUND = 0.4, 0.2
_NUMBER_BITS = 32
_SATURATION = 0.9


class WordMatches(NamedTuple):
    """The documents in which a word of the query occurs."""

    log_ids: "Array"
    """0 for a document that is not part of a log."""
    numbers: "Array"
    is_person: "Array"
    """Whether a person wrote it, and not an assistant or a tool."""


class Universe(NamedTuple):
    """Documents that may be chosen without a match of words, such as all documents with a vector."""

    log_ids: "Array"
    numbers: "Array"
    cosines: "Array"
    """How close each is to the query in meaning."""
    closeness: "Array"
    """How well who wrote it, and when, fit the query, in standard deviations of the rest."""


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


def choose(words: Sequence[WordMatches], documents: int, universe: Universe) -> Candidates:
    """Choose the documents to rank.

    `documents` is the number of documents that the caller can find.
    """
    counts = np.array([len(each.numbers) for each in words], dtype=np.float64)
    idf = inverse_frequency(max(documents, int(counts.max(initial=0))), counts)
    matched = _Matched(words, universe.log_ids)
    own = np.ceil(matched.presence) @ idf
    in_log = matched.keys[matched.is_in_log(matched.keys)]
    known = matched.encode(universe.log_ids, universe.numbers)
    keys = np.unique(np.concatenate([matched.keys, in_log + 1, in_log - 1, known]))
    segment, session = matched.around(keys, idf)
    text = _values_at(matched.keys, own, keys) + _SEGMENT * segment + _SESSION * session
    text += _PREVIOUS * _values_at(matched.keys, own, keys - 1) + _NEXT * _values_at(matched.keys, own, keys + 1)
    order = standardised(text) + _at_keys(keys, known, universe)
    chosen = np.sort(np.argsort(-order, kind="stable")[:MAX_CANDIDATES])
    presence = matched.presence_at(keys[chosen])
    return Candidates(matched.to_places(keys[chosen]), presence, segment[chosen], session[chosen], idf)


def _at_keys(keys: "Array", known: "Array", universe: Universe) -> "Array":
    """Return what speaks for each key beside words. Of an unknown document nothing is known."""
    order = np.argsort(known)
    cosines = standardised(universe.cosines)
    values = _MEANING * cosines[order] + universe.closeness[order]
    around = _values_at(known[order], cosines[order], known[order] - 1)
    around += _values_at(known[order], cosines[order], known[order] + 1)
    return _values_at(known[order], values + _MEANING_AROUND * around, keys)


def standardised(values: "Array", min_deviation: float = 0.0) -> "Array":
    """Return values in units of their standard deviation, or of a minimum."""
    deviation = max(values.std(), min_deviation) if len(values) else 0.0
    return (values - values.mean()) / deviation if deviation > 0 else np.zeros(len(values))


class _Matched:
    """The matches of all words, ordered by log and number."""

    def __init__(self, words: Sequence[WordMatches], other_logs: "Array") -> None:
        log_ids = np.concatenate([each.log_ids for each in words] or [np.zeros(0, np.int64)])
        self._logs = np.unique(np.concatenate([log_ids, other_logs]))
        keys = self.encode(log_ids, np.concatenate([each.numbers for each in words] or [np.zeros(0, np.int64)]))
        is_person = np.concatenate([each.is_person for each in words] or [np.zeros(0, bool)])
        word_of = np.repeat(np.arange(len(words)), [len(each.numbers) for each in words])
        self.keys, row = np.unique(keys, return_inverse=True)
        self.presence = np.zeros((len(self.keys), len(words)))
        self.presence[row, word_of] = np.where(is_person, 1.0, ASSISTANT_SHARE)
        self._sums = np.concatenate([np.zeros((1, len(words))), np.cumsum(self.presence, axis=0)])

    def around(self, keys: "Array", idf: "Array") -> "tuple[Array, Array]":
        """Return how well the segment and the session of each key match."""
        log = keys >> _NUMBER_BITS
        first, last = log << _NUMBER_BITS, (log + 1) << _NUMBER_BITS
        begin = np.searchsorted(self.keys, np.maximum(keys - SEGMENT_BEFORE, first))
        end = np.searchsorted(self.keys, np.minimum(keys + SEGMENT_AFTER + 1, last))
        segment = self._sums[end] - self._sums[begin]
        session = self._sums[np.searchsorted(self.keys, last)] - self._sums[np.searchsorted(self.keys, first)]
        in_log = self.is_in_log(keys).astype(np.float64)
        return (
            in_log * ((segment / (segment + _SATURATION)) @ idf),
            in_log * ((session / (session + 2 * _SATURATION)) @ idf),
        )

    def is_in_log(self, keys: "Array") -> "Array":
        """Whether the documents are in a log, and so have documents before and after them."""
        in_log: Array = self._logs[keys >> _NUMBER_BITS] != 0
        return in_log

    def presence_at(self, keys: "Array") -> "Array":
        """Return which words of the query each document has."""
        if len(self.keys) == 0:
            return np.zeros((len(keys), self.presence.shape[1]), bool)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        present: Array = (self.presence[at] > 0) & (self.keys[at] == keys)[:, None]
        return present

    def to_places(self, keys: "Array") -> list[Place]:
        log_ids = self._logs[keys >> _NUMBER_BITS].tolist()
        numbers = (keys & ((1 << _NUMBER_BITS) - 1)).tolist()
        return [Place(*place) for place in zip(log_ids, numbers, strict=True)]

    def encode(self, log_ids: "Array", numbers: "Array") -> "Array":
        return (np.searchsorted(self._logs, log_ids).astype(np.int64) << _NUMBER_BITS) | numbers


def _values_at(keys: "Array", values: "Array", wanted: "Array") -> "Array":
    """Return the values of some keys, or 0 where there is none."""
    if len(keys) == 0:
        return np.zeros(len(wanted))
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, values[at], 0.0)
