from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from assay.stats.permutation import permutation_p
from assay.stats.ranks import WeightedRanks, doubled_ranks_of_whole_numbers, ranks

ROWS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), min_size=1, max_size=25)  # values, how often


@given(st.lists(st.integers(-3, 3) | st.floats(-2, 2), min_size=1, max_size=30))
def test_ranks_equal_scipy_with_and_without_ties(values):
    rows = np.array([values, sorted(values)], dtype=float)
    np.testing.assert_array_equal(ranks(rows), stats.rankdata(rows, axis=1))


@given(ROWS)
def test_weighted_ranks_are_those_of_the_list_with_repetitions(entries):
    values, weights = np.array(entries).T
    expected = 2 * stats.rankdata(np.repeat(values, weights))
    present = weights > 0
    for doubled in (
        WeightedRanks(np.array([values, values]) / 7).doubled(weights),
        doubled_ranks_of_whole_numbers(np.array([values, values]), weights),
    ):
        for row in doubled:
            np.testing.assert_array_equal(np.repeat(row[present], weights[present]), expected)


def test_a_permutation_test_counts_the_observed_order_and_keeps_its_level():
    assert permutation_p(0.5, np.zeros(99)) == pytest.approx(0.01)
    assert permutation_p(np.array([0.0, 2.0]), np.array([[1.0, 1.0]])).tolist() == [1.0, 0.5]
    rng = np.random.default_rng(0)
    p = permutation_p(rng.normal(size=2000), rng.normal(size=(19, 2000)))
    # Under the null hypothesis P(p ≤ 0.05) is 1/20; its standard error over 2,000 tests is 0.005.
    assert (p <= 0.05).mean() == pytest.approx(0.05, abs=0.015)
