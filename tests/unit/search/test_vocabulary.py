"""The numbers, stems and vectors of words, and how well words of a query match those of documents."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.search import terms
from holdfast.search.terms import PADDING, Vocabulary

DIRECTIONS = {"boat": 0.0, "ship": 0.3, "yacht": 0.4, "tax": 1.5, "the": 0.2}
"""Words as angles of vectors in a plane."""


def vectors(words: Sequence[str]) -> Any:
    found = np.zeros((len(words), 2), np.float32)
    for row, word in enumerate(words):
        if word in DIRECTIONS:
            found[row] = np.cos(DIRECTIONS[word]), np.sin(DIRECTIONS[word])
    return found


@pytest.fixture
def vocabulary() -> Vocabulary:
    return Vocabulary(vectors)


def similar(vocabulary: Vocabulary, query: Sequence[str], text: str) -> list[list[float]]:
    """How well each word of a query matches each word of a text."""
    found = vocabulary.terms_of([text])
    order = list(dict.fromkeys(text.split()))
    matches = vocabulary.similarities(query, found.words)
    assert found.words[0] == PADDING
    assert not matches[:, 0].any()
    assert matches.shape == (len(query), len(order) + 1)
    return np.round(matches[:, 1:], 3).tolist()  # type: ignore[no-any-return]


def test_words_match_by_stem_or_by_vector(vocabulary: Vocabulary) -> None:
    ((same, form, close, far, unknown),) = similar(vocabulary, ["boat"], "boat boats ship tax zzz")
    assert same == form == 1
    assert 0.5 < close < 1
    assert (far, unknown) == (0, 0)


def test_numbers_and_identifiers_match_only_themselves(vocabulary: Vocabulary) -> None:
    query = ["4711", "config.yaml"]
    assert similar(vocabulary, query, "4711 4712 config config.yaml") == [[1, 0, 0, 0], [0, 0, 0, 1]]


def test_a_stop_word_of_a_document_matches_only_itself(vocabulary: Vocabulary) -> None:
    assert similar(vocabulary, ["boat", "the"], "the boat") == [[0, 1], [1, pytest.approx(0.957, abs=0.01)]]


def test_documents_are_counted_and_an_empty_one_has_only_the_padding(vocabulary: Vocabulary) -> None:
    found = vocabulary.terms_of(["boat ship boat", "", "tax"])
    assert found.lengths.tolist() == [3, 0, 1]
    assert found.starts.tolist() == [0, 3, 4]
    assert found.counts.tolist() == [0, 2, 1, 0, 0, 1]
    assert found.words[[0, 3, 4]].tolist() == [PADDING] * 3


def test_an_empty_query_and_unknown_words_match_nothing(vocabulary: Vocabulary) -> None:
    assert similar(vocabulary, [], "boat") == []
    assert similar(vocabulary, ["qqq"], "boat zzz") == [[0, 0]]


def test_a_vocabulary_grows_and_keeps_what_it_has(vocabulary: Vocabulary) -> None:
    before = similar(vocabulary, ["boat", "w7"], "boats ship w7")
    for first in range(0, 5_000, 500):
        vocabulary.terms_of([" ".join(f"w{number}" for number in range(first, first + 500))])
        assert similar(vocabulary, ["boat", "w7"], "boats ship w7") == before


@pytest.mark.parametrize("limit", ["MAX_WORDS", "MAX_TERMS"])
def test_a_full_vocabulary_that_was_emptied_gives_the_same_results(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(terms, limit, 20)
    before = similar(Vocabulary(vectors), ["boat", "w7"], "boats ship w7 the")
    for number in range(30):
        vocabulary.terms_of([f"w{number} x{number} y{number} boat"])
        assert similar(vocabulary, ["boat", "w7"], "boats ship w7 the") == before
    assert len(vocabulary._numbers) < 40


WORDS = st.lists(st.sampled_from([*DIRECTIONS, "boats", "shipping", "4711", "a.b", "狐", "zzz", "of"]), max_size=8)


@given(st.lists(WORDS, min_size=1, max_size=5), WORDS, st.lists(WORDS, max_size=5))
def test_what_others_searched_before_changes_nothing(
    texts: list[list[str]], query: list[str], others: list[list[str]]
) -> None:
    def matches(vocabulary: Vocabulary) -> list[Any]:
        found = vocabulary.terms_of([" ".join(words) for words in texts])
        values = vocabulary.similarities(query, found.words)
        assert values.shape == (len(query), len(found.words))
        assert ((values >= 0) & (values <= 1)).all()
        return [values.tobytes(), *(column.tobytes() for column in found[1:])]

    used = Vocabulary(vectors)
    for other in others:
        used.similarities(other[::-1], used.terms_of([" ".join(other)]).words)
    assert matches(used) == matches(Vocabulary(vectors))
