"""The choice of candidates from the places where words occur, and from what is near in meaning or time."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.search.documents import Place
from holdfast.search.matches import (
    MAX_CANDIDATES,
    Candidates,
    WordMatches,
    arrange,
    inverse_frequency,
    standardised,
)
from holdfast.search.matches import choose as choose_positions


class Word(NamedTuple):
    """A word of a query, and the places where it occurs."""

    places: Sequence[tuple[int, int]]
    is_person: bool = True


def word(*places: tuple[int, int], is_person: bool = True) -> Word:
    return Word(places, is_person)


class Universe(NamedTuple):
    """Documents that are known without a match."""

    places: Sequence[tuple[int, int]]
    cosines: Sequence[float] | None = None
    closeness: Sequence[float] | None = None


def universe(
    *places: tuple[int, int], cosines: Sequence[float] | None = None, closeness: Sequence[float] | None = None
) -> Universe:
    return Universe(places, cosines, closeness)


def choose(words: Sequence[Word], documents: int, known: Universe) -> Candidates:
    """Choose among the known documents, those that match, and those around these."""
    around = [
        (log, number + step) for each in words for log, number in each.places for step in ((-1, 0, 1) if log else (0,))
    ]
    places = [*known.places, *around]
    layout = arrange(*np.array(places, np.int64).reshape(-1, 2).T)
    position = dict(zip(places, layout.positions.tolist(), strict=True))
    cosines, closeness = np.full(len(layout.in_log), np.nan), np.zeros(len(layout.in_log))
    at = [position[place] for place in known.places]
    cosines[at] = 0.0 if known.cosines is None else known.cosines
    closeness[at] = 0.0 if known.closeness is None else known.closeness
    matches = [
        WordMatches(
            len(each.places),
            np.array([position[place] for place in each.places], np.int64),
            np.full(len(each.places), each.is_person),
        )
        for each in words
    ]
    return choose_positions(matches, documents, layout, cosines, closeness)


def by_place(chosen: Candidates) -> dict[Place, tuple[float, float]]:
    return dict(zip(chosen.places, zip(chosen.segment.tolist(), chosen.session.tolist(), strict=True), strict=True))


def test_the_turns_before_and_after_a_match_are_chosen_too() -> None:
    assert set(choose([word((7, 5))], 10, universe()).places) == {(7, 4), (7, 5), (7, 6)}


def test_a_document_without_a_log_has_no_neighbours_no_segment_and_no_session() -> None:
    chosen = by_place(choose([word((0, 5), (0, 6), (3, 5))], 10, universe()))
    assert set(chosen) == {(0, 5), (0, 6), (3, 4), (3, 5), (3, 6)}
    assert chosen[Place(0, 5)] == chosen[Place(0, 6)] == (0, 0)
    assert chosen[Place(3, 5)] > (0, 0)


def test_a_segment_has_the_four_turns_before_and_the_three_after() -> None:
    places = [(7, number) for number in range(1, 20)]
    segments = {
        place.number: value[0] for place, value in by_place(choose([word((7, 10))], 19, universe(*places))).items()
    }
    assert [number for number, value in sorted(segments.items()) if value > 0] == [*range(7, 15)]


def test_a_segment_and_a_session_end_with_the_log() -> None:
    places = [(7, 1), (8, 1), (9, 1)]
    chosen = by_place(choose([word((8, 1))], 3, universe(*places)))
    assert chosen[Place(7, 1)] == chosen[Place(9, 1)] == (0, 0)
    assert min(chosen[Place(8, 1)]) > 0


def test_a_match_in_a_turn_of_an_assistant_counts_less_for_those_around_it() -> None:
    person, assistant = (
        by_place(choose([word((7, 5), is_person=is_person)], 10, universe()))[Place(7, 6)]
        for is_person in (True, False)
    )
    assert person > assistant > (0, 0)


def test_rare_words_weigh_more_and_a_word_in_all_documents_still_something() -> None:
    idf = choose([word((1, 1)), word((1, 1), (1, 2), (1, 3))], 3, universe()).idf
    assert idf[0] > idf[1] > 0
    assert (inverse_frequency(3, np.array([0.0, 3, 4])) > 0).all()


@pytest.mark.parametrize("words", [[], [word()], [word(), word()]])
def test_without_a_match_the_universe_is_chosen_by_meaning(words: list[Word]) -> None:
    many = [(1, number) for number in range(1, MAX_CANDIDATES + 101)]
    cosines = np.zeros(len(many))
    cosines[-1] = 1
    chosen = choose(words, len(many), universe(*many, cosines=cosines.tolist()))
    assert len(chosen.places) == MAX_CANDIDATES
    assert Place(*many[-1]) in chosen.places
    assert choose(words, 0, universe()).places == []


def test_one_document_is_chosen_with_and_without_a_match() -> None:
    for words in ([word()], [word((1, 1))]):
        assert Place(1, 1) in choose(words, 1, universe((1, 1))).places


def test_a_matching_time_or_speaker_brings_a_document_without_a_match() -> None:
    many = [(1, 10 * number) for number in range(1, 2 * MAX_CANDIDATES)]
    closeness = np.zeros(len(many))
    closeness[-1] = 1.4
    for words in ([word()], [word(*many[:50])]):
        assert Place(*many[-1]) not in choose(words, 1_000, universe(*many)).places
        assert Place(*many[-1]) in choose(words, 1_000, universe(*many, closeness=closeness.tolist())).places


def test_of_a_word_that_very_many_documents_have_only_its_weight_is_known() -> None:
    layout = arrange(np.ones(3, np.int64), np.array([1, 2, 3]))
    nowhere = np.zeros(0, np.int64)
    frequent = WordMatches(20_000, nowhere, np.zeros(0, bool))
    rare = WordMatches(1, np.array([1]), np.ones(1, bool))
    chosen = choose_positions([frequent, rare], 30_000, layout, np.full(3, np.nan), np.zeros(3))
    assert chosen.idf[0] < 1 < chosen.idf[1]
    assert chosen.presence.tolist() == [[False, False], [False, True], [False, False]]


def test_a_place_that_is_given_twice_is_chosen_once() -> None:
    layout = arrange(np.array([4, 4, 4]), np.array([2, 1, 2]))
    assert layout.positions.tolist() == [1, 0, 1]
    chosen = choose_positions([], 2, layout, np.full(2, np.nan), np.zeros(2))
    assert chosen.places == [(4, 1), (4, 2)]


def test_standardised_values_of_none_of_one_and_of_equal_ones_are_zero() -> None:
    for values in ([], [5.0], [3.0, 3.0, 3.0]):
        assert standardised(np.array(values)).tolist() == [0] * len(values)
    assert standardised(np.array([1.0, 3.0])).tolist() == [-1, 1]


PLACES = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 12)), max_size=12, unique=True)


@given(st.lists(PLACES, max_size=4), PLACES, st.integers(0, 100))
def test_every_match_and_everything_known_is_chosen_if_there_are_few(
    words: list[list[tuple[int, int]]], known: list[tuple[int, int]], documents: int
) -> None:
    chosen = choose([word(*places) for places in words], documents, universe(*known))
    matched = {place for places in words for place in places}
    neighbours = {(log, number + step) for log, number in matched if log for step in (-1, 1)}
    assert set(chosen.places) == matched | neighbours | set(known)
    assert len(chosen.places) == len(set(chosen.places))
    assert np.isfinite(chosen.segment).all()
    assert np.isfinite(chosen.session).all()
    assert (chosen.idf > 0).all()
