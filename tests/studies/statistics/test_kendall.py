from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

import direct
from assay import AssayError
from assay.studies import GranulatedKendall, KendallTau, Pearson, granulated_kendall, kendall_tau, pearson
from assay.studies.statistics.grid import Grid
from corpora import corpora, full_grid, named, relaxed

rows = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=20)


def varied(*columns):
    return all(len(set(c)) > 1 for c in columns)


# -- over all networks ----------------------------------------------------------------------------------


def test_kendall_of_a_worked_example_with_ties():
    """1 < 2 = 2 < 3 against 1 < 2 < 3 = 3: 4 pairs agree, none disagrees, 5 are not tied in each."""
    assert kendall_tau([1, 2, 2, 3], [1, 2, 3, 3]) == pytest.approx(4 / 5, rel=1e-15)


@relaxed
@given(rows)
def test_kendall_is_tau_b_of_scipy(pairs):
    measure, gap = zip(*pairs, strict=True)
    assume(varied(measure, gap))
    # Whole numbers but for one root and one quotient.
    assert kendall_tau(measure, gap) == pytest.approx(stats.kendalltau(measure, gap).statistic, rel=1e-12, abs=1e-15)


@relaxed
@given(rows)
def test_pearson_is_that_of_numpy(pairs):
    measure, gap = zip(*pairs, strict=True)
    assume(varied(measure, gap))
    # Small whole numbers: covariances are exact to a few ulp of numbers up to 25.
    assert pearson(measure, gap) == pytest.approx(np.corrcoef(measure, gap)[0, 1], abs=1e-13)


def test_pearson_of_numbers_whose_squares_overflow():
    measure, gap = np.array([1.0, 2.0, 4.0]), [1.0, 2.0, 3.0]
    assert pearson(measure * 1e300, gap) == pytest.approx(pearson(measure, gap), rel=1e-14)
    assert kendall_tau([-1.5e308, 1.5e308], [0, 1]) == 1


@pytest.mark.parametrize(("function", "statistic"), [(kendall_tau, KendallTau()), (pearson, Pearson())])
@relaxed
@given(pairs=rows, seed=st.integers(0, 2**32 - 1))
def test_a_resample_by_weights_equals_the_list_of_its_networks(function, statistic, pairs, seed):
    measure, gap = np.array(pairs, dtype=float).T
    n = len(gap)
    chosen = np.random.default_rng(seed).integers(n, size=n)
    weights = np.bincount(chosen, minlength=n)[None].astype(float)
    found = statistic.resampled(measure[None], gap, Grid.of(None, n), weights)[0, 0]
    if varied(measure[chosen], gap[chosen]):
        assert found == pytest.approx(function(measure[chosen], gap[chosen]), abs=1e-12)  # rounding
    else:
        assert np.isnan(found)


@pytest.mark.parametrize("function", [kendall_tau, pearson])
def test_constants_have_no_correlation(function):
    with pytest.raises(AssayError, match="measure is 2 for all 3 networks"):
        function([2, 2, 2], [1, 2, 3])
    with pytest.raises(AssayError, match="gap is 2 for all 3 networks"):
        function([1, 2, 3], [2, 2, 2])
    with pytest.raises(AssayError, match="NaN or infinite for network 1 "):
        function([1, np.nan, 3], [2, 3, 2])


# -- where one hyper-parameter changes ------------------------------------------------------------------


def test_a_measure_that_follows_one_hyperparameter_only():
    a, b, c = full_grid(3, 4, 2)
    gap = np.array(a) * 100 + np.array(b) * 10 + np.array(c)
    found = granulated_kendall(b, gap, named([a, b, c]))
    assert found.by_hyperparameter == {"h0": 0.0, "h1": 1.0, "h2": 0.0} and found.value == pytest.approx(1 / 3)


def test_groups_count_the_same_whatever_their_size():
    """h0 changes in two groups: three networks in order (τ = 1), two in disorder (τ = −1)."""
    columns = {"h0": [0, 1, 2, 0, 1], "h1": [0, 0, 0, 1, 1]}
    found = granulated_kendall([1, 2, 3, 2, 1], [1, 2, 3, 1, 2], columns)
    assert found.by_hyperparameter["h0"] == 0


def test_seeds_of_one_setting_are_not_compared():
    columns = {"h": [0, 0, 1, 1]}
    assert granulated_kendall([2, 1, 4, 3], [1, 2, 3, 4], columns).value == 1


@relaxed
@given(corpora())
def test_the_coefficient_equals_the_definition_taken_pair_by_pair(corpus):
    measure, gap, columns = corpus
    expected = direct.granulated(measure, gap, columns)
    if None in expected:
        with pytest.raises(AssayError, match=f"no two networks differ in 'h{expected.index(None)}' alone"):
            granulated_kendall(measure, gap, named(columns))
    else:
        found = granulated_kendall(measure, gap, named(columns))
        # Means of a few ratios of small whole numbers: rounding.
        assert list(found.by_hyperparameter.values()) == pytest.approx(expected, abs=1e-13)
        assert found.value == pytest.approx(sum(expected) / len(expected), abs=1e-13)


@relaxed
@given(corpora(), st.integers(0, 2**32 - 1))
def test_a_resample_of_the_granulated_coefficient_equals_the_list_of_its_networks(corpus, seed):
    measure, gap, columns = corpus
    n = len(gap)
    chosen = np.random.default_rng(seed).integers(n, size=n)
    weights = np.bincount(chosen, minlength=n)[None].astype(float)
    grid = Grid.of(named(columns), n)
    found = GranulatedKendall().resampled(np.array([measure]), np.array(gap), grid, weights)[0, 0]
    listed = [[column[i] for i in chosen] for column in (measure, gap, *columns)]
    defined = [v for v in direct.granulated(listed[0], listed[1], listed[2:]) if v is not None]
    assert found == pytest.approx(np.mean(defined) if defined else np.nan, abs=1e-13, nan_ok=True)


def test_the_granulated_coefficient_needs_hyperparameters():
    with pytest.raises(AssayError, match="hyperparameters is empty"):
        granulated_kendall([1, 2], [1, 2], {})
