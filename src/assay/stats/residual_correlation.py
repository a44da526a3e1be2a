"""Rank correlations of what controls leave of variables, with intervals, and p values for the largest of many."""

from __future__ import annotations

from typing import Any

import numpy as np

from assay.core.errors import AssayError
from assay.stats.permutation import permutation_p
from assay.stats.rank_correlation import spearman_intervals
from assay.stats.ranks import ranks

Array = np.ndarray[Any, Any]
NAN = float("nan")
_NOTHING = 1e-9  # share that controls leave; less is rounding
_LEAST = 10  # degrees of freedom that controls must leave for a p: of fewer, noise is called significant too often
_DIGITS = 10  # of what is left, beside the spread of the values: more are rounding, and would break ties


def residual_spearman(rows: Array, y: Array, given: Array) -> Array:
    """The rank correlation of each row and y at equal controls, which may have any strong effect on both.

    With M the projection that takes the controls and a constant out, x̃ = M·rank(M·x) and ỹ = M·rank(M·y), it is the
    correlation of x̃ and ỹ. Without controls it is Spearman's ρ.

    `partial_spearman` takes ranks first. It does not change if a variable is changed monotonically, but the rank of
    a sum of effects is no sum of effects: two variables that follow the same controls additively, and have nothing
    else in common, then remain correlated. With six such effects and noise of an eighth of their range, some of 60
    partial correlations is called significant in 95 % of simulated samples, of these in 5 to 7 %
    (`benchmarks/residual_correlation.py`). This one depends on the scale of a variable: whether a norm or its logarithm
    is given.

    Args:
        rows: Numbers, rows × n.
        y: Numbers, n.
        given: The controls, n × k.

    Returns:
        One correlation for each row; NaN where the controls leave nothing of it, or of y.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> effects = rng.integers(0, 2, size=(200, 4)).astype(float)
        >>> x, y = effects.sum(axis=1) + 0.3 * rng.normal(size=(2, 200))
        >>> residual_spearman(np.stack([x, y**3]), y, effects).round(2).tolist()
        [-0.06, 0.58]
    """
    rows, y, given = _checked(rows, y, given)
    *left, last = _left(np.vstack([rows, y]), _basis(given))
    return np.array([_cosine(x, last) for x in left])


def residual_spearman_intervals(rows: Array, y: Array, given: Array, groups: Array | None = None) -> Array:
    """95 % intervals of `residual_spearman`, rows × 2, by leaving out a pair or group at a time (`spearman_interval`).

    Args:
        rows: Numbers, rows × n.
        y: Numbers, n.
        given: The controls, n × k.
        groups: The group of each pair; by default each is its own.
    """
    return spearman_intervals(*_checked(rows, y, given), groups=groups, correlations=residual_spearman)


