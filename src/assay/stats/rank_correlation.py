"""Rank correlations with their uncertainty: intervals and p values of Spearman's ρ, also given other variables."""

from __future__ import annotations

from collections.abc import Callable
from math import atanh, factorial, sqrt, tanh
from typing import Any

import numpy as np
import scipy

from assay.core.errors import AssayError
from assay.stats.correlation import pearson, spearman, two_rows
from assay.stats.exact_spearman import exact_spearman_p, least_spearman_p
from assay.stats.ranks import ranks

Array = np.ndarray[Any, Any]
NAN = float("nan")
EXACT_UP_TO = 10
"""Up to so many pairs p is counted over all their orders."""
_ALMOST_ONE = 1 - 1e-6
_ROUNDING = 1e-12  # of a correlation


def partial_spearman(x: Array, y: Array, given: Array) -> float:
    """Spearman's correlation of x and y at equal values of other variables; NaN where those leave nothing to explain.

    Pearson's correlation of what the ranks of x and of y have left after the ranks of the other variables, and a
    constant, were fitted to them by least squares. For one variable z it is
    (ρ_xy − ρ_xz·ρ_yz) / √((1 − ρ_xz²)(1 − ρ_yz²)).

    Args:
        x: Numbers, n.
        y: Numbers, n.
        given: The other variables, n or n × k.

    Example:
        >>> x, y, z = np.array([1, 2, 3, 4, 5]), np.array([2, 1, 4, 3, 5]), np.array([1, 3, 2, 5, 4])
        >>> round(partial_spearman(x, y, z), 6)      # (0.8 − 0.8·0.3)/√((1 − 0.64)(1 − 0.09))
        0.978399
    """
    x, y = two_rows(x, y)
    others = np.asarray(given, dtype=np.float64)
    others = others[:, None] if others.ndim == 1 else others
    if others.ndim != 2 or len(others) != len(x) or not np.isfinite(others).all():
        raise AssayError(f"given is {others.shape}, and must have a finite row for each of {len(x)} values")
    return float(_partial(x[None], y, others)[0])


def spearman_interval(
    x: Array, y: Array, given: Array | None = None, confidence: float = 0.95, groups: Array | None = None
) -> tuple[float, float]:
    """Interval of Spearman's ρ, or of the partial one: tanh(atanh ρ ± t·s), s from leaving out one pair at a time.

    s² = (n − 1)/n·Σ (z_i − z̄)² is the jackknife's variance of z = atanh ρ, z_i being z without pair i, and t Student's
    quantile of n − 2 − k degrees of freedom with k variables held constant. s is at least Bonett & Wright's standard
    error √((1 + ρ²/2)/(n − 3 − k)), which takes the pairs to be normal but for a monotone change of each scale.

    In simulations of 15, 40 and 95 pairs with ρ from 0 to 0.95, 96 to 98 % of these intervals contain ρ for normal
    pairs (Fisher's 87 to 95 %), and 94 to 99 % for pairs in a curved relation (Bonett & Wright's 84 to 95 %). Of
    intervals from 4 to 10 normal pairs 97 to 100 % do, with ρ up to 0.99.

    Of a ρ of 1, which few pairs have often by chance, the jackknife and atanh say nothing. It is taken as the largest ρ
    below 1 that so many pairs can have, 1 − 12/(n³ − n), with Bonett & Wright's error, and the upper end as 1; and a ρ
    of −1 likewise.

    Pairs of one group are not independent of each other: whole groups are then left out, and n is their number, as if
    the pairs of a group said the same.

    Args:
        x: Numbers, n.
        y: Numbers, n.
        given: Variables that are held constant, n or n × k; None for none. Of those that follow from each other, k
            counts the ones that do not.
        confidence: How often such intervals contain the correlation.
        groups: The group of each pair; by default each is its own.

    Returns:
        Lower and upper end; NaN for fewer than 4 + k pairs or groups, or where ρ is undefined.

    Example:
        >>> x, y = np.arange(12.0), np.array([1.0, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10])
        >>> low, high = spearman_interval(x, y)
        >>> round(low, 2), round(high, 2)
        (0.77, 0.99)

    Miller 1974 (the jackknife of z); Bonett & Wright 2000.
    """
    x, y = two_rows(x, y)
    low, high = spearman_intervals(x[None], y, given, confidence, groups)[0]
    return float(low), float(high)


