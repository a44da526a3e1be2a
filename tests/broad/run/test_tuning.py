from __future__ import annotations

import numpy as np
import pytest

from assay.broad.metrics import METRICS
from assay.broad.run.tuning import train_and_optimize_classifier
from assay.broad.systems.classifiers.linear import LinearSVR


@pytest.mark.requirement("D6", "G4")
def test_tuning_uses_the_metric_and_does_not_fit_again():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 4))
    y = np.clip(np.round(3 + x[:, 0]), 1, 5)
    classifier = LinearSVR(grid={"C": [1e-6, 1.0]})
    tuned = train_and_optimize_classifier(classifier, x[:30], y[:30], x[30:], y[30:], METRICS["RMSE"])
    assert tuned.chosen == {"C": 1.0}
    alone = classifier.with_settings(C=1.0).fit(x[:30], y[:30])
    np.testing.assert_array_equal(tuned.classifier.predict(x), alone.predict(x))
    assert tuned.score == pytest.approx(METRICS["RMSE"].function(y[30:], alone.predict(x[30:])))
