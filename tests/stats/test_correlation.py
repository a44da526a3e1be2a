from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from assay import AssayError
from assay.stats.bootstrap import picks
from assay.stats.correlation import (
    correlation_over_pairs,
    kendall_tau,
    pairwise_difference,
    pairwise_order,
    pearson,
    spearman,
)

whole = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=20)
ALL = [kendall_tau, pearson, spearman]


def varied(*columns):
    return all(len(set(c)) > 1 for c in columns)


def test_kendall_of_a_worked_example_with_ties():
    """1 < 2 = 2 < 3 against 1 < 2 < 3 = 3: 4 pairs agree, none disagrees, 5 are not tied in each."""
    assert kendall_tau([1, 2, 2, 3], [1, 2, 3, 3]) == pytest.approx(4 / 5, rel=1e-15)


def test_spearman_of_a_worked_example_without_ties():
    """1 − 6·Σd²/(n(n² − 1)) with d = 0, 1, 1, 0."""
    assert spearman([1, 2, 3, 4], [10, 30, 20, 40]) == pytest.approx(1 - 6 * 2 / (4 * 15), rel=1e-15)


@pytest.mark.parametrize(
    ("ours", "theirs"), [(kendall_tau, stats.kendalltau), (pearson, stats.pearsonr), (spearman, stats.spearmanr)]
)
@given(pairs=whole)
def test_correlations_equal_those_of_scipy(ours, theirs, pairs):
    x, y = zip(*pairs, strict=True)
    assume(varied(x, y))
    # Whole numbers but for a root and a quotient.
    assert ours(x, y) == pytest.approx(theirs(x, y).statistic, abs=1e-13)


@pytest.mark.parametrize(("function", "compare"), [(kendall_tau, pairwise_order), (pearson, pairwise_difference)])
@given(pairs=whole, seed=st.integers(0, 2**32 - 1))
def test_a_resample_by_weights_equals_the_list_of_its_entries(function, compare, pairs, seed):
    x, y = np.array(pairs, dtype=float).T
    drawn = list(picks(len(y), 3, seed))
    weights = np.stack([np.bincount(units, minlength=len(y)) for units in drawn])
    expected = [function(x[units], y[units]) for units in drawn]
    # Rounding. A resample whose entries are all alike has no correlation either way.
    np.testing.assert_allclose(correlation_over_pairs(x[None], y, compare, weights)[0], expected, atol=1e-12)


def test_every_row_is_correlated_for_itself():
    rng = np.random.default_rng(0)
    xs, y, weights = rng.normal(size=(4, 15)), rng.normal(size=15), rng.integers(3, size=(6, 15))
    together = correlation_over_pairs(xs, y, pairwise_difference, weights)
    apart = [correlation_over_pairs(x[None], y, pairwise_difference, weights)[0] for x in xs]
    np.testing.assert_array_equal(together, apart)


@pytest.mark.parametrize("function", ALL)
def test_numbers_whose_squares_overflow(function):
    x, y = np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.0, 3.0])
    assert function(x * 1e300, y) == pytest.approx(function(x, y), rel=1e-14)
    assert function(x, y * 1e-300) == pytest.approx(function(x, y), rel=1e-14)
    assert function(np.array([-1.5e308, 1.5e308]), np.array([0, 1])) == pytest.approx(1, rel=1e-15)


@pytest.mark.parametrize("function", ALL)
def test_constants_have_no_correlation(function):
    assert np.isnan(function([0.1, 0.1, 0.1], [1, 2, 3])) and np.isnan(function([1, 2, 3], [0.1, 0.1, 0.1]))


@pytest.mark.parametrize("function", ALL)
def test_wrong_calls_say_what_is_wrong(function):
    with pytest.raises(AssayError, match=r"x is \(3,\) and y is \(2,\)"):
        function([1, 2, 3], [1, 2])
    with pytest.raises(AssayError, match="two numbers or more"):
        function([1], [1])
    with pytest.raises(AssayError, match="y has 1 values that are NaN or infinite"):
        function([1, 2, 3], [1, np.nan, 3])
