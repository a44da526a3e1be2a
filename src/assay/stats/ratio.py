"""Ratios of sums over independent parts: a mean over frames of clips that differ in length."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from assay.core.errors import AssayError

Array = np.ndarray[Any, Any]


def ratio_parts(sums: Array, counts: Array) -> Array:
    """What each independent part adds to a ratio r = Σ sums/Σ counts: r + n·(sum_i − r·count_i)/Σ counts.

    Their mean is r, and their standard deviation over √n its standard error (to first order), so that a ratio can be
    treated as a mean: with Student's t, and in pairs. With equal counts they are the means of the parts.

    Args:
        sums: The sum over each part.
        counts: The number of things summed in each, above 0.

    Example:
        >>> ratio_parts(np.array([1.0, 6.0]), np.array([1, 2])).round(6).tolist()
        [1.444444, 3.222222]
        >>> ratio_parts(np.array([2.0, 6.0]), np.array([2, 2])).tolist()
        [1.0, 3.0]

    Cochran 1977, Sampling Techniques, §6.3.
    """
    if len(sums) != len(counts) or not np.all(np.asarray(counts) > 0):
        raise AssayError("give a count above 0 for each of the sums")
    ratio = np.sum(sums) / np.sum(counts)
    parts: Array = ratio + len(sums) * (sums - ratio * counts) / np.sum(counts)
    return parts


def ratio_interval(sums: Array, counts: Array, confidence: float = 0.95) -> tuple[float, float]:
    """Interval of a ratio Σ sums/Σ counts over other parts: Student's t of `ratio_parts`; NaN for fewer than two.

    Example:
        >>> low, high = ratio_interval(np.array([1.0, 2.0, 3.0]), np.array([1, 1, 1]))
        >>> round(low, 3), round(high, 3)                                            # that of the mean of 1, 2, 3
        (-0.484, 4.484)
    """
    n = len(sums)
    if n < 2:
        return float("nan"), float("nan")
    parts = ratio_parts(sums, counts)
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, n - 1) * parts.std(ddof=1) / np.sqrt(n))
    return float(parts.mean()) - half, float(parts.mean()) + half
