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


WEIGHTS = (
    Weight("words", "words", 0.29),
    Weight("answers", "previous", 0.12),
    Weight("segment", "neighbours", 0.55),
    Weight("session", "neighbours", 0.20),
    Weight("cosine", "meaning", 0.18),
    Weight("cosine_around", "meaning", 0.18),
    Weight("asks", "kind", -0.23, is_match=False),
    Weight("length", "kind", 0.43, is_match=False),
    Weight("long_previous", "kind", -0.30, is_match=False),
    Weight("role", "role", 1.00, is_match=False, is_fitted=False),
    Weight("speaker", "speaker", 1.16),
    Weight("name", "name", 0.05, is_fitted=False),
    Weight("written_then", "time", 1.15),
    Weight("names_time", "time", 0.21),
    Weight("has_time", "time", 0.19),
    Weight("recency", "recency", 0.03, is_match=False, is_fitted=False),
)
"""Weights of features in units of their standard deviation.

Fitted on the five conversations of LoCoMo (dev) and on the chats with an assistant in `testdata/`, except those of
names and recency, which are small values chosen by hand.
"""
FITTED_FEATURES = tuple(weight.feature for weight in WEIGHTS if weight.is_fitted)
USE_WEIGHT = 0.8
"""What a document that is used all the time gains."""
SCORE_SCALE, SCORE_MIDDLE = 0.8, 4.0
"""A total of `SCORE_MIDDLE` is a score of a half."""
