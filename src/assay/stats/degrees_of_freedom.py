"""How much an estimated variance is worth: the degrees of freedom of groups, and of a sum of variances.

A variance that few units gave is itself uncertain. Student's t allows for that, if it is told how many units there
were; groups of unequal size count for fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from assay.core.errors import AssayError

Array = np.ndarray[Any, Any]


def effective_groups(groups: Array) -> float:
    """Number of equal groups that are worth as much as these: (Σ n_g)²/Σ n_g², n_g the size of group g.

    Args:
        groups: Group of each instance.

    Example:
        >>> effective_groups(np.array([1, 1, 2, 2, 3, 3])), round(effective_groups(np.array([1, 1, 1, 1, 2, 3])), 1)
        (3.0, 2.0)

    Kish 1965, §8.2.
    """
    _, sizes = np.unique(groups, return_counts=True)
    if not len(sizes):
        raise AssayError("groups is empty: give the group of each instance")
    return float(sizes.sum() ** 2 / (sizes.astype(np.float64) ** 2).sum())


def welch_satterthwaite(variances: Sequence[float], degrees: Sequence[float]) -> float:
    """Degrees of freedom of a sum of independent estimates of variance: (Σ v_i)²/Σ(v_i²/ν_i).

    Where no variance is left there is nothing uncertain about it, and the degrees of freedom are infinite.

    Args:
        variances: The estimates v_i.
        degrees: Degrees of freedom ν_i of each, above 0; infinite for a variance that is known.

    Example:
        >>> welch_satterthwaite([1.0, 1.0], [9, 9]), welch_satterthwaite([1.0, 0.0], [9, 4])
        (18.0, 9.0)

    Satterthwaite 1946; Welch 1947.
    """
    if len(variances) != len(degrees) or min(variances) < 0 or not min(degrees) > 0:
        raise AssayError(
            f"variances={list(variances)} and degrees={list(degrees)}: each variance is 0 or more and has degrees of "
            "freedom above 0"
        )
    parts = np.asarray(variances, dtype=np.float64)
    if parts.max() == 0:
        return float("inf")
    shares = parts / parts.sum()  # of the sum, so that tiny variances do not vanish when squared
    uncertainty = float((shares**2 / np.asarray(degrees, dtype=np.float64)).sum())
    return 1 / uncertainty if uncertainty else float("inf")
