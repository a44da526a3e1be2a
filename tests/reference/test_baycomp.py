"""The Bayesian correlated t test against its authors' own package, and against the integral that defines it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, special

from assay.stats.equivalence import correlated_t, student_posterior


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rope", [0.01, 0.1])
def test_probabilities_equal_those_of_baycomp(seed, rope):
    baycomp = pytest.importorskip("baycomp")
    rng = np.random.default_rng(seed)
    a, b = rng.normal(0.6, 0.05, size=(2, 10))
    ours = correlated_t(b - a, rho=1 / 10, rope=rope)  # baycomp: ρ = 1/K, better = its second argument
    worse, equal, better = baycomp.CorrelatedTTest.probs(a, b, rope=rope)
    # Both evaluate the same distribution function: what differs is rounding.
    np.testing.assert_allclose([ours.worse, ours.equal, ours.better], [worse, equal, better], atol=1e-12)


@pytest.mark.parametrize(("mean", "variance", "df"), [(0.0, 1.0, 1), (0.03, 0.0004, 9), (-0.2, 0.01, 4)])
def test_probabilities_equal_the_integrated_density(mean, variance, df):
    def density(x: float) -> float:
        scale = np.sqrt(variance)
        norm = special.gamma((df + 1) / 2) / (special.gamma(df / 2) * np.sqrt(df * np.pi) * scale)
        return float(norm * (1 + ((x - mean) / scale) ** 2 / df) ** (-(df + 1) / 2))

    rope = 0.05
    ours = student_posterior(mean, variance, df, rope)
    # The quadrature itself promises about 1e-8.
    assert ours.equal == pytest.approx(integrate.quad(density, -rope, rope, points=[mean])[0], abs=1e-7)
    assert ours.better == pytest.approx(integrate.quad(density, rope, np.inf)[0], abs=1e-6)
    assert ours.better + ours.equal + ours.worse == pytest.approx(1, abs=1e-12)
