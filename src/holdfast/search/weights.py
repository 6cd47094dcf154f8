"""The weights of the ranker, in one table. `holdfast eval locomo FILE --fit` fits them."""

from typing import Literal, NamedTuple

from holdfast.model.search import Signal

Scale = Literal["match", "relative", "absolute"]
"""How a feature is compared:

- `match`: how well a document itself matches the query, in units of the standard deviation of all candidates.
- `relative`: how well its surroundings match, or what it is by itself, in the same units. It counts less if there are
  few candidates: then the words of the query decide.
- `absolute`: as it is, and more if there are few candidates.
"""


class Weight(NamedTuple):
    feature: str
    signal: Signal
    """What a reason calls it."""
    weight: float
    scale: Scale = "match"
    is_fitted: bool = True
    min_deviation: float = 0.0
    """A smaller standard deviation counts as this one: a value that few have is not more important for that."""


WEIGHTS = (
    Weight("words", "words", 0.15),
    Weight("exact", "words", 1.00, "absolute", is_fitted=False),
    Weight("identifier", "words", 0.30, is_fitted=False),
    Weight("answers", "previous", 0.12, "relative"),
    Weight("segment", "neighbours", 0.58, "relative"),
    Weight("session", "neighbours", 0.14, "relative"),
    Weight("cosine", "meaning", 0.16),
    Weight("cosine_around", "meaning", 0.28, "relative"),
    Weight("asks", "kind", -0.25, "relative"),
    Weight("length", "kind", 0.17, "relative"),
    Weight("long_previous", "kind", -0.39, "relative"),
    Weight("role", "role", 1.00, "relative", is_fitted=False, min_deviation=0.5),
    Weight("speaker", "speaker", 1.13),
    Weight("name", "name", 0.05, is_fitted=False),
    Weight("written_then", "time", 1.00),
    Weight("names_time", "time", 0.21),
    Weight("has_time", "time", 0.18),
    Weight("recency", "recency", 0.03, "relative", is_fitted=False),
    Weight("folder", "folder", 0.30, "relative", is_fitted=False, min_deviation=0.2),
)
"""Weights of features in units of their standard deviation.

Fitted on the five conversations of LoCoMo (dev, 786 questions) together with the chats in `testdata/assistant_chats`
(103 questions, each counted three times). Six are chosen by hand. A fit of `role` on the chats gives 2.5, which would
hide what assistants and tools said; 1.0 has most of the gain. `exact` makes no difference there, and lets the words
decide among few documents. `identifier` finds what an assistant said by its number. `name` and `recency` are small:
the data has no use for them. `folder` is 0 for all messages, so it changes nothing among them.
"""
FITTED_FEATURES = tuple(weight.feature for weight in WEIGHTS if weight.is_fitted)
USE_WEIGHT = 0.8
"""What a document that is used all the time gains."""
SCORE_SCALE, SCORE_MIDDLE = 0.8, 3.0
"""A total of `SCORE_MIDDLE` is a score of a half."""
