"""Whether two things are practically equal, which "no significant difference" does not show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from assay.core.errors import AssayError
from assay.stats.paired import Array, finite_row, one_sided_p


def noninferiority_p(difference: float, variance: float, margin: float, df: float | None = None) -> float:
    """One-sided p of "worse by the margin or more": small where a system is at most a little worse.

    Args:
        difference: Estimated advantage of the system.
        variance: Variance of the estimate.
        margin: Largest loss that still counts as comparable.
        df: Degrees of freedom of the variance, for Student's t; None for the normal law.

    Example:
        >>> round(noninferiority_p(-0.01, 0.005**2, 0.02), 4)      # (0.02 − 0.01)/0.005 = 2
        0.0228
    """
    if not margin >= 0:
        raise AssayError(f"margin={margin} is not a size: give the largest loss that still counts as comparable")
    return one_sided_p(difference + margin, float(np.sqrt(variance)), df)


def equivalence_p(difference: float, variance: float, margin: float, df: float | None = None) -> float:
    """p of two one-sided tests (TOST): small where the difference is within the margin either way.

    Arguments are those of `noninferiority_p`.

    Example:
        >>> round(equivalence_p(0.01, 0.005**2, 0.02), 4)      # the nearer end: (0.02 − 0.01)/0.005 = 2
        0.0228

    Schuirmann 1987.
    """
    above = noninferiority_p(difference, variance, margin, df)
    return max(above, noninferiority_p(-difference, variance, margin, df))


def minimum_detectable_difference(
    variance: float, level: float = 0.05, power: float = 0.8, df: float | None = None
) -> float:
    """The true difference that a test of this level detects with this power: (z_{1−level/2} + z_{power})·√v.

    At the default level and power it is about 2.8·√v. Quantiles of Student's t take the place of z where degrees of
    freedom are given, which is exact to within a few per cent from four degrees of freedom on.

    Example:
        >>> round(minimum_detectable_difference(1.0), 3)
        2.802
    """
    law = scipy.stats.norm if df is None else scipy.stats.t(df)
    return float((law.ppf(1 - level / 2) + law.ppf(power)) * np.sqrt(variance))


@dataclass(frozen=True)
class Posterior:
    """Probabilities that a system is better, practically equal (within the region of equivalence) or worse."""

    better: float
    equal: float
    worse: float


def student_posterior(mean: float, variance: float, df: float, rope: float) -> Posterior:
    """Probabilities above, in and below ±rope of a difference that follows St(df, mean, variance).

    Args:
        mean: Centre of the distribution.
        variance: Squared scale of the distribution; with 0 the difference is known to be the mean.
        df: Degrees of freedom of the distribution.
        rope: Half-width of the region of practical equivalence.

    Example:
        >>> round(student_posterior(0.0, 1.0, 1, 1.0).equal, 6)      # half of a Cauchy variable lies in ±1
        0.5
    """
    if rope < 0:
        raise AssayError(f"rope={rope} is below 0: give the half-width of the region of practical equivalence")
    if variance == 0:
        better, worse = float(mean > rope), float(mean < -rope)
    else:
        law = scipy.stats.t(df, mean, np.sqrt(variance))
        better, worse = float(law.sf(rope)), float(law.cdf(-rope))
    return Posterior(better, max(0.0, 1 - better - worse), worse)


def correlated_t(differences: Array, rho: float, rope: float) -> Posterior:
    """Bayesian correlated t test: posterior St(K − 1, d̄, s²·(1/K + ρ/(1 − ρ))).

    Args:
        differences: The difference d_i of each fold or repetition.
        rho: Correlation between the differences; the test share 1/K in ordinary cross-validation.
        rope: Half-width of the region of practical equivalence.

    Benavoli, Corani, Demšar & Zaffalon 2017.
    """
    d = finite_row(differences)
    if not 0 <= rho < 1:
        raise AssayError(f"rho={rho} is not a correlation in [0, 1): use the share of data in a test fold")
    return student_posterior(float(d.mean()), float(d.var(ddof=1) * (1 / len(d) + rho / (1 - rho))), len(d) - 1, rope)
