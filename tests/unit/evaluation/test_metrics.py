"""Measures of ranked results."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.evaluation.metrics import CUTOFFS, distinct, mean_scores, rank_of_first, score_ranking

RANKED = st.lists(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), max_size=30)
RELEVANT = st.sets(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), min_size=1, max_size=6)


def test_one_of_two_pieces_of_evidence_counts_as_any_as_half_and_not_as_all() -> None:
    scores = score_ranking(["x", "a", "y"], ["a", "b"])
    assert (scores.any[1], scores.any[3]) == (0, 1)
    assert scores.share[3] == 0.5
    assert scores.all[20] == 0


def test_the_first_evidence_decides_the_reciprocal_rank() -> None:
    assert score_ranking(["x", "y", "a", "b"], ["a", "b"]).mrr == pytest.approx(1 / 3)
    assert score_ranking(["x"], ["a"]).mrr == 0


def test_ndcg_weighs_evidence_by_its_rank() -> None:
    ideal = 1 + 1 / math.log2(3)
    assert score_ranking(["a", "x", "b"], ["a", "b"]).ndcg == pytest.approx((1 + 0.5) / ideal)


def test_evidence_after_the_tenth_result_adds_nothing_to_ndcg() -> None:
    assert score_ranking([*"cdefghijkl", "a"], ["a"]).ndcg == 0


def test_a_repeated_result_takes_one_place() -> None:
    assert score_ranking(["x", "x", "x", "a"], ["a"]).mrr == 0.5
    assert distinct("abacb") == ["a", "b", "c"]
    assert rank_of_first(["s1", "s1", "s2"], {"s2"}) == 2


def test_nothing_found_scores_nothing() -> None:
    assert mean_scores([score_ranking([], ["a"])]).share == dict.fromkeys(CUTOFFS, 0.0)


def test_a_mean_is_taken_over_questions() -> None:
    mean = mean_scores([score_ranking(["a"], ["a"]), score_ranking(["x"], ["a"])])
    assert (mean.share[1], mean.any[20], mean.mrr) == (0.5, 0.5, 0.5)


def test_a_question_without_evidence_cannot_be_scored() -> None:
    with pytest.raises(ValueError, match="without evidence"):
        score_ranking(["a"], [])
    with pytest.raises(ValueError, match="no questions"):
        mean_scores([])


@given(RANKED, RELEVANT)
def test_all_is_at_most_share_and_share_at_most_any(ranked: list[str], relevant: set[str]) -> None:
    scores = score_ranking(ranked, relevant)
    for k in CUTOFFS:
        assert 0 <= scores.all[k] <= scores.share[k] <= scores.any[k] <= 1
    assert 0 <= scores.ndcg <= 1


@given(RANKED, RELEVANT)
def test_more_results_never_score_less(ranked: list[str], relevant: set[str]) -> None:
    scores = score_ranking(ranked, relevant)
    for measure in (scores.any, scores.all, scores.share):
        assert sorted(measure.values()) == list(measure.values())


@given(RELEVANT)
def test_the_ideal_ranking_scores_one(relevant: set[str]) -> None:
    scores = score_ranking(sorted(relevant), relevant)
    assert (scores.ndcg, scores.mrr, scores.all[10]) == (1, 1, 1)
