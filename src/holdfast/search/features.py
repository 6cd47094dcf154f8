"""What is measured of each candidate: how well it matches the query, in itself and by what is around it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from holdfast.search.analysis import ASKS
from holdfast.search.documents import Document
from holdfast.search.matches import ASSISTANT_SHARE, standardised, with_mean
from holdfast.search.query import Query
from holdfast.search.terms import Terms, Vocabulary
from holdfast.search.times.periods import MICROSECONDS_PER_DAY
from holdfast.search.times.ranges import TimeRange

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

PERSON_ROLES = frozenset({"user"})
_K1, _B = 0.9, 0.4
"""The parameters of BM25: how fast repetitions saturate, and how much longer documents count less."""
_PREVIOUS_SHARE, _NEXT_SHARE = 0.5, 0.25
_LONG_TURN = 40
"""Words of a neighbour from which on it counts less."""
_SAME_WORD = 0.999
"""From this similarity, two words have the same stem."""
_MIN_WEIGHT = 1e-9
_FADING_DAYS = 10.0
"""A message that was written that many days after the time of the query counts about a third."""
_BEFORE_FACTOR = 3.0
"""A message is about what came before it, so a day before the time of the query counts as three after it."""


class Pool(NamedTuple):
    """Candidates, then their neighbours."""

    documents: Sequence[Document]
    candidates: int
    """How many of the documents are candidates."""
    previous: "Array"
    """For each candidate the index of the document before it, or -1."""
    following: "Array"
    presence: "Array"
    """For each candidate the words of the query that it has. A long document has more words than are compared."""
    segment: "Array"
    session: "Array"
    idf: "Array"
    cosines: "Array"
    """For each document the cosine of its vector and that of the query; not a number if it has none."""
    hotness: "Array"
    """For each candidate how much it was used, from 0 to 1."""
    folder: "Array"
    """For each candidate how well the best folder above it matches, from 0 to 1."""
    now: int
    average_length: float


class Measured(NamedTuple):
    features: "dict[str, Array]"
    """The values of each feature for all candidates."""
    coverage: "Array"
    """How much of the query each candidate and its neighbours cover, from 0 to 1."""


def measure(query: Query, pool: Pool, vocabulary: Vocabulary) -> Measured:
    """Measure all candidates."""
    documents, count = pool.documents, pool.candidates
    previous, following = pool.previous, pool.following
    terms = vocabulary.terms_of([document.words for document in documents])
    frequency, best = _soft_matches(query.words, terms, vocabulary)
    for matches in (frequency, best):
        matches[:, :count] = np.maximum(matches[:, :count], pool.presence.T)
    lengths = terms.lengths
    coverage = (pool.idf @ best) / max(pool.idf.sum(), _MIN_WEIGHT)
    exact = (pool.idf @ (best[:, :count] >= _SAME_WORD)) / max(pool.idf.sum(), _MIN_WEIGHT)
    is_person = np.array([document.role in PERSON_ROLES for document in documents])
    asks = np.array([bool(document.flags & ASKS) for document in documents], dtype=np.float64)
    share = np.where(is_person, 1.0, ASSISTANT_SHARE) * np.minimum(1, _LONG_TURN / np.maximum(lengths, 1))
    damped = frequency * share
    mixed = frequency[:, :count] + _PREVIOUS_SHARE * _at(damped, previous) + _NEXT_SHARE * _at(damped, following)
    by_words = _bm25(mixed, lengths[:count], pool)
    cosine = with_mean(pool.cosines)
    around = _at(cosine * share, previous) + _at(cosine * share, following)
    features = {
        "words": by_words,
        "exact": exact,
        "answers": _at(asks * coverage * share, previous),
        "segment": pool.segment,
        "session": pool.session,
        "cosine": cosine[:count],
        "cosine_around": cosine[:count] + 0.5 * around,
        "asks": asks[:count],
        "length": np.log1p(lengths[:count]),
        "long_previous": _at(np.log1p(lengths) * is_person, previous),
        "role": (is_person[:count] != query.asks_assistant).astype(np.float64),
        "speaker": _speakers(query, documents[:count]),
        "name": _part_of(query.names, documents[:count]),
        "identifier": _part_of(query.identifiers, documents[:count]),
        "recency": _recency(documents[:count], pool.now),
        "use": pool.hotness,
        "folder": pool.folder,
        **_times(query, documents[:count], by_words),
    }
    covered = np.maximum(coverage[:count], np.maximum(_at(coverage, previous), _at(coverage, following)))
    return Measured(features, covered)


def _soft_matches(words: Sequence[str], terms: Terms, vocabulary: Vocabulary) -> "tuple[Array, Array]":
    """For each word of the query and each document: the sum of all matches, and the best one."""
    different, position = _different(terms.words)
    matches = vocabulary.similarities(words, different)[:, position]
    return (
        np.add.reduceat(matches * terms.counts, terms.starts, axis=1),
        np.maximum.reduceat(matches, terms.starts, axis=1),
    )


def _different(numbers: "Array") -> "tuple[Array, Array]":
    """Return the different numbers, and where each of them is among these. Word numbers are small."""
    is_there = np.zeros(int(numbers.max(initial=0)) + 1, bool)
    is_there[numbers] = True
    different = np.flatnonzero(is_there)
    position = np.zeros(len(is_there), np.int64)
    position[different] = np.arange(len(different))
    return different, position[numbers]


def _bm25(frequency: "Array", lengths: "Array", pool: Pool) -> "Array":
    norm = _K1 * (1 - _B + _B * lengths / pool.average_length)
    return pool.idf @ (frequency * (_K1 + 1) / (frequency + norm))


def _at(values: "Array", index: "Array") -> "Array":
    """Return the values of the neighbours with these indexes, or 0 where there is none."""
    return np.where(index >= 0, values[..., np.maximum(index, 0)], 0.0)


def _speakers(query: Query, documents: Sequence[Document]) -> "Array":
    """Whether the query names who wrote a document. It tells nothing if it names several of them."""
    speakers = {document.speaker for document in documents if document.speaker}
    named = {speaker for speaker in speakers if not query.mentioned.isdisjoint(speaker.split())}
    return np.array([float(len(named) == 1 and document.speaker in named) for document in documents])


def _part_of(words: Sequence[str], documents: Sequence[Document]) -> "Array":
    """Which part of some words of the query occurs in a document."""
    if not words:
        return np.zeros(len(documents))
    texts = [f" {document.words} " for document in documents]
    return np.array([sum(f" {word} " in text for word in words) / len(words) for text in texts])


def _recency(documents: Sequence[Document], now: int) -> "Array":
    days = np.array([max(now - document.created_at, 0) for document in documents]) / MICROSECONDS_PER_DAY
    return 1 / (1 + days / 30)


def _times(query: Query, documents: Sequence[Document], matches: "Array") -> "dict[str, Array]":
    """How close documents are to the times of the query, and whether those that match name a time that is asked for."""
    written, named, answers = (np.zeros(len(documents)) for _ in range(3))
    if query.times:
        days = np.array([document.created_at // MICROSECONDS_PER_DAY for document in documents])
        for time in query.times:
            written = np.maximum(written, closeness_in_time(days, time))
        named = np.array([_names_time(document, query.times) for document in documents])
    if query.asks_for_time:
        answers = np.array([float(document.dates != "[]") for document in documents]) * standardised(matches)
    return {"written_then": written, "names_time": named, "has_time": answers}


def closeness_in_time(days: "Array", time: TimeRange) -> "Array":
    """How close days are to a time, from 0 to 1."""
    before = _BEFORE_FACTOR * np.maximum(time.first_day - days, 0)
    closeness: Array = np.exp(-np.maximum(before, np.maximum(days - time.last_day, 0)) / _FADING_DAYS)
    return closeness


def _names_time(document: Document, times: Sequence[TimeRange]) -> float:
    """Whether a text names one of the times. A much longer period, such as a year, tells less."""
    if document.dates == "[]":
        return 0.0
    try:
        periods = msgspec.json.decode(document.dates, type=list[tuple[int, int]])
    except msgspec.MsgspecError:  # a damaged row of the index must not prevent searches
        return 0.0
    best = 0.0
    for first, last in periods:
        for time in times:
            if first <= time.last_day and last >= time.first_day:
                is_precise = last - first <= 2 * max(time.last_day - time.first_day + 1, 7)
                best = max(best, 1.0 if is_precise else 0.3)
    return best