def spearman_intervals(
    rows: Array,
    y: Array,
    given: Array | None = None,
    confidence: float = 0.95,
    groups: Array | None = None,
    correlations: Callable[[Array, Array, Array], Array] | None = None,
) -> Array:
    """`spearman_interval` of each row and y: rows × 2. What is held constant is looked at once for all rows.

    ``correlations`` are of rows and y at equal values of what is given, if not the partial ones (`partial_spearman`).

    Example:
        >>> y = np.array([1.0, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10])
        >>> spearman_intervals(np.stack([np.arange(12.0), -np.arange(12.0)]), y).round(2).tolist()
        [[0.77, 0.99], [-0.99, -0.77]]
    """
    rows, y = np.asarray(rows, dtype=np.float64), np.asarray(y, dtype=np.float64)
    others = None if given is None else np.asarray(given, dtype=np.float64).reshape(len(y), -1)
    group = np.arange(len(y)) if groups is None else np.unique(groups, return_inverse=True)[1]
    n = int(group.max()) + 1
    held = 0 if others is None else int(np.linalg.matrix_rank(others - others.mean(axis=0)))
    freedom = n - 2 - held
    if freedom < 2:
        return np.full((len(rows), 2), NAN)
    correlate = correlations or _partial

    def rhos(kept: Array | slice) -> Array:
        return _plain(rows[:, kept], y[kept]) if others is None else correlate(rows[:, kept], y[kept], others[kept])

    left_out = np.array([rhos(group != i) for i in range(n)]).T
    quantile = float(scipy.stats.t.ppf((1 + confidence) / 2, freedom))
    each = zip(rhos(slice(None)), left_out, strict=True)
    return np.array([_ends(rho, without, n, freedom, quantile) for rho, without in each])


def _ends(rho: float, left_out: Array, n: int, freedom: int, quantile: float) -> tuple[float, float]:
    """The interval of a ρ, from those without each of n pairs or groups."""
    if not np.isfinite(rho):
        return NAN, NAN
    if abs(rho) >= 1 - _ROUNDING:
        below = 1 - 12 / (n**3 - n)
        end = tanh(atanh(below) - quantile * sqrt((1 + below**2 / 2) / (freedom - 1)))
        return (end, 1.0) if rho > 0 else (-1.0, -end)
    z = np.arctanh(np.clip(left_out, -_ALMOST_ONE, _ALMOST_ONE))
    jackknife = (n - 1) / n * float(((z - z.mean()) ** 2).sum())
    half = quantile * sqrt(max(jackknife, (1 + rho**2 / 2) / (freedom - 1)))
    return tanh(atanh(rho) - half), tanh(atanh(rho) + half)


def spearman_p(x: Array, y: Array, given: Array | None = None) -> float:
    """Two-sided p of Spearman's ρ, or of the partial one: how often it is as far from 0 if x and y have no relation.

    Up to 10 pairs, and nothing held constant, it is the share of all orders of y with such a ρ, which is exact, with
    ties too. For more pairs it is that of Student's t = ρ·√(f/(1 − ρ²)) with f = n − 2 − k degrees of freedom, k
    variables being held constant, but not less than that of the most extreme ρ: of the ranks at hand, or of n − k
    pairs, 2/(n − k)!, where variables are held constant.

    Args:
        x: Numbers, n.
        y: Numbers, n.
        given: Variables that are held constant, n or n × k; None for none.

    Returns:
        The p; NaN where ρ is undefined or there are fewer than 3 + k pairs.

    Example:
        >>> spearman_p(np.arange(6), np.array([1, 0, 2, 3, 5, 4]))      # 24 of 720 orders
        0.03333333333333333
    """
    others = None if given is None else np.asarray(given, dtype=np.float64).reshape(len(x), -1)
    rho = _rho(x, y, others)
    held = 0 if others is None else others.shape[1]
    freedom = len(x) - 2 - held
    if not np.isfinite(rho) or freedom < 1:
        return NAN
    if others is None and len(x) <= EXACT_UP_TO:
        return exact_spearman_p(x, y)
    least = least_spearman_p(x, y) if others is None else 2 / factorial(len(x) - held)
    if abs(rho) >= 1:
        return least
    return max(least, float(2 * scipy.stats.t.sf(abs(rho) * sqrt(freedom / (1 - rho**2)), freedom)))


def _rho(x: Array, y: Array, given: Array | None) -> float:
    return spearman(x, y) if given is None else partial_spearman(x, y, given)


def _plain(rows: Array, y: Array) -> Array:
    return np.array([spearman(row, y) for row in rows])


def _partial(rows: Array, y: Array, given: Array) -> Array:
    """Spearman's correlation of each row and y at equal values of other variables (`partial_spearman`)."""
    design = np.column_stack([np.ones(len(y)), ranks(given.T).T])
    ranked = ranks(np.vstack([rows, y])).T
    left = ranked - design @ np.linalg.lstsq(design, ranked, rcond=None)[0]
    spread = np.linalg.norm(left, axis=0) / np.linalg.norm(ranked, axis=0)
    *some, last = (spread >= 1e-9).tolist()  # else what is left is rounding
    return np.array([pearson(left[:, i], left[:, -1]) if last and more else NAN for i, more in enumerate(some)])
