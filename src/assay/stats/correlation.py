"""Correlations of two rows of numbers, and of many rows in resamples that are given as weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy

from assay.core.errors import AssayError

Array = np.ndarray[Any, Any]


def pearson(x: Array, y: Array) -> float:
    """Pearson's correlation r = Σ (x_i − x̄)(y_i − ȳ) / √(Σ (x_i − x̄)²·Σ (y_i − ȳ)²); NaN where a row is constant.

    Example:
        >>> round(pearson(np.array([1, 2, 3]), np.array([1, 2, 4])), 6)      # 3/√(2·14/3)
        0.981981
    """
    x, y = two_rows(x, y)
    if _constant(x) or _constant(y):
        return float("nan")
    return float(np.corrcoef(_below_one(x), _below_one(y))[0, 1])


def spearman(x: Array, y: Array) -> float:
    """Spearman's rank correlation: `pearson` of the ranks, equal values sharing theirs; NaN where a row is constant.

    Example:
        >>> spearman(np.array([1, 2, 3, 4]), np.array([1, 4, 9, 1000]))
        1.0
    """
    x, y = two_rows(x, y)
    return pearson(scipy.stats.rankdata(x), scipy.stats.rankdata(y))


def kendall_tau(x: Array, y: Array) -> float:
    """Kendall's τ_b = Σ sgn(x_i − x_j)·sgn(y_i − y_j) / √(n_x·n_y) over pairs i < j; NaN where a row is constant.

    n_x and n_y are the numbers of pairs not tied in each row. All pairs are held in memory.

    Example:
        >>> kendall_tau(np.array([1, 2, 3, 4]), np.array([0.1, 0.2, 0.4, 0.3]))      # 5 pairs agree, 1 does not
        0.6666666666666666

    Kendall 1945.
    """
    x, y = two_rows(x, y)
    return float(correlation_over_pairs(x[None], y, pairwise_order, np.ones((1, len(y))))[0, 0])


def correlation_over_pairs(xs: Array, y: Array, compare: Callable[[Array], Array], weights: Array) -> Array:
    """Daniels' general coefficient Σ a_ij·b_ij / √(Σ a_ij²·Σ b_ij²) of each row with y, in each resample.

    a and b say how entries i and j compare in x and in y: with `pairwise_order` the coefficient is Kendall's τ_b, with
    `pairwise_difference` Pearson's r. A resample is a weight for each entry (how often it was drawn): a pair (i, j)
    counts w_i·w_j times, as on the list of entries drawn.

    Args:
        xs: The rows to correlate with y, rows × n.
        y: The n numbers that each row is correlated with.
        compare: Function that compares every two entries of a row: n numbers to an n × n array.
        weights: How often each entry was drawn in each resample, resamples × n.

    Returns:
        Rows × resamples; NaN where all entries are alike.

    Example:
        >>> x, y = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0])
        >>> weights = np.array([[1, 1, 1], [2, 0, 1]])      # all three, and the first, the first and the last
        >>> correlation_over_pairs(x[None], y, pairwise_difference, weights).round(6)
        array([[0.981981, 1.      ]])

    Daniels 1944.
    """
    b = compare(y)
    norm = _over_pairs(b**2, weights)
    coefficients = np.empty((len(xs), len(weights)))
    with np.errstate(invalid="ignore"):  # 0/0: all are alike
        for row, x in zip(coefficients, xs, strict=True):
            a = compare(x)
            row[:] = _over_pairs(a * b, weights) / np.sqrt(_over_pairs(a**2, weights) * norm)
    return coefficients


def order(a: Array, b: Array) -> Array:
    """Which of two arrays is larger, entry by entry: sgn(a − b), without the subtraction, which may overflow.

    Example:
        >>> order(np.array([1, 2, 3]), np.array([2, 2, 2]))
        array([-1.,  0.,  1.])
    """
    return (a > b).astype(np.float64) - (a < b)


def pairwise_order(values: Array) -> Array:
    """Which of every two values of a row is larger: sgn(x_i − x_j)."""
    return order(values[:, None], values)


def pairwise_difference(values: Array) -> Array:
    """Differences x_i − x_j of every two values of a row, in units of the largest, so that they cannot overflow."""
    scaled: Array = values / (np.abs(values).max() or 1.0)
    return scaled[:, None] - scaled


def _over_pairs(kernel: Array, weights: Array) -> Array:
    """The weighted sum Σ_ij w_i·w_j·kernel_ij over all pairs, in each resample."""
    total: Array = ((weights @ kernel) * weights).sum(axis=1)
    return total


def two_rows(x: Array, y: Array) -> tuple[Array, Array]:
    """Two rows of numbers; raise an error unless they are of one length, of two or more, and finite."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape or len(x) < 2:
        raise AssayError(f"x is {x.shape} and y is {y.shape}: give two rows of one length, two numbers or more")
    for name, values in (("x", x), ("y", y)):
        if not np.isfinite(values).all():
            raise AssayError(f"{name} has {int((~np.isfinite(values)).sum())} values that are NaN or infinite")
    return x, y


def _constant(values: Array) -> bool:
    return bool((values == values[0]).all())


def _below_one(values: Array) -> Array:
    """The values divided by a power of two, which rounds nothing, so that their squares cannot overflow."""
    scaled: Array = np.ldexp(values, -np.frexp(np.abs(values).max())[1])
    return scaled
