"""Spearman's correlation, whole and partial, with intervals and p values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from assay import AssayError
from assay.stats.correlation import spearman
from assay.stats.rank_correlation import partial_spearman, spearman_interval, spearman_p


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
    assert spearman_p(rho, 30) == pytest.approx(p, rel=1e-12)


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
    assert spearman_interval(x, x) == (1.0, 1.0)
    assert np.isnan(spearman_p(0.5, 2)) and spearman_p(1.0, 9) == 0.0
    with pytest.raises(AssayError, match="given is"):
        partial_spearman(x, x, np.ones(5))