def residual_spearman_p_max(
    rows: Array, y: Array, given: Array, groups: Array | None = None, flips: int = 1000, seed: int = 0
) -> Array:
    """The p of each row's correlation with y at equal controls, against the largest of all rows by chance.

    Chance turns the sign of what is left of y (ỹ of `residual_spearman`), for all members of a group at once: with
    s_g = ±1 drawn for each group g, and e_g = (M_gg)^(−1/2)·ỹ_g,

        ρ_x^b = cor(x̃, M·(s_g·e_g)_g),    p_x = (1 + #{b : max_x' |ρ_x'^b| ≥ |ρ_x|}) / (1 + B).

    The controls take more out of some groups than of others; (M_gg)^(−1/2) gives it back. Without it, where groups of
    three have effects of their own, some of 60 rows of noise has p ≤ 0.05 in 12 % of samples, with it in 5 to 7 %
    (`benchmarks/residual_correlation.py`). Where the controls leave fewer than ten degrees of freedom, noise is called
    significant more often than that (of two degrees in most samples), and there is no p.

    Args:
        rows: The variables that are asked, rows × n: *all* of them, not only the best.
        y: Numbers, n.
        given: What is held constant, n × k.
        groups: The group of each of the n, whose members are not independent; by default each is its own.
        flips: Number B of random signs.
        seed: Of the signs.

    Returns:
        One p for each row; NaN where its correlation is undefined, and where too few degrees of freedom are left.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> depth = np.repeat([1.0, 2.0, 3.0, 4.0], 15)
        >>> y = depth + rng.normal(size=60)
        >>> rows = np.stack([y + rng.normal(size=60), depth + rng.normal(size=60), rng.normal(size=60)])
        >>> residual_spearman_p_max(rows, y, depth[:, None], flips=99).tolist()
        [0.01, 0.98, 0.53]

    Freedman & Lane 1983 and Winkler et al. 2014 (signs of whole groups); Bell & McCaffrey 2002 (what controls take out
    of a group); Westfall & Young 1993 (the largest of all).
    """
    rows, y, given = _checked(rows, y, given)
    basis = _basis(given)
    *left, e = _left(np.vstack([rows, y]), basis)
    x = np.array(left).reshape(rows.shape)
    told = np.isfinite(x).all(axis=1) & np.isfinite(e).all()
    p = np.full(len(rows), NAN)
    if not told.any() or len(y) - basis.shape[1] < _LEAST:
        return p
    x = x[told] / np.linalg.norm(x[told], axis=1, keepdims=True)
    group = np.arange(len(y)) if groups is None else np.unique(groups, return_inverse=True)[1].reshape(-1)
    signs = np.random.default_rng(seed).choice(np.array([-1.0, 1.0]), size=(int(group.max()) + 1, flips))
    turned = signs[group] * _given_back(e, basis, group)[:, None]
    turned -= basis @ (basis.T @ turned)
    size = np.linalg.norm(turned, axis=0)
    size[size <= _NOTHING * np.linalg.norm(e)] = np.inf  # signs that leave nothing are correlated with nothing
    largest = np.abs(x @ turned).max(axis=0) / size
    p[told] = permutation_p(np.abs(x @ e) / np.linalg.norm(e), largest[:, None])
    return p


def _checked(rows: Array, y: Array, given: Array) -> tuple[Array, Array, Array]:
    rows, y, given = (np.asarray(values, dtype=np.float64) for values in (rows, y, given))
    if rows.ndim != 2 or rows.shape[1:] != y.shape or given.ndim != 2 or len(given) != len(y):
        raise AssayError(f"rows are {rows.shape}, y {y.shape} and given {given.shape}: give rows × n, n and n × k")
    if not all(np.isfinite(values).all() for values in (rows, y, given)):
        raise AssayError("the rows, y and what is given must be finite: leave out what has NaN or infinite values")
    return rows, y, given


def _basis(given: Array) -> Array:
    """Orthonormal columns that span the controls and a constant."""
    centred = given - given.mean(axis=0)
    size = np.linalg.norm(centred, axis=0)
    centred = centred[:, size > 0] / size[size > 0]
    u, d, _ = np.linalg.svd(np.column_stack([np.full(len(given), len(given) ** -0.5), centred]), full_matrices=False)
    kept: Array = u[:, d > d[0] * len(given) * np.finfo(np.float64).eps]
    return kept


def _left(rows: Array, basis: Array) -> Array:
    """M·rank(M·x) of each row x; NaN where nothing but rounding is left."""
    centred = rows - rows.mean(axis=1, keepdims=True)
    spread = np.abs(centred).max(axis=1, keepdims=True)
    scaled = centred / np.where(spread > 0, spread, 1)
    residuals = np.round(scaled - (scaled @ basis) @ basis.T, _DIGITS)
    ranked = ranks(residuals)
    ranked = ranked - ranked.mean(axis=1, keepdims=True)
    left = ranked - (ranked @ basis) @ basis.T
    is_left = np.linalg.norm(left, axis=1) > _NOTHING * len(basis)
    return np.where(is_left[:, None], left, NAN)


def _cosine(x: Array, y: Array) -> float:
    return float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y)))


def _given_back(e: Array, basis: Array, group: Array) -> Array:
    """(M_gg)^(−1/2)·e_g for each group g; nothing in directions of which the controls leave nothing."""
    whole = np.empty(len(e))
    for g in range(int(group.max()) + 1):
        members = np.flatnonzero(group == g)
        values, vectors = np.linalg.eigh(np.eye(len(members)) - basis[members] @ basis[members].T)
        root = np.where(values > _NOTHING, values, np.inf) ** -0.5
        whole[members] = vectors @ (root * (vectors.T @ e[members]))
    return whole
