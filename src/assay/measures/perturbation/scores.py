"""Scores of a perturbation response curve: its cumulative density, Gi-score and Pal-score.

Schiff, Quanz, Das, Chen 2021, "Predicting deep neural network generalization with perturbation response curves".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from assay.core.errors import AssayError

Array = np.ndarray[Any, Any]

BOTTOM, TOP = 0.1, 0.4  # Pal compares magnitudes above 0.4 with those below 0.1 of the range


def perturbation_cumulative_density(magnitudes: Any, accuracies: Any) -> Array:
    """The perturbation cumulative density (PCD) of a curve: the accuracy summed up to each magnitude.

    PCD(u) = ∫₀ᵘ A, with u = (α − α_min)/(α_max − α_min), by the trapezoid rule. The ideal network has A ≡ 1 and
    PCD(u) = u.

    Args:
        magnitudes: The n magnitudes α, increasing.
        accuracies: The accuracies A(α) in [0, 1]; n values, or any number of curves with n as the last axis.

    Example:
        >>> perturbation_cumulative_density([0, 1, 2], [1.0, 0.5, 0.0])
        array([0.   , 0.375, 0.5  ])

    Section 3.3.
    """
    u, a = _curve(magnitudes, accuracies)
    return _cumulative(u, a)


def gi_score(magnitudes: Any, accuracies: Any, fold: bool = False) -> Any:
    """The Gi-score: area between the ideal and the actual PCD, as a share of that under the ideal one. Low is good.

    Gi = 1 − 2∫₀¹ PCD(u) du, which is 1 − 2∫₀¹ (1−u) A(u) du; both integrals by the trapezoid rule.

    The smallest magnitude weighs most and the largest not at all. Over a range that goes from minus to plus, the score
    is therefore not the same for the mirrored curve: with ``fold`` the accuracies at −α and +α are averaged first and
    u = |α|/α_max.

    Args:
        magnitudes: The magnitudes α, increasing.
        accuracies: The accuracies A(α) of one curve, or of many with the magnitudes last.
        fold: Whether to average over ±α first (see `fold_curve`).

    Returns:
        A float for one curve, an array for many.

    Example:
        >>> u = np.linspace(0, 1, 101)
        >>> round(gi_score(u, 1 - u), 5), gi_score(u, 0 * u + 1)
        (0.33335, 0.0)

    Algorithm 2 of the appendix.
    """
    u, a = _curve(*(fold_curve(magnitudes, accuracies) if fold else (magnitudes, accuracies)))
    gi = 1 - 2 * np.trapezoid(_cumulative(u, a), u, axis=-1)
    return float(gi) if a.ndim == 1 else gi


def pal_score(magnitudes: Any, accuracies: Any) -> Any:
    """The Pal-score: area under the PCD over the top 60 % of magnitudes, over that of the bottom 10 %. High is good.

    Pal = ∫_{0.4}^{1} PCD du / ∫_{0}^{0.1} PCD du; the PCD is linear between magnitudes. The ideal network has 84. Meant
    for curves that fall: one that rises has a small denominator and a large score.

    Where the denominator is 0 (no accuracy at the smallest magnitudes) the score is infinite, or NaN if the numerator
    is 0 too.

    Example:
        >>> u = np.linspace(0, 1, 11)
        >>> round(pal_score(u, 1 - u), 6), round(pal_score(u, 0 * u + 0.3), 9)
        (55.473684, 84.0)

    Algorithm 4 of the appendix.
    """
    u, a = _curve(magnitudes, accuracies)
    pcd = _cumulative(u, a)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        pal = _area(u, pcd, TOP, 1.0) / _area(u, pcd, 0.0, BOTTOM)
    return float(pal) if a.ndim == 1 else pal


def fold_curve(magnitudes: Any, accuracies: Any) -> tuple[Array, Array]:
    """Fold a curve from minus to plus at zero: A(|α|) = (A(α) + A(−α))/2.

    It goes from 0 to the largest |α| measured on both sides, and is linear between magnitudes.

    Example:
        >>> fold_curve([-1, 0, 1], [0.2, 1.0, 0.6])
        (array([0., 1.]), array([1. , 0.4]))
    """
    alpha = _magnitudes(magnitudes)
    if not alpha[0] < 0 < alpha[-1]:
        raise AssayError(f"fold: the magnitudes go from {alpha[0]:g} to {alpha[-1]:g}, not from minus to plus")
    a = _accuracies(accuracies, len(alpha))
    reach = min(-alpha[0], alpha[-1])
    sides = np.unique(np.abs(alpha[np.abs(alpha) <= reach]))
    radii = np.unique(np.concatenate([[0.0], sides, [reach]]))
    return radii, (_at(alpha, a, radii) + _at(alpha, a, -radii)) / 2


def _curve(magnitudes: Any, accuracies: Any) -> tuple[Array, Array]:
    alpha = _magnitudes(magnitudes)
    return (alpha - alpha[0]) / (alpha[-1] - alpha[0]), _accuracies(accuracies, len(alpha))


def _magnitudes(magnitudes: Any) -> Array:
    alpha = np.asarray(magnitudes, dtype=np.float64)
    if alpha.ndim != 1 or len(alpha) < 2 or not np.isfinite(alpha).all() or not (np.diff(alpha) > 0).all():
        raise AssayError(f"magnitudes must be two or more finite numbers, increasing, not {alpha.tolist()!r:.200}")
    return alpha


def _accuracies(accuracies: Any, n: int) -> Array:
    a = np.asarray(accuracies, dtype=np.float64)
    if a.ndim < 1 or a.shape[-1] != n:
        raise AssayError(f"accuracies of shape {a.shape} do not go with {n} magnitudes: those come last")
    if not ((a >= 0) & (a <= 1)).all():
        bad = a[~((a >= 0) & (a <= 1))].flat[0]
        raise AssayError(f"accuracies must be in [0, 1], one is {bad!r}")
    return a


def _cumulative(u: Array, a: Array) -> Array:
    steps = np.diff(u) * (a[..., 1:] + a[..., :-1]) / 2
    return np.concatenate([np.zeros((*a.shape[:-1], 1)), steps.cumsum(-1)], -1)


def _area(u: Array, f: Array, low: float, high: float) -> Array:
    """The integral of f from ``low`` to ``high``; f is linear between its samples."""
    inside = (u > low) & (u < high)
    at = np.concatenate([[low], u[inside], [high]])
    ends = _at(u, f, np.array((low, high)))
    values = np.concatenate([ends[..., :1], f[..., inside], ends[..., 1:]], -1)
    return np.asarray(np.trapezoid(values, at, axis=-1))


def _at(u: Array, f: Array, points: Array) -> Array:
    """Values of f at the given points, by linear interpolation along the last axis."""
    right = np.searchsorted(u, points).clip(1, len(u) - 1)
    share = (points - u[right - 1]) / (u[right] - u[right - 1])
    return np.asarray((1 - share) * f[..., right - 1] + share * f[..., right])
