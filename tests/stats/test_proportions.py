"""Intervals of proportions whose trials come in clusters."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from assay.stats.differences import interval
from assay.stats.evidence import Evidence
from assay.stats.proportions import mean_interval


@pytest.mark.parametrize("p", [0.05, 0.3, 0.95])
@pytest.mark.parametrize("concentration", [0.5, 20])
def test_95_of_100_intervals_or_more_contain_the_mean(p, concentration):
    rng = np.random.default_rng(1)
    accuracies = rng.beta(p * concentration, (1 - p) * concentration, (600, 50))
    ends = np.array([mean_interval(parts, 400) for parts in rng.binomial(8, accuracies) / 8])
    covered = ((ends[:, 0] <= p) & (p <= ends[:, 1])).mean()
    assert covered >= 0.95 - 2 * np.sqrt(0.95 * 0.05 / 600)  # two standard errors of the simulation


def test_parts_of_0_and_1_have_about_wilsons_interval():
    parts = np.repeat([0.0, 1.0], [700, 300])
    expected = stats.binomtest(300, 1000).proportion_ci(method="wilson")
    # Student's quantile of 999 degrees of freedom is 1.0012 times the normal one.
    assert mean_interval(parts) == pytest.approx((expected.low, expected.high), abs=2e-4)


def test_many_equal_parts_are_as_sure_as_their_trials():
    narrow, wide = (mean_interval(np.full(40, 0.5), most=n) for n in (4000, 40))
    assert narrow[1] - narrow[0] < 0.2 * (wide[1] - wide[0])
    assert mean_interval(np.zeros(40), 4000)[0] == 0.0
    assert 0.05 < mean_interval(np.zeros(40), 4000)[1] < 0.12


def test_too_few_parts_and_missing_ones_have_no_interval():
    assert np.isnan(mean_interval(np.array([0.5]))).all()
    assert np.isnan(mean_interval(np.array([0.5, np.nan]))).all()


def test_the_report_shows_the_same_interval():
    parts = np.array([0.0, 0.5, 1.0, 0.75])
    items = {str(i): float(v) for i, v in enumerate(parts)}
    assert interval(Evidence("accuracy", 0.5625, items=items, n=16, proportion=True)) == mean_interval(parts, 16)
