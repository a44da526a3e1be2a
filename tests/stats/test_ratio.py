"""Ratios of sums over parts: what a part adds, and an interval that holds the ratio as often as it says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from assay import AssayError
from assay.stats.ratio import ratio_interval, ratio_parts


def test_the_mean_of_the_parts_is_the_ratio_and_equal_counts_give_a_plain_mean():
    rng = np.random.default_rng(0)
    sums, counts = rng.random(7), rng.integers(1, 9, 7)
    assert ratio_parts(sums, counts).mean() == pytest.approx(sums.sum() / counts.sum(), rel=1e-14)
    low, high = ratio_interval(sums, np.full(7, 2))
    assert (low, high) == pytest.approx(stats.t.interval(0.95, 6, sums.mean() / 2, stats.sem(sums / 2)), rel=1e-12)


def test_of_one_part_there_is_no_interval_and_an_empty_part_is_named():
    assert np.isnan(ratio_interval(np.array([1.0]), np.array([3]))).all()
    with pytest.raises(AssayError, match="a count above 0"):
        ratio_parts(np.array([1.0, 2.0]), np.array([1, 0]))


@pytest.mark.parametrize(("n", "least"), [(6, 0.89), (12, 0.89), (40, 0.92)])
def test_the_interval_covers(n, least):
    """Errors of clips are skewed (here log-normal, σ = 0.5) and clips differ in length up to fourfold.

    Simulated coverage over 2,000 draws: 0.92 with 6 scenes, 0.91 with 12 and 0.94 with 40; its standard error is 0.6 %,
    and the bounds lie three below.
    """
    rng = np.random.default_rng(n)
    held = 0
    for _ in range(2000):
        counts = rng.integers(5, 21, n)
        means = rng.lognormal(-0.125, 0.5, n)
        low, high = ratio_interval(means * counts, counts)
        held += low <= 1 <= high
    assert held / 2000 >= least
