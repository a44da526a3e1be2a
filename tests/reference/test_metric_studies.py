"""Rank correlations, corrections for many tests and cosines, against pingouin, statsmodels and scikit-learn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from assay.measures.matching import cosines, match
from assay.stats.multiplicity import bonferroni, holm
from assay.stats.proportions import mean_interval
from assay.studies import metric_agreement

# What pingouin 0.7.0 gives for the table of `networks`: correlation and p, with nothing, one and two variables given.
PINGOUIN = {
    (): (-0.24933066150176056, 0.18394366163748704),
    ("rate",): (0.13634652357625998, 0.4806514711426445),
    ("rate", "depth"): (0.20958486482670774, 0.28443888059878575),
}


def networks() -> pd.DataFrame:
    """Thirty networks, with ties in both metrics and in one of the variables given."""
    rng = np.random.default_rng(7)
    rate = rng.normal(size=30)
    depth = rng.integers(1, 5, 30).astype(float)
    mse = (rate + rng.normal(size=30)).round(1)
    hms = (-rate + 0.5 * depth + rng.normal(size=30)).round(1)
    return pd.DataFrame({"mse": mse, "hms": hms, "rate": rate, "depth": depth})


@pytest.mark.parametrize("given", PINGOUIN)
def test_correlations_equal_those_of_pingouin(given):
    row = metric_agreement(networks(), ["mse", "hms"], given=given).iloc[0]
    rho, p = PINGOUIN[given]
    # Pingouin inverts the covariance of ranks, this fits by least squares: they differ by rounding.
    assert row.rho == pytest.approx(rho, abs=1e-12) and row.p == pytest.approx(p, rel=1e-10)


def test_corrections_equal_those_of_statsmodels():
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    p = np.random.default_rng(0).random(12) ** 3
    for ours, name in ((bonferroni, "bonferroni"), (holm, "holm")):
        np.testing.assert_allclose(ours(p), multitest.multipletests(p, method=name)[1], rtol=1e-12)


def test_cosines_and_matches_equal_those_of_scikit_learn():
    pairwise = pytest.importorskip("sklearn.metrics.pairwise")
    features = np.random.default_rng(0).normal(size=(40, 300))
    ours = cosines(torch.from_numpy(features))
    np.testing.assert_allclose(ours, pairwise.cosine_similarity(features), atol=1e-14)
    expected = pairwise.cosine_similarity(features[:1], features[1:]).argmax()
    assert match(features[0], features[1:]).argmax() == expected


def test_wilsons_interval_equals_that_of_statsmodels_for_independent_trials():
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    low, high = proportion.proportion_confint(6000, 20000, method="wilson")
    # Student's quantile of 19,999 degrees of freedom and the part of ½ that is added differ by less than 1e-5.
    assert mean_interval(np.repeat([0.0, 1.0], [14000, 6000])) == pytest.approx((low, high), abs=1e-5)
