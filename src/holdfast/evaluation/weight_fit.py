"""Fits the weights of the ranker: the listwise softmax loss, minimised by Adam. Deterministic."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from holdfast.search.weights import WEIGHTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

STEPS = 150
_RATE, _MEAN_DECAY, _SQUARE_DECAY, _PENALTY = 0.05, 0.9, 0.999, 0.001


class Sample(NamedTuple):
    """What was ranked for one question."""

    rows: "Array"
    """The features of each candidate, in the order of `WEIGHTS`."""
    evidence: list[int]
    """The rows that answer the question."""


def fit(samples: Sequence[Sample]) -> list[float]:
    """Return the weights of the fitted features, in the order of `FITTED_FEATURES`."""
    is_fitted = np.array([weight.is_fitted for weight in WEIGHTS])
    fixed = np.array([0.0 if weight.is_fitted else weight.weight for weight in WEIGHTS])
    rows = [sample.rows[:, is_fitted] for sample in samples]
    offsets = [sample.rows @ fixed for sample in samples]
    weights = np.zeros(int(is_fitted.sum()))
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, STEPS + 1):
        gradient = _PENALTY * weights
        for matrix, offset, sample in zip(rows, offsets, samples, strict=True):
            totals = matrix @ weights + offset
            chances = np.exp(totals - totals.max())
            gradient += (matrix.T @ (chances / chances.sum()) - matrix[sample.evidence].mean(axis=0)) / len(samples)
        mean = _MEAN_DECAY * mean + (1 - _MEAN_DECAY) * gradient
        square = _SQUARE_DECAY * square + (1 - _SQUARE_DECAY) * gradient**2
        weights -= _RATE * (mean / (1 - _MEAN_DECAY**step)) / (np.sqrt(square / (1 - _SQUARE_DECAY**step)) + 1e-8)
    return [float(weight) for weight in weights]
