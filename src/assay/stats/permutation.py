"""Permutation tests: how often chance does as well."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def permutation_p(observed: Array | float, permuted: Array) -> Array:
    """One-sided p of values among those of permuted data: (1 + #{permuted ≥ observed}) / (1 + number of permutations).

    The observed order counts as one of the permutations, so that p is never 0 and the test keeps its level.

    Args:
        observed: One value, or several.
        permuted: The value in each permutation, permutations first; then as many as are observed.

    Example:
        >>> float(permutation_p(0.9, np.array([0.1, 0.95, 0.3])))
        0.5

    Phipson & Smyth 2010.
    """
    # Equal values may come from sums in another order, and so differ by rounding.
    values = np.asarray(observed, dtype=np.float64)
    reached = permuted >= values - 1e-12 * np.maximum(1, np.abs(values))
    return np.asarray((1 + reached.sum(axis=0)) / (1 + len(permuted)))
