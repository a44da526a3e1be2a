"""Whether two things that were measured together differ: tests of paired differences.

A difference d_i (of fold, repetition, network i) is an advantage where it is positive. p values are two-sided and exact
where that is possible.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from assay.core.errors import AssayError

Array = np.ndarray[Any, Any]


def standard_error(values: Array, axis: int = -1) -> Array:
    """Standard error s/√n of a mean, with n − 1 in s; NaN for a single value.

    Example:
        >>> float(standard_error(np.array([1.0, 2.0, 3.0]))) * 3**0.5
        1.0
    """
    values = np.asarray(values, dtype=np.float64)
    n = values.shape[axis]
    if n < 2:
        return np.full(np.delete(values.shape, axis), np.nan)
    return np.asarray(values.std(axis=axis, ddof=1) / np.sqrt(n))


def t_interval(values: Array) -> tuple[float, float]:
    """95 % interval of a mean, x̄ ± t·s/√n with Student's t of n − 1 degrees of freedom; NaN for fewer than two values.

    Example:
        >>> low, high = t_interval(np.array([1.0, 2.0, 3.0]))
        >>> round(low, 3), round(high, 3)
        (-0.484, 4.484)
    """
    n = len(values)
    if n < 2:
        return float("nan"), float("nan")
    mean, half = float(values.mean()), float(scipy.stats.t.ppf(0.975, n - 1)) * float(standard_error(values))
    return mean - half, mean + half


def paired_t_p(differences: Array) -> float:
    """Two-sided p of the paired t test, t = d̄/(s/√n) with n − 1 degrees of freedom.

    It takes the differences to be independent: folds that are scored on one common test set are not.

    Example:
        >>> round(paired_t_p(np.array([0.1, 0.2, 0.3])), 4)      # t = 2·√3 with 2 degrees of freedom
        0.0742
    """
    d = finite_row(differences)
    return two_sided_p(float(d.mean()), float(standard_error(d)), len(d) - 1)


def corrected_t_p(differences: Array, n_test: int, n_train: int) -> float:
    """Two-sided p of Nadeau and Bengio's corrected resampled t test.

    t = d̄/√((1/J + n_test/n_train)·s²) with J − 1 degrees of freedom, for repeated splits whose training sets overlap.
    Where training sets are disjoint and share one test set, n_test/n_train says nothing of the correlation between the
    differences.

    Args:
        differences: The difference d_j of each of J splits.
        n_test: Number of test instances of a split.
        n_train: Number of training instances of a split.

    Nadeau & Bengio 2003.
    """
    d = finite_row(differences)
    error = float(np.sqrt((1 / len(d) + n_test / n_train) * d.var(ddof=1)))
    return two_sided_p(float(d.mean()), error, len(d) - 1)


def wilcoxon_p(differences: Array) -> float:
    """Exact two-sided p of Wilcoxon's signed ranks: zeros are dropped, equal sizes share their rank.

    Of n differences it cannot fall below 2/2ⁿ: 0.00195 for 10.

    Example:
        >>> round(wilcoxon_p(np.arange(1.0, 11.0)), 5)
        0.00195

    Wilcoxon 1945.
    """
    d = finite_row(differences)
    d = d[d != 0]
    doubled = np.rint(2 * scipy.stats.rankdata(np.abs(d))).astype(int)  # shared ranks are halves
    ways = np.ones(1)
    for rank in doubled:  # of all 2^n signs, how many give each sum of positive ranks
        ways = np.append(ways, np.zeros(rank)) + np.append(np.zeros(rank), ways)
    positive = int(doubled[d > 0].sum())
    return float(min(1.0, 2 * min(ways[: positive + 1].sum(), ways[positive:].sum()) / ways.sum()))


def sign_p(differences: Array) -> float:
    """Exact two-sided p of the sign test: zeros are dropped.

    Example:
        >>> sign_p(np.array([0.1, 0.3, 0.2, 0.4, 0.0]))      # 2/2⁴
        0.125
    """
    d = finite_row(differences)
    d = d[d != 0]
    return float(scipy.stats.binomtest(int((d > 0).sum()), len(d)).pvalue) if len(d) else 1.0


def two_sided_p(mean: float, error: float, df: float | None = None) -> float:
    """Two-sided p of a mean with this standard error, by Student's t or, without degrees of freedom, the normal law.

    Example:
        >>> round(two_sided_p(-1.959964, 1.0), 6), two_sided_p(0.1, 0.0)
        (0.05, 0.0)
    """
    return min(1.0, 2 * one_sided_p(abs(mean), error, df))


def one_sided_p(mean: float, error: float, df: float | None = None) -> float:
    """One-sided p of a mean above 0; where there is no error, the sign of the mean decides (0, ½ or 1).

    Example:
        >>> round(one_sided_p(1.644854, 1.0), 6)
        0.05
    """
    if error == 0:
        return 0.0 if mean > 0 else 0.5 if mean == 0 else 1.0
    return float(scipy.stats.norm.sf(mean / error) if df is None else scipy.stats.t.sf(mean / error, df))


def finite_row(values: Array) -> Array:
    """The values as floating-point numbers in a row, of which there must be two or more, all finite."""
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all():
        raise AssayError(f"paired values must be two or more finite numbers in a row, received {values!r}")
    return values
