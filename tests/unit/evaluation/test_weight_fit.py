"""The fit of weights: it finds what tells the evidence, and is deterministic."""

import numpy as np

from holdfast.evaluation.weight_fit import Sample, fit
from holdfast.search.weights import FITTED_FEATURES, WEIGHTS


def test_a_fit_finds_the_feature_that_tells_the_evidence_and_is_deterministic() -> None:
    random = np.random.default_rng(5)
    features = [weight.feature for weight in WEIGHTS]
    samples = []
    for _ in range(40):
        rows = random.normal(size=(20, len(WEIGHTS)))
        best = int(rows[:, features.index("words")].argmax())
        samples.append(Sample(rows, [best]))
    weights = dict(zip(FITTED_FEATURES, fit(samples), strict=True))
    assert max(weights, key=lambda feature: weights[feature]) == "words"
    assert list(weights.values()) == fit(samples)
    assert np.isfinite(fit([Sample(np.zeros((3, len(WEIGHTS))), [0, 1, 2])])).all()
