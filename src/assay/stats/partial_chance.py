"""Whether any of many variables is correlated with another at equal controls more than chance lets the best of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from assay.core.errors import AssayError
from assay.stats.permutation import permutation_p
from assay.stats.rank_correlation import ranks_left
from assay.stats.ranks import ranks

Array = np.ndarray[Any, Any]
NAN = float("nan")
_NOTHING = 1e-9  # share that controls leave; less is rounding


def partial_spearman_p_max(
    rows: Array, y: Array, given: Array, groups: Array | None = None, flips: int = 1000, seed: int = 0
) -> Array:
    """The p of each row's partial Spearman correlation with y, against the largest of all rows by chance.

    With M the projection that takes the ranks of the controls and a constant out, x̃ = M·rank x and e = M·rank y, ρ_x is
    the correlation of x̃ and e (`partial_spearman`). Chance turns the sign of what is left of y, for all members of a
    group at once: with s_g = ±1 drawn for each group g, and e*_g = (M_gg)^(−1/2)·e_g,

        ρ_x^b = cor(x̃, M·(s_g·e*_g)_g),    p_x = (1 + #{b : max_x' |ρ_x'^b| ≥ |ρ_x|}) / (1 + B).

    The controls take more out of some groups than of others; (M_gg)^(−1/2) gives it back. In simulations of 60 rows of
    noise, 64 groups and 21 controls some row has p ≤ 0.05 in 4 to 6 % of samples. Without it, where groups of three
    have effects of their own, it is 10 to 12 %, as it is if residuals are permuted
    (`benchmarks/partial_false_alarms.py`).

    Args:
        rows: The variables that are asked, rows × n: *all* of them, not only the best.
        y: Numbers, n.
        given: What is held constant, n × k.
        groups: The group of each of the n, whose members are not independent; by default each is its own.
        flips: Number B of random signs.
        seed: Of the signs.

    Returns:
        One p for each row; NaN where its correlation is undefined.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> depth = np.repeat([1.0, 2.0, 3.0, 4.0], 15)
        >>> y = depth + rng.normal(size=60)
        >>> rows = np.stack([y + rng.normal(size=60), depth + rng.normal(size=60), rng.normal(size=60)])
        >>> partial_spearman_p_max(rows, y, depth[:, None], flips=99).tolist()
        [0.01, 0.89, 0.44]

    Freedman & Lane 1983 and Winkler et al. 2014 (signs of whole groups); Bell & McCaffrey 2002 (what controls take out
    of a group); Westfall & Young 1993 (the largest of all).
    """
    rows, y, given = (np.asarray(values, dtype=np.float64) for values in (rows, y, given))
    if rows.ndim != 2 or rows.shape[1:] != y.shape or given.ndim != 2 or len(given) != len(y):
        raise AssayError(f"rows are {rows.shape}, y {y.shape} and given {given.shape}: give rows × n, n and n × k")
    *left, e = ranks_left(np.vstack([rows, y]), given)
    x = np.array(left).reshape(rows.shape)
    told = np.isfinite(x).all(axis=1) & np.isfinite(e).all()
    p = np.full(len(rows), NAN)
    if not told.any():
        return p
    x = x[told] / np.linalg.norm(x[told], axis=1, keepdims=True)
    group = np.arange(len(y)) if groups is None else np.unique(groups, return_inverse=True)[1].reshape(-1)
    basis = _basis(given)
    signs = np.random.default_rng(seed).choice(np.array([-1.0, 1.0]), size=(int(group.max()) + 1, flips))
    turned = signs[group] * _given_back(e, basis, group)[:, None]
    turned -= basis @ (basis.T @ turned)
    size = np.linalg.norm(turned, axis=0)
    size[size <= _NOTHING * np.linalg.norm(e)] = np.inf  # signs that leave nothing are correlated with nothing
    largest = np.abs(x @ turned).max(axis=0) / size
    p[told] = permutation_p(np.abs(x @ e) / np.linalg.norm(e), largest[:, None])
    return p


def _basis(given: Array) -> Array:
    """Orthonormal columns that span the ranks of the controls and a constant."""
    u, d, _ = np.linalg.svd(np.column_stack([np.ones(len(given)), ranks(given.T).T]), full_matrices=False)
    kept: Array = u[:, d > d[0] * len(given) * np.finfo(np.float64).eps]
    return kept


def _given_back(e: Array, basis: Array, group: Array) -> Array:
    """(M_gg)^(−1/2)·e_g for each group g; nothing in directions of which the controls leave nothing."""
    whole = np.empty(len(e))
    for g in range(int(group.max()) + 1):
        members = np.flatnonzero(group == g)
        values, vectors = np.linalg.eigh(np.eye(len(members)) - basis[members] @ basis[members].T)
        root = np.where(values > _NOTHING, values, np.inf) ** -0.5
        whole[members] = vectors @ (root * (vectors.T @ e[members]))
    return whole
