"""Many tests at once: p values adjusted so that a family of tests keeps its level."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from assay.core.errors import AssayError, nearest

Array = np.ndarray[Any, Any]


def bonferroni(p: Array) -> Array:
    """Bonferroni's adjusted p values, min(1, m·p) for a family of m; NaN stays NaN and does not count.

    Example:
        >>> bonferroni(np.array([0.01, 0.04, 0.5])).tolist()
        [0.03, 0.12, 1.0]
    """
    return _adjusted(p, lambda ordered: ordered * len(ordered))


def holm(p: Array, family: int | None = None) -> Array:
    """Holm's adjusted p values: the chance of any false alarm in the family is at most the level; NaN stays NaN.

    Of m values in rising order, p̃_(i) = max_{j ≤ i} min(1, (m − j + 1)·p_(j)).

    Args:
        p: The p values; NaN where a test could not be made.
        family: Number m of tests in the family, where it was fixed before: those that could not be made still count,
            as if their p were 1. By default the number of values that are not NaN.

    Example:
        >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
        [0.03, 0.06, 0.06]
        >>> holm(np.array([0.01, np.nan, 0.04]), family=4).tolist()
        [0.04, nan, 0.12]

    Holm 1979.
    """
    tested = int((~np.isnan(np.asarray(p, dtype=np.float64))).sum())
    if family is not None and family < tested:
        raise AssayError(f"family={family} is fewer than the {tested} tests that were made: give the number planned")
    m = tested if family is None else family
    return _adjusted(p, lambda ordered: np.maximum.accumulate(ordered * (m - np.arange(len(ordered)))))


def benjamini_hochberg(p: Array) -> Array:
    """Benjamini and Hochberg's adjusted p values: of what they call significant, at most the level is false.

    Of m values in rising order, p̃_(i) = min_{j ≥ i} min(1, m·p_(j)/j); NaN stays NaN.

    Example:
        >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03])).tolist()
        [0.03, 0.04, 0.04]

    Benjamini & Hochberg 1995.
    """

    def step_up(ordered: Array) -> Array:
        scaled = ordered * len(ordered) / np.arange(1, len(ordered) + 1)
        return np.minimum.accumulate(scaled[::-1])[::-1]

    return _adjusted(p, step_up)


def correction_named(name: str) -> Callable[[Array], Array]:
    """The correction of p values for many tests: ``bonferroni``, ``holm``, ``benjamini-hochberg`` or ``none``.

    Example:
        >>> correction_named("holm")(np.array([0.01, 0.04])).tolist()
        [0.02, 0.04]
    """
    if name not in _CORRECTIONS:
        raise AssayError(f"correction={name!r} is unknown{nearest(str(name), _CORRECTIONS)}")
    return _CORRECTIONS[name]


def _adjusted(p: Array, rule: Callable[[Array], Array]) -> Array:
    p = np.asarray(p, dtype=np.float64)
    if ((p < 0) | (p > 1)).any():
        raise AssayError(f"p={p[(p < 0) | (p > 1)][0]} is not a probability")
    adjusted = np.full(p.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    adjusted[order] = np.minimum(rule(p[order]), 1.0)
    return adjusted


def _unadjusted(p: Array) -> Array:
    return p


_CORRECTIONS: dict[str, Callable[[Array], Array]] = {
    "bonferroni": bonferroni,
    "holm": holm,
    "benjamini-hochberg": benjamini_hochberg,
    "none": _unadjusted,
}
