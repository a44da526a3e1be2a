"""Spearman's correlation, whole and partial, with intervals and p values."""

from __future__ import annotations

from itertools import permutations
from math import factorial

import numpy as np
import pytest
from scipy import stats

from assay import AssayError
from assay.stats.correlation import spearman
from assay.stats.exact_spearman import least_spearman_p
from assay.stats.rank_correlation import partial_spearman, spearman_interval, spearman_p


def test_groups_of_equal_pairs_count_as_one_pair_each():
    rng = np.random.default_rng(11)
    x, y, z = rng.normal(size=(3, 25))
    thrice = [np.repeat(row, 3) for row in (x, y, z)]
    groups = np.repeat(np.arange(25), 3)
    assert spearman_interval(*thrice[:2], groups=groups) == pytest.approx(spearman_interval(x, y))
    assert spearman_interval(*thrice, groups=groups) == pytest.approx(spearman_interval(x, y, z))
    assert spearman_interval(*thrice[:2])[0] > spearman_interval(x, y)[0]  # as if 75 pairs said so


def test_variables_that_follow_from_each_other_count_once():
    rng = np.random.default_rng(12)
    x, y, z = rng.normal(size=(3, 30))
    twice = np.stack([z, -z, 3 * z + 1], axis=1)
    assert spearman_interval(x, y, twice) == pytest.approx(spearman_interval(x, y, z))


def test_one_variable_held_constant_is_the_closed_form():
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, y, z = rng.integers(0, 8, (3, 25)).astype(float)  # with ties
        xy, xz, yz = spearman(x, y), spearman(x, z), spearman(y, z)
        expected = (xy - xz * yz) / np.sqrt((1 - xz**2) * (1 - yz**2))
        assert partial_spearman(x, y, z) == pytest.approx(expected, abs=1e-12)


def test_several_variables_are_the_inverse_of_the_correlation_matrix():
    rng = np.random.default_rng(1)
    columns = rng.normal(size=(40, 5)) @ rng.normal(size=(5, 5))
    inverse = np.linalg.inv(stats.spearmanr(columns).statistic)
    expected = -inverse[0, 1] / np.sqrt(inverse[0, 0] * inverse[1, 1])
    assert partial_spearman(columns[:, 0], columns[:, 1], columns[:, 2:]) == pytest.approx(expected, abs=1e-12)


def test_p_is_that_of_scipy():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 30))
    rho, p = stats.spearmanr(x, y)
    assert spearman(x, y) == pytest.approx(rho, abs=1e-14)
    assert spearman_p(x, y) == pytest.approx(p, rel=1e-12)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("n", [3, 4, 6])
def test_p_of_few_pairs_is_the_share_of_all_orders_that_do_as_well(n, tied):
    rng = np.random.default_rng(n)
    for _ in range(5):
        x, y = rng.random((2, n)) if not tied else rng.integers(0, 3, (2, n)) + np.eye(n)[0]
        sizes = np.array([abs(spearman(x, np.array(order))) for order in permutations(y)])
        observed = abs(spearman(x, y))
        if np.isfinite(observed):
            assert spearman_p(x, y) == pytest.approx((sizes >= observed - 1e-12).mean(), rel=1e-12)
            assert least_spearman_p(x, y) == pytest.approx((sizes >= sizes.max() - 1e-12).mean(), rel=1e-9)


def test_a_perfect_correlation_of_few_pairs_is_not_sure():
    x = np.arange(4.0)
    assert spearman_p(x, x) == spearman_p(x, -x) == 2 / 24
    assert spearman_p(np.arange(20), np.arange(20)) == pytest.approx(2 / factorial(20), rel=1e-9)
    outlier = np.arange(20) == 3
    assert spearman_p(outlier, outlier) == pytest.approx(1 / 20, rel=1e-9)
    z = np.array([1.0, 3, 0, 2])
    assert spearman_p(x, x, z) == 2 / factorial(3)  # the partial correlation is 1
    low, high = spearman_interval(x, x)
    assert low < -0.9 and high == 1 and spearman_interval(x, -x) == (-1, -low)
    low, high = spearman_interval(np.arange(95), np.arange(95))
    assert 0.999 < low < high == 1


def test_p_keeps_its_level_for_any_number_of_pairs():
    rng = np.random.default_rng(5)
    for n in (4, 5, 6, 8, 10, 11):
        p = np.array([spearman_p(*rng.random((2, n))) for _ in range(400)])
        assert p.min() > 0
        for level in (0.05, 0.005):
            assert (p <= level).mean() <= level + 3 * np.sqrt(level / 400)  # three standard errors of the simulation


@pytest.mark.parametrize("curved", [False, True])
@pytest.mark.parametrize("r", [0.0, 0.8])
def test_95_of_100_intervals_contain_the_correlation(r, curved):
    rng = np.random.default_rng(3)

    def draw(n):
        x = rng.normal(size=n)
        y = r * x + np.sqrt(1 - r**2) * rng.normal(size=n)
        return (np.exp(2 * x), y + 0.5 * x**2) if curved else (x, y)

    true = spearman(*draw(100_000))
    ends = np.array([spearman_interval(*draw(30)) for _ in range(100)])
    covered = ((ends[:, 0] <= true) & (true <= ends[:, 1])).mean()
    assert covered >= 0.95 - 2 * np.sqrt(0.95 * 0.05 / 100)  # two standard errors of the simulation


def test_what_is_undefined_is_nan():
    x = np.arange(6.0)
    assert np.isnan(partial_spearman(x, x**2, x))  # nothing is left to explain
    assert np.isnan(spearman_interval(x, np.ones(6))).all()
    assert np.isnan(spearman_interval(x[:3], x[[1, 0, 2]])).all()
    assert np.isnan(spearman_p(x[:2], x[:2])) and np.isnan(spearman_p(x, np.ones(6)))
    assert np.isnan(spearman_p(x, x**2, x))
    with pytest.raises(AssayError, match="given is"):
        partial_spearman(x, x, np.ones(5))
