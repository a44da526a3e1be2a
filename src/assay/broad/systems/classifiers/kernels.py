"""Kernels that compare histograms: χ², intersection, and the plain inner product.

Zhang, Marszałek, Lazebnik, Schmid 2007 and Wang et al. 2009 (χ²); Barla, Odone, Verri 2003 (intersection).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from assay.broad.data.dataset import Array
from assay.broad.data.violation import NotApplicable
from assay.core.errors import AssayError

Matrix: TypeAlias = Array | sparse.csr_matrix
BLOCK = 2**16  # how many numbers are compared at once; they stay in the processor's cache


def linear(a: Matrix, b: Matrix) -> Array:
    """Inner products of the rows of a with the rows of b.

    >>> linear(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [0.0, 1.0]]))
    array([[11.,  2.]])
    """
    products: Any = _float64(a) @ _float64(b).T
    return np.asarray(products.toarray() if sparse.issparse(products) else products)


def intersection(a: Matrix, b: Matrix) -> Array:
    """Histogram intersection Σ min(aᵢ, bᵢ) of the rows of a with the rows of b.

    >>> intersection(np.array([[1.0, 2.0, 0.0]]), np.array([[2.0, 1.0, 5.0]]))
    array([[2.]])
    """
    _require_histograms(a, b, "the intersection kernel")
    return _compared(a, b, lambda x, y: np.minimum(x, y).sum(axis=1))


def chi2_distances(a: Matrix, b: Matrix) -> Array:
    """χ² distances D = ½ Σ (aᵢ − bᵢ)² / (aᵢ + bᵢ) of the rows of a from the rows of b; bins empty in both add nothing.

    >>> chi2_distances(np.array([[1.0, 3.0, 0.0]]), np.array([[3.0, 1.0, 0.0]]))
    array([[1.]])
    """
    _require_histograms(a, b, "the χ² kernel")
    return _compared(a, b, _chi2)


def mean_distance(distances: Array) -> float:
    """The mean distance A over pairs of different training instances; 1 where that is 0.

    >>> mean_distance(np.array([[0.0, 3.0], [3.0, 0.0]]))
    3.0
    """
    n = len(distances)
    if distances.shape != (n, n):
        raise AssayError(f"distances of training instances from each other are a square, not {distances.shape}")
    mean = float(distances.sum() - np.trace(distances)) / max(n * (n - 1), 1)
    return mean if mean > 0 else 1.0


def chi2(distances: Array, scale: float) -> Array:
    """The χ² kernel exp(−D/A) of given distances.

    Args:
        distances: Distances D, as `chi2_distances` gives them.
        scale: Mean distance A of the training instances (`mean_distance`).

    >>> chi2(np.array([0.0, 3.0]), scale=3.0).round(4)
    array([1.    , 0.3679])
    """
    return np.exp(distances / -scale)


def _chi2(x: Array, y: Array) -> Array:
    total = x + y
    total += np.finfo(np.float64).tiny  # 0/0 is 0
    difference = x - y
    difference *= difference
    difference /= total
    return np.asarray(difference.sum(axis=1) / 2)


def _compared(a: Matrix, b: Matrix, compare: Callable[[Array, Array], Array]) -> Array:
    """Compare rows of a with rows of b, a block of b at a time, so that little memory is needed."""
    if a.shape[1] != b.shape[1]:
        raise AssayError(f"the histograms have {a.shape[1]} and {b.shape[1]} bins: they are not of one kind")
    out = np.empty((a.shape[0], b.shape[0]))
    for columns in _blocks(b):
        block = _dense(b[columns])
        for rows in _blocks(a):
            for i, row in enumerate(_dense(a[rows]), start=rows.start):
                out[i, columns] = compare(row, block)
    return out


def _blocks(matrix: Matrix) -> Iterator[slice]:
    step = max(BLOCK // matrix.shape[1], 1)
    return (slice(i, i + step) for i in range(0, matrix.shape[0], step))


def _dense(matrix: Any) -> Array:
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix, dtype=np.float64)


def _float64(matrix: Any) -> Any:
    return matrix.astype(np.float64) if sparse.issparse(matrix) else np.asarray(matrix, dtype=np.float64)


def _require_histograms(a: Matrix, b: Matrix, kernel: str) -> None:
    for matrix in (a, b):
        values = matrix.data if sparse.issparse(matrix) else matrix
        if np.size(values) and np.min(values) < 0:
            raise NotApplicable(f"{kernel} compares histograms, and the features have negative values")
