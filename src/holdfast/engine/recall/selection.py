"""Selects the documents of one kind that are ranked: those with words of the query, and what else speaks for them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from holdfast.engine.recall.document_kinds import MESSAGE
from holdfast.engine.recall.owner_tables import OwnerTable
from holdfast.engine.recall.search_scope import Scope
from holdfast.engine.recall.vector_search import NearDocument, TableCosines
from holdfast.search import matches
from holdfast.search.documents import Document, Place
from holdfast.search.features import PERSON_ROLES, closeness_in_time
from holdfast.search.matches import Candidates, WordMatches
from holdfast.search.query import Query
from holdfast.search.stems import stem
from holdfast.search.times.periods import MICROSECONDS_PER_DAY
from holdfast.store.access.search.readable_documents import Candidate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

_SPEAKER_WEIGHT, _TIME_WEIGHT = 1.4, 3.0
"""What a named speaker and a matching time count for the choice of candidates."""


class OwnMatches(NamedTuple):
    """Where a word of the query occurs in the caller's own documents."""

    documents: int
    """In how many documents it occurs at least."""
    rows: "Array"
    """The rows of the table that have it. There are none if it is too frequent."""


class Sources(NamedTuple):
    """All that was found: the caller's own documents, those of others that match, and pending messages."""

    scope: Scope
    table: OwnerTable
    allowed: "Array | None"
    """Which rows of the table may be returned; None for all."""
    cosines: TableCosines
    """The cosine of each row of the table."""
    own: list[OwnMatches]
    """For each word of the query."""
    shared: list[list[Candidate]]
    """For each word of the query the documents of others that have it."""
    near: list[NearDocument]
    """Documents of others that are close to the query in meaning."""
    pending: list[Document]


class Selection(NamedTuple):
    """The documents of one kind to rank."""

    candidates: Candidates
    searched: int
    """How many documents could have been found."""


def select(kind: str, sources: Sources, query: Query) -> Selection | None:
    """Select the documents of a kind to rank, or None if there are none."""
    table = sources.table
    pending = sources.pending if kind == MESSAGE else []
    shared = [[each for each in found if each.kind == kind] for found in sources.shared]
    near = {each.place: each.cosine for each in sources.near if each.kind == kind}
    others = _Others(shared, pending, list(near))
    rows, layout = table.arrange_kind(kind)
    if sources.allowed is not None:
        rows = rows[sources.allowed[rows]]
    if sources.allowed is not None or others.places:
        layout = table.arrange(rows, others.places)
    searched = len(rows) + len(pending) + len(near.keys() | {_place(each) for found in shared for each in found})
    if not searched:
        return None
    at = layout.positions[: len(rows)]
    position = np.full(len(table.numbers), -1, np.int64)
    position[rows] = at
    cosines = np.full(len(layout.in_log), np.nan, np.float32)
    cosines[at] = sources.cosines.values[rows]
    closeness = np.zeros(len(layout.in_log))
    place_at = dict(zip(others.places, layout.positions[len(rows) :].tolist(), strict=True))
    for place, cosine in near.items():
        cosines[place_at[place]] = cosine
    with_pending = np.concatenate([at, np.array([place_at[each.place] for each in pending], np.int64)])
    closeness[with_pending] = _closeness(table, rows, pending, query)
    words = [
        _word_matches(table, position, own, [(place_at[place], is_person) for place, is_person in found])
        for own, found in zip(sources.own, others.matches(query.words), strict=True)
    ]
    return Selection(matches.choose(words, searched, layout, cosines, closeness), searched)


class _Others:
    """Documents that are not in the caller's own table: those of other owners, and pending messages."""

    def __init__(
        self, shared: Sequence[Sequence[Candidate]], pending: Sequence[Document], near: Sequence[Place]
    ) -> None:
        self._shared = shared
        self._pending = pending
        self._stems = [frozenset(map(stem, document.words.split())) for document in pending]
        places = dict.fromkeys(document.place for document in pending)
        for each in dict.fromkeys([*near, *(_place(candidate) for found in shared for candidate in found)]):
            around = (-1, 0, 1) if each.log_id else (0,)
            places.update(dict.fromkeys(Place(each.log_id, each.number + step) for step in around))
        self.places = list(places)
        """Their places, and those around documents of other owners, which may be ranked, too."""

    def matches(self, words: Sequence[str]) -> list[list[tuple[Place, bool]]]:
        """For each word the places where it occurs, and whether a person wrote them."""
        found: list[list[tuple[Place, bool]]] = []
        for word, shared in zip(words, self._shared, strict=True):
            waiting = [each for each, stems in zip(self._pending, self._stems, strict=True) if stem(word) in stems]
            written = [*((_place(each), each.role) for each in shared), *((each.place, each.role) for each in waiting)]
            found.append([(place, role in PERSON_ROLES) for place, role in written])
        return found


def _word_matches(table: OwnerTable, position: "Array", own: OwnMatches, others: list[tuple[int, bool]]) -> WordMatches:
    at = position[own.rows]
    is_there = at >= 0
    positions, is_person = at[is_there], table.persons[own.rows[is_there]]
    if others:
        positions = np.concatenate([positions, np.array([each for each, _ in others], np.int64)])
        is_person = np.concatenate([is_person, np.array([is_person for _, is_person in others], bool)])
    return WordMatches(len(positions) if len(own.rows) else own.documents + len(others), positions, is_person)


def _place(candidate: Candidate) -> Place:
    return Place(candidate.log_id, candidate.number)


def _closeness(table: OwnerTable, rows: "Array", pending: Sequence[Document], query: Query) -> "Array | float":
    """Return how well who wrote each document, and when, fit the query: rows of the table, then pending documents."""
    closeness: Array | float = 0.0
    if query.times:
        times = np.concatenate([table.times[rows], np.array([each.created_at for each in pending], np.int64)])
        for each in query.times:
            closeness = np.maximum(closeness, _TIME_WEIGHT * closeness_in_time(times // MICROSECONDS_PER_DAY, each))
    speakers = dict.fromkeys([*table.speaker_names, *(document.speaker for document in pending)])
    named = [name for name in speakers if not query.mentioned.isdisjoint(name.split())]
    if len(named) == 1:
        code = table.speaker_names.index(named[0]) if named[0] in table.speaker_names else -1
        said = [document.speaker == named[0] for document in pending]
        closeness = closeness + _SPEAKER_WEIGHT * np.concatenate([table.speakers[rows] == code, np.array(said, bool)])
    return closeness
