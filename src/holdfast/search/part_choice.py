"""Chooses the parts of files to rank, and measures how well the folders above them match. Pure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from holdfast.search.matches import MAX_CANDIDATES, inverse_frequency, standardised, with_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

MAX_PARTS = 20
"""How many parts of one file are ranked: a long one must not hide all others."""
MAX_WORDS = 80_000
"""How many words the ranked parts have together. At least `MIN_CANDIDATES` are ranked."""
MIN_CANDIDATES = 30
_MEANING = 0.4
"""What the meaning counts for the choice, compared to the words."""
_FOLDER_WORDS = 0.6
"""Which part of the strength of a folder its words decide; its vector decides the rest."""
MIN_STRENGTH = 0.3
"""A folder that matches less raises nothing."""
_SPREAD = 10
"""How many times as many parts are looked at as are ranked."""


class PartMatches(NamedTuple):
    """The parts in which a word of the query occurs."""

    documents: int
    """How many there are. If there are very many, only this is known."""
    rows: "Array"


class ChosenParts(NamedTuple):
    rows: "Array"
    """Which rows are ranked."""
    presence: "Array"
    """A row for each with the words of the query that it has."""


def word_weights(words: Sequence[PartMatches], documents: int) -> "Array":
    """Return the weight of each word of the query among some documents."""
    counts = np.array([min(each.documents, documents) for each in words], dtype=np.float64)
    return inverse_frequency(documents, counts)


def folder_strengths(words: Sequence[PartMatches], idf: "Array", folders: "Array", cosines: "Array") -> "Array":
    """Return how well the overviews of folders match a query, from 0 to 1. `folders` are their rows."""
    total = max(float(idf.sum()), 1e-9)
    covered = np.zeros(len(folders))
    for each, weight in zip(words, idf.tolist(), strict=True):
        covered += weight * np.isin(folders, each.rows)
    meaning = np.maximum(np.nan_to_num(cosines[folders]), 0.0)
    strengths = _FOLDER_WORDS * covered / total + (1 - _FOLDER_WORDS) * meaning
    return np.where(strengths >= MIN_STRENGTH, strengths, 0.0)


def choose(
    words: Sequence[PartMatches],
    idf: "Array",
    count: int,
    contents: "Array",
    lengths: "Array",
    cosines: "Array",
    raised: "Array",
) -> ChosenParts:
    """Choose which of `count` rows to rank. `raised` says how much each is raised by the folders above it."""
    text = np.zeros(count)
    for each, weight in zip(words, idf.tolist(), strict=True):
        text[each.rows] += weight
    order = standardised(text) + _MEANING * standardised(with_mean(cosines)) + raised
    best = _highest(order, _SPREAD * MAX_CANDIDATES)
    best = best[_occurrences(contents[best]) < MAX_PARTS][:MAX_CANDIDATES]
    fitting = np.cumsum(lengths[best]) <= MAX_WORDS
    fitting[:MIN_CANDIDATES] = True
    chosen = np.sort(best[fitting])
    presence = np.zeros((len(chosen), len(words)), bool)
    for number, each in enumerate(words):
        presence[:, number] = np.isin(chosen, each.rows)
    return ChosenParts(chosen, presence)


def _highest(values: "Array", count: int) -> "Array":
    """Return the positions of the highest values, the highest one first. Of equal ones, the first are taken."""
    if len(values) <= count:
        return np.argsort(-values, kind="stable")
    least = np.partition(values, len(values) - count)[-count]
    better, equal = np.flatnonzero(values > least), np.flatnonzero(values == least)
    found = np.concatenate([better, equal[: count - len(better)]])
    return found[np.argsort(-values[found], kind="stable")]


def _occurrences(values: "Array") -> "Array":
    """Return for each value how often it has occurred before.

    >>> _occurrences(np.array([7, 8, 7, 7, 8])).tolist()
    [0, 0, 1, 2, 1]
    """
    order = np.argsort(values, kind="stable")
    grouped = values[order]
    starts = np.flatnonzero(np.concatenate([[True], grouped[1:] != grouped[:-1]])) if len(values) else np.zeros(0, int)
    sizes = np.diff(np.append(starts, len(values)))
    found = np.zeros(len(values), np.int64)
    found[order] = np.arange(len(values)) - np.repeat(starts, sizes)
    return found
