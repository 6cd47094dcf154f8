"""Ranking: scores, reasons, and what each feature measures, for pools of any size."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.search import experiments
from holdfast.search.analysis import analyse
from holdfast.search.documents import Document
from holdfast.search.features import Pool, measure
from holdfast.search.hotness import hotness
from holdfast.search.matches import WordMatches, arrange, choose
from holdfast.search.query import parse_query
from holdfast.search.ranking import Ranked, rank
from holdfast.search.terms import MAX_DOCUMENT_TERMS, Vocabulary
from holdfast.search.weights import FITTED_FEATURES, WEIGHTS

DAY = 86_400_000_000
NOW = 20_000 * DAY


def no_vectors(words: Sequence[str]) -> Any:
    return np.zeros((len(words), 3), np.float32)


def document(number: int, text: str, role: str = "user", speaker: str = "", age_days: float = 5) -> Document:
    created_at = NOW - int(age_days * DAY)
    analysis = analyse(text, created_at)
    dates = str([list(each) for each in analysis.dates])
    words = " ".join(analysis.words)
    return Document(
        number, "message", "alice", 1, number, 2, role, speaker, created_at, words, dates, analysis.flags, "[]"
    )


def pool_of(
    documents: Sequence[Document],
    query: str,
    *,
    neighbours: bool = False,
    cosines: Sequence[float] | None = None,
    hot: Sequence[float] | None = None,
) -> Pool:
    """All documents as candidates, each after the one before it if `neighbours`."""
    count = len(documents)
    logs, numbers = np.ones(count, np.int64), np.array([each.number for each in documents], np.int64)
    is_person = np.array([each.role == "user" for each in documents])
    found = [np.array([word in each.words.split() for each in documents]) for word in parse_query(query, NOW).words]
    layout = arrange(logs, numbers)
    matches = [WordMatches(int(rows.sum()), layout.positions[rows], is_person[rows]) for rows in found]
    chosen = choose(matches, count, layout, np.zeros(count), np.zeros(count))
    at = [chosen.places.index(each.place) if each.place in chosen.places else -1 for each in documents]
    index = np.arange(count)
    nothing = np.full(count, -1)
    return Pool(
        documents=list(documents),
        candidates=count,
        previous=index - 1 if neighbours else nothing,
        following=np.where(index + 1 < count, index + 1, -1) if neighbours else nothing,
        presence=chosen.presence[at],
        segment=chosen.segment[at],
        session=chosen.session[at],
        idf=chosen.idf,
        cosines=np.full(count, np.nan, np.float32) if cosines is None else np.array(cosines, np.float32),
        hotness=np.zeros(count) if hot is None else np.array(hot),
        folder=np.zeros(count),
        now=NOW,
        average_length=8.0,
    )


def ranked(query: str, pool: Pool, limit: int = 1_000) -> list[Ranked]:
    return rank(parse_query(query, NOW), pool, Vocabulary(no_vectors), limit)


def order(query: str, *documents: Document, **fields: Any) -> list[int]:
    pool = pool_of(documents, query, **fields)
    return [pool.documents[each.position].number for each in ranked(query, pool)]


def check(found: Sequence[Ranked], count: int) -> None:
    scores = [each.score for each in found]
    assert sorted(each.position for each in found) == list(range(count))
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    for each in found:
        shares = [reason.share for reason in each.reasons]
        assert sum(shares) == pytest.approx(each.score, abs=1e-9)
        assert all(share >= 0 for share in shares)
        assert len({reason.signal for reason in each.reasons}) == len(shares) > 0
        assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize("count", [1, 2, 49, 50, 51, 130])
@pytest.mark.parametrize("cosines", ["none", "some", "all"])
def test_scores_are_ordered_between_0_and_1_and_the_reasons_add_up(count: int, cosines: str) -> None:
    texts = [f"the boat number {number} is {'blue' if number % 3 else 'red'}" for number in range(count)]
    documents = [document(number, text) for number, text in enumerate(texts)]
    known = {"none": 0, "some": (count + 1) // 2, "all": count}[cosines]
    values = np.full(count, np.nan)
    values[:known] = np.linspace(-1, 1, count)[:known]
    pool = pool_of(documents, "red boat", neighbours=True, cosines=values.tolist())
    with np.errstate(all="raise"):
        check(ranked("red boat", pool), count)
    assert len(ranked("red boat", pool, limit=1)) == 1
    if cosines == "none":
        assert pool.documents[ranked("red boat", pool)[0].position].words.split()[-1] == "red"


TEXTS = st.sampled_from(
    ["", "boat", "a red boat?", "Ann: yesterday in May 2024", "of the", "狐狸 ORD-4711", "ß.é " * 30]
)
DOCUMENTS = st.tuples(
    TEXTS, st.sampled_from(["user", "assistant", "tool", ""]), st.sampled_from(["", "ann"]), st.floats(-10, 10_000)
)
QUERIES = st.sampled_from(["boat", "!?", "of the", "what did Ann say yesterday", "when in May 2024?", "狐 ORD-4711"])


@given(
    st.lists(st.tuples(DOCUMENTS, st.sampled_from([0.5, -1.0, 1.0, float("nan")])), min_size=1, max_size=60),
    QUERIES,
    st.booleans(),
)
def test_a_score_is_a_number_whatever_documents_and_queries_are(
    given_documents: list[tuple[Any, float]], query: str, neighbours: bool
) -> None:
    documents = [document(number, *fields) for number, (fields, _) in enumerate(given_documents)]
    cosines = [cosine for _, cosine in given_documents]
    pool = pool_of(documents, query, neighbours=neighbours, cosines=cosines, hot=[0.5] * len(documents))
    check(ranked(query, pool), len(documents))


def test_the_only_document_with_the_word_comes_first_also_from_an_assistant() -> None:
    for count in (2, 5, 60, 400):
        documents = [document(number, f"we talked about topic {number}") for number in range(count - 1)]
        assert order("ORD-4711", *documents, document(999, "It is booked as ORD-4711.", "assistant"))[0] == 999


def test_what_a_person_said_comes_before_what_an_assistant_said_unless_the_query_asks_for_that() -> None:
    said = [document(1, "I like pasta for dinner", "assistant"), document(2, "I like pasta for dinner")]
    others = [document(number, f"something else {number}", ["user", "assistant"][number % 2]) for number in range(3, 9)]
    assert order("pasta for dinner", *said, *others)[:2] == [2, 1]
    assert order("what did you recommend, pasta for dinner?", *said, *others)[:2] == [1, 2]


def test_the_speaker_whom_the_query_names_comes_first_and_several_names_tell_nothing() -> None:
    documents = [
        document(1, "I have a new boat", speaker="bob"),
        document(2, "I have a new boat", speaker="ann"),
        document(3, "hello", speaker="bob"),
    ]
    assert order("What does Ann have, a boat?", *documents)[0] == 2
    assert order("What does Bob have, a boat?", *documents)[0] == 1
    pool = pool_of(documents, "boat")
    for query, expected in (("do Ann and Bob have a boat", [0, 0, 0]), ("does Ann have a boat", [0, 1, 0])):
        measured = measure(parse_query(query, NOW), pool_of(documents, query), Vocabulary(no_vectors))
        assert measured.features["speaker"].tolist() == expected
    assert measure(parse_query("boat", NOW), pool, Vocabulary(no_vectors)).features["speaker"].tolist() == [0, 0, 0]


def test_the_time_of_the_query_matches_when_a_message_was_written_and_what_its_text_names() -> None:
    documents = [
        document(1, "the boat sank", age_days=40),
        document(2, "the boat sank", age_days=1),
        document(3, "the boat sank", age_days=200),
    ]
    assert order("Which boat sank yesterday?", *documents)[0] == 2
    named = [document(1, "we meet at the boat"), document(2, "we meet at the boat in May 2024")]
    assert order("Who met at the boat in May 2024?", *named)[0] == 2


def test_a_question_for_the_time_prefers_documents_that_name_one() -> None:
    documents = [document(1, "the boat leaves soon"), document(2, "the boat leaves in May 2024")]
    others = [document(number, f"other {number}") for number in range(3, 9)]
    assert order("When does the boat leave?", *documents, *others)[0] == 2


def test_newer_and_used_documents_come_first_among_equal_ones() -> None:
    same = [document(number, "the boat is blue", age_days=age) for number, age in enumerate((90, 1, 30))]
    assert order("blue boat", *same) == [1, 2, 0]
    assert order("blue boat", *same, hot=[0.0, 0.0, 0.9])[0] == 2
    (use,) = (
        reason.share
        for reason in ranked("blue boat", pool_of(same, "blue boat", hot=[0, 0, 0.9]))[0].reasons
        if reason.signal == "use"
    )
    assert use > 0


def test_the_answer_to_a_matching_question_is_raised() -> None:
    documents = [
        document(1, "What colour is your boat?"),
        document(2, "Blue, of course."),
        document(3, "Fine weather."),
    ]
    assert order("colour of the boat", *documents, neighbours=True)[-1] == 3


def test_a_score_of_a_query_that_nothing_covers_is_near_0_and_of_a_full_match_high() -> None:
    documents = [document(number, f"we talked about topic {number}") for number in range(60)]
    assert max(each.score for each in ranked("zebra", pool_of(documents, "zebra"))) == 0
    with_zebra = [*documents, document(61, "the zebra escaped")]
    best = ranked("zebra escaped", pool_of(with_zebra, "zebra escaped"))[0]
    assert best.score > 0.4


def test_hotness_is_halved_by_each_week_and_never_leaves_its_range() -> None:
    assert hotness(1, NOW, NOW + 7 * DAY) == pytest.approx(hotness(1, NOW, NOW) / 2)
    assert hotness(1, NOW + DAY, NOW) == hotness(1, NOW, NOW)
    values = [hotness(count, 0, age * DAY) for count in (-1, 0, 1, 10**9) for age in (0, 1, 10**6)]
    assert all(0 <= value <= 1 for value in values)


def test_a_word_deep_in_a_long_document_counts() -> None:
    filler = " ".join(f"w{number}" for number in range(2 * MAX_DOCUMENT_TERMS))
    documents = [document(1, f"{filler} zebra"), document(2, filler), document(3, "short")]
    assert order("zebra", *documents)[0] == 1


def test_the_weights_are_those_that_were_fitted() -> None:
    assert {weight.feature: weight.weight for weight in WEIGHTS} == {
        "words": 0.15,
        "exact": 1.00,
        "identifier": 0.30,
        "answers": 0.12,
        "segment": 0.58,
        "session": 0.14,
        "cosine": 0.16,
        "cosine_around": 0.28,
        "asks": -0.25,
        "length": 0.17,
        "long_previous": -0.39,
        "role": 1.00,
        "speaker": 1.13,
        "name": 0.05,
        "written_then": 1.00,
        "names_time": 0.21,
        "has_time": 0.18,
        "recency": 0.03,
        "folder": 0.30,
    }, "state in `weights.py` on which data the new weights were fitted, and the figures of `holdfast eval` here"
    measured = measure(parse_query("boat", NOW), pool_of([document(1, "boat")], "boat"), Vocabulary(no_vectors))
    assert {weight.feature for weight in WEIGHTS} | {"use"} == set(measured.features)


def test_an_experiment_ranks_with_other_weights_and_records_what_was_ranked() -> None:
    documents = [document(1, "the boat"), document(2, "a long text about the weather and nothing else")]
    pool = pool_of(documents, "boat")
    only_length = [200.0 if feature == "length" else 0.0 for feature in FITTED_FEATURES]
    with experiments.experiment(only_length) as running:
        assert [each.position for each in ranked("boat", pool)] == [1, 0]
    (sample,) = running.samples
    assert sample.shape == (2, len(WEIGHTS))
    length = [weight.feature for weight in WEIGHTS].index("length")
    assert sample[0, length] > sample[1, length]
    assert [each.position for each in ranked("boat", pool)] == [0, 1]
    with experiments.experiment() as unchanged:
        assert unchanged.weights == [weight.weight for weight in WEIGHTS]
    with pytest.raises(ValueError, match="zip"), experiments.experiment([1.0]):
        pass
    with pytest.raises(KeyError), experiments.experiment():
        raise KeyError
    assert experiments.current.get() is None
