"""How alike two representational dissimilarity matrices (RDMs) are.

With x and y the upper triangles of two RDMs, n = m(m−1)/2 entries each, and r(x) their mid-ranks:

- ``spearman``: Pearson's correlation of r(x) and r(y);
- ``rho-a``: 12/(n³ − n)·Σ (r(x_e) − r̄)(r(y_e) − r̄), the mean of Spearman's ρ over all ways of breaking ties;
- ``tau-a``: (concordant − discordant pairs of entries) / all pairs;
- ``tau-b``: the same over √((pairs not tied in x)·(pairs not tied in y));
- ``pearson``, ``cosine``;
- ``whitened-correlation``, ``whitened-cosine``: xᵀV⁻¹y / √(xᵀV⁻¹x · yᵀV⁻¹y), with V the covariance of the entries of an
  RDM estimated from independent patterns of equal variance (x and y less their means for the correlation). It is the
  cosine of the doubly centred matrices CXC and CYC, C = I − 11ᵀ/m, and is computed so.

Names and values are those of rsatoolbox; its other names (``corr``, ``kendall``, ``corr_cov``, ``cosine_cov``) are
understood too. Kriegeskorte et al. 2008; Diedrichsen et al. 2021 (whitening); Schütt et al. 2023 (ρ-a).
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import scipy

from assay.core.errors import AssayError, nearest
from assay.stats.ranks import ranks
from assay.stimuli.rdms import as_matrices, read_rdms, require_same_stimuli, stimuli_of

Array = np.ndarray[Any, Any]
Method = Literal[
    "spearman", "rho-a", "tau-a", "tau-b", "pearson", "cosine", "whitened-correlation", "whitened-cosine"
]  # fmt: skip
METHODS: tuple[str, ...] = get_args(Method)
_NAMES_IN_RSATOOLBOX = {
    "corr": "pearson",
    "kendall": "tau-b",
    "corr_cov": "whitened-correlation",
    "cosine_cov": "whitened-cosine",
}
# Methods that divide by the spread of an RDM's entries, which a constant RDM does not have.
_NEED_SPREAD = ("spearman", "tau-b", "pearson", "whitened-correlation")


def compare_rdms(a: Any, b: Any, method: str = "spearman") -> Any:
    """How alike RDMs are, one with one or every one of a stack with every one of another.

    Args:
        a: One RDM or a stack: upper triangles, symmetric matrices, lists of either, a `stimuli.RdmSet`, or rsatoolbox's
            ``RDMs``; NumPy arrays or tensors on any device.
        b: One RDM or a stack of the same stimuli in the same order.
        method: ``spearman``, ``rho-a``, ``tau-a``, ``tau-b``, ``pearson``, ``cosine``, ``whitened-correlation`` or
            ``whitened-cosine``; the formulas are at the head of this module.

    Returns:
        A float for one RDM with one; else an array with an axis for each argument that is a stack.

    Example:
        >>> a, b = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [2, 1, 4, 3, 6, 5, 8, 7, 10, 9]      # of five stimuli
        >>> round(compare_rdms(a, b), 10), round(compare_rdms(a, b, "whitened-correlation"), 10)
        (0.9393939394, 0.8843536023)
        >>> compare_rdms([a, b], b).round(4).tolist()
        [0.9394, 1.0]

    Kriegeskorte, Mur & Bandettini 2008.
    """
    method = method_named(method)
    require_same_stimuli(a, b)
    (first, a_is_stack), (second, b_is_stack) = read_rdms(a, "a"), read_rdms(b, "b")
    require_same_count(first, second)
    for name, vectors in (("a", first), ("b", second)):
        require_comparable(vectors, method, name)
    similarities = similarity(first, second, method)
    chosen = similarities[slice(None) if a_is_stack else 0, slice(None) if b_is_stack else 0]
    return chosen if a_is_stack or b_is_stack else float(chosen)


def similarity(first: Array, second: Array, method: str) -> Array:
    """How alike every RDM of ``first`` is to every one of ``second``, both upper triangles in a checked 2-D array."""
    if method in ("tau-a", "tau-b"):
        return np.array([[_kendall(x, y, method) for y in second] for x in first])
    products: Array = embedded(first, method) @ embedded(second, method).T
    return products


def embedded(vectors: Array, method: str) -> Array:
    """RDMs as rows whose inner products are their similarities, for every method but Kendall's.

    NaN where an RDM has no similarity to any other, because it is constant or zero.
    """
    n = vectors.shape[1]
    if method in ("spearman", "rho-a"):
        vectors = ranks(vectors) - (n + 1) / 2
        if method == "rho-a":
            scaled: Array = vectors * np.sqrt(12 / (float(n) ** 3 - n))
            return scaled
    elif method in ("pearson", "whitened-correlation"):
        vectors = vectors - vectors.mean(axis=1, keepdims=True)
    if method.startswith("whitened"):
        vectors = doubly_centred(as_matrices(vectors)).reshape(len(vectors), -1)
    with np.errstate(invalid="ignore"):
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def doubly_centred(matrices: Array) -> Array:
    """Matrices less the means of their rows and columns, CXC with C = I − 11ᵀ/m."""
    rows = matrices.mean(axis=-1, keepdims=True)
    columns = matrices.mean(axis=-2, keepdims=True)
    return np.asarray(matrices - rows - columns + rows.mean(axis=-2, keepdims=True))


def method_named(method: str) -> str:
    """Return the name of a method of comparison as this module has it; an error suggests the nearest."""
    method = _NAMES_IN_RSATOOLBOX.get(method, method)
    if method not in METHODS:
        raise AssayError(f"method={method!r} is unknown{nearest(str(method), METHODS)}")
    return method


def require_same_count(first: Array, second: Array, a: str = "a", b: str = "b") -> None:
    """Raise where two stacks of upper triangles are of different numbers of stimuli."""
    if first.shape[1] != second.shape[1]:
        one, other = (stimuli_of(vectors.shape[1]) for vectors in (first, second))
        raise AssayError(f"{a} is of {one} stimuli and {b} of {other}: give RDMs of the same stimuli in the same order")


def require_comparable(vectors: Array, method: str, name: str) -> None:
    """Raise where an RDM has no similarity by this method: a constant one, or one of zeros."""
    if method in _NEED_SPREAD:
        constant = (vectors == vectors[:, :1]).all(axis=1)
        if constant.any():
            raise AssayError(
                f"RDM {int(constant.argmax())} of {name} is constant, so that method={method!r} is undefined: "
                "leave it out"
            )
    elif method in ("cosine", "whitened-cosine"):
        zero = (vectors == 0).all(axis=1)
        if zero.any():
            raise AssayError(f"RDM {int(zero.argmax())} of {name} is all zeros, so that method={method!r} is undefined")


def _kendall(x: Array, y: Array, method: str) -> float:
    """Kendall's τ-b by SciPy; τ-a from it, by the numbers of pairs that are not tied."""
    tau = float(scipy.stats.kendalltau(x, y, method="asymptotic").statistic)
    if method == "tau-b":
        return tau
    every = len(x) * (len(x) - 1) // 2
    untied = [every - _tied_pairs(values) for values in (x, y)]
    return tau * float(np.sqrt(float(untied[0]) * float(untied[1]))) / every if min(untied) else 0.0


def _tied_pairs(values: Array) -> int:
    _, counts = np.unique(values, return_counts=True)
    return int((counts * (counts - 1) // 2).sum())
