"""Ranking with other weights, and a record of what was ranked: for fitting the weights. Within one thread."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.search.weights import FITTED_FEATURES, WEIGHTS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.floating[Any]]


class Experiment(msgspec.Struct, frozen=True):
    weights: list[float]
    """In the order of `WEIGHTS`."""
    samples: "list[Array]"
    """For each ranking the features of the candidates, best first."""


current: ContextVar[Experiment | None] = ContextVar("experiment", default=None)


@contextmanager
def experiment(fitted: Sequence[float] | None = None) -> Iterator[Experiment]:
    """Rank with other weights for the fitted features, and record what is ranked, in this thread."""
    values = dict(zip(FITTED_FEATURES, fitted or (), strict=fitted is not None))
    begun = Experiment([values.get(weight.feature, weight.weight) for weight in WEIGHTS], [])
    token = current.set(begun)
    try:
        yield begun
    finally:
        current.reset(token)
