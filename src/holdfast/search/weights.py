"""The weights of the ranker, in one table. `holdfast eval locomo FILE --fit` fits them."""

from typing import NamedTuple

from holdfast.model.search import Signal


class Weight(NamedTuple):
    feature: str
    signal: Signal
    """What a reason calls it."""
    weight: float
    is_match: bool = True
    """Whether 0 means that it does not match the query. If not, it describes the document alone."""
    is_fitted: bool = True
    min_deviation: float = 0.0
    """A smaller standard deviation counts as this one: a value that few have is not more important for that."""


WEIGHTS = (
    Weight("words", "words", 0.26),
    Weight("identifier", "words", 0.30, is_fitted=False),
    Weight("answers", "previous", 0.11),
    Weight("segment", "neighbours", 0.59),
    Weight("session", "neighbours", 0.14),
    Weight("cosine", "meaning", 0.18),
    Weight("cosine_around", "meaning", 0.27),
    Weight("asks", "kind", -0.24, is_match=False),
    Weight("length", "kind", 0.21, is_match=False),
    Weight("long_previous", "kind", -0.41, is_match=False),
    Weight("role", "role", 1.00, is_match=False, is_fitted=False, min_deviation=0.5),
    Weight("speaker", "speaker", 1.19),
    Weight("name", "name", 0.05, is_fitted=False),
    Weight("written_then", "time", 0.99),
    Weight("names_time", "time", 0.21),
    Weight("has_time", "time", 0.18),
    Weight("recency", "recency", 0.03, is_match=False, is_fitted=False),
)
"""Weights of features in units of their standard deviation.

Fitted on the five conversations of LoCoMo (dev, 786 questions) together with the chats in `testdata/assistant_chats`
(103 questions, each counted three times). Four are chosen by hand. A fit of `role` on the chats gives 2.5, which would
hide what assistants and tools said; 1.0 has most of the gain. `identifier` finds what an assistant said by its number. `name` and `recency` are small: the data has no use for
them.
"""
FITTED_FEATURES = tuple(weight.feature for weight in WEIGHTS if weight.is_fitted)
USE_WEIGHT = 0.8
"""What a document that is used all the time gains."""
SCORE_SCALE, SCORE_MIDDLE = 0.8, 4.0
"""A total of `SCORE_MIDDLE` is a score of a half."""
