"""Firing rates: when a unit fires, how often, and how often it goes on firing under a transformation.

Goodfellow, Le, Saxe, Lee, Ng 2009, "Measuring invariances in deep networks", §4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from torch import Tensor

from assay.errors import AssayError

Array = np.ndarray[Any, Any]
Trajectories = Sequence[Sequence[int]] | Array
Signs = Literal["choose", "positive"]


def firing_thresholds(responses: Tensor | Array, firing_rate: float = 0.01) -> Array:
    """The threshold of each unit above which it fires on a share ``firing_rate`` of the stimuli.

    t is the largest response exceeded by exactly k = ⌈firing_rate·n⌉ of the n stimuli, so that the global firing
    rate G = P(h > t) is k/n. Where the k-th largest response is repeated, no threshold does that; then t is the
    largest that gives G > k/n (all repetitions fire). NaN where none exists: the k-th largest response is also
    the smallest, so the unit fires on everything or on nothing.

    Args:
        responses: Stimuli × units.
        firing_rate: Global firing rate to set.

    Example:
        >>> firing_thresholds(np.arange(200.0)[:, None], firing_rate=0.01)
        array([197.])

    §4 (the paper's "smallest t with G > 0.01" is read as the smallest G above 0.01).
    """
    values = _checked(responses)
    k = firing_count(len(values), firing_rate)
    ordered = -np.sort(-values, axis=0)
    smaller = np.where(values < ordered[k - 1], values, -np.inf).max(axis=0)
    thresholds = np.where(ordered[k - 1] > ordered[k], ordered[k], smaller)
    return np.where(np.isfinite(thresholds), thresholds, np.nan)


def invariance_scores(
    responses: Tensor | Array,
    trajectories: Trajectories,
    firing_rate: float = 0.01,
    near_max: int | float = 0.1,
    signs: Signs = "choose",
) -> pd.DataFrame:
    """The invariance score of each unit: how much more often than usual it fires on transforms of what drives it.

    Unit i fires when s·h > t, s ∈ {−1, +1}, t from `firing_thresholds`. With G = E_x[f(x)] over all stimuli, Z the
    stimuli that drive the unit most, T(z) the trajectory of z,

        L = mean_{z ∈ Z} mean_{x ∈ T(z)} f(x),    S = L / G.

    S is at most 1/G: 100 at a firing rate of 1 %.

    Args:
        responses: Stimuli × units.
        trajectories: For each stimulus, the indices of the stimuli on its trajectory (itself among them).
        firing_rate: Global firing rate.
        near_max: How many stimuli make Z: a count, or a share (float) of those on which the unit fires. Ties with
            the last of them belong to Z too, so that the order of stimuli does not matter.
        signs: ``"choose"`` the sign that gives the larger score, or ``"positive"`` for units trained to be sparse.

    Returns:
        One row per unit: ``score`` S, ``global_rate`` G, ``local_rate`` L, ``sign``, ``threshold``, ``status``:
        ``ok``; ``tied`` (repeated responses make G larger than asked for); ``constant`` (dead, or always on);
        ``sparse`` (above its smallest response on too few stimuli to set a threshold); ``not finite``. Only ``ok``
        and ``tied`` units have a score.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> energy = np.repeat(rng.random(1000), 10)[:, None]      # the same under all 10 transforms
        >>> orbit = np.arange(10000) // 10 * 10
        >>> invariance_scores(energy, orbit[:, None] + np.arange(10))["score"].round(6).tolist()
        [100.0]

    §4.
    """
    if signs not in ("choose", "positive"):
        raise AssayError(f"signs={signs!r} is not 'choose' or 'positive'")
    values = _checked(responses, finite=False)
    n, units = values.shape
    k = firing_count(n, firing_rate)
    table, size = _trajectory_table(trajectories, n)
    finite = np.isfinite(values).all(axis=0)
    best = _undefined(units)
    best["status"] = np.where(finite, "constant", "not finite")
    for sign in (1, -1) if signs == "choose" else (1,):
        signed = sign * np.where(finite, values, 0.0)
        thresholds = firing_thresholds(signed, firing_rate)
        fires = signed > thresholds
        g = fires.mean(axis=0)
        ordered = -np.sort(-signed, axis=0)
        chosen = near_count(near_max, fires.sum(axis=0))
        z = (signed >= np.take_along_axis(ordered, chosen[None] - 1, 0)[0]) & fires
        along = np.zeros(fires.shape)
        for column in table.T:
            along += fires[column] & (column >= 0)[:, None]
        along /= size[:, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            local = np.where(z, along, 0.0).sum(axis=0) / z.sum(axis=0)
            score = local / g
        defined = finite & np.isfinite(thresholds)
        better = defined & ~(best["score"] >= score * (1 - 1e-12))  # equal but for rounding: positive
        found = {"score": score, "global_rate": g, "local_rate": local, "sign": sign, "threshold": thresholds}
        found["status"] = np.where(fires.sum(axis=0) > k, "tied", "ok")
        for name, new in found.items():
            best[name] = np.where(better, new, best[name])
        sparse = finite & ~defined & (signed.max(axis=0) > signed.min(axis=0)) & ~np.isfinite(best["score"])
        best["status"] = np.where(sparse & (best["status"] == "constant"), "sparse", best["status"])
    return pd.DataFrame(best)


def top_proportion_mean(scores: Tensor | Array, p: float) -> float:
    """Mean of the ⌈p·n⌉ largest of n scores, undefined ones (NaN) left out; NaN if none is defined.

    Example:
        >>> top_proportion_mean(np.array([1.0, 4.0, 3.0, np.nan]), p=0.5)
        3.5

    Inv_p(N), §4.
    """
    if not 0 < p <= 1:
        raise AssayError(f"p={p} is not a proportion in (0, 1]")
    values = np.asarray(scores, dtype=np.float64)
    values = np.sort(values[np.isfinite(values)])[::-1]
    count = math.ceil(p * len(values) - 1e-9)
    return float(values[:count].mean()) if count else float("nan")


def firing_count(n: int, firing_rate: float) -> int:
    """On how many of n stimuli a unit fires: ⌈firing_rate·n⌉."""
    if not 0 < firing_rate < 1:
        raise AssayError(f"firing_rate={firing_rate} is not a rate between 0 and 1")
    if firing_rate * n < 1 - 1e-9:
        need = math.ceil(1 / firing_rate)
        raise AssayError(f"a firing rate of {firing_rate} needs at least {need} stimuli, there are {n}")
    return math.ceil(firing_rate * n - 1e-9)


def near_count(near_max: int | float, firing: Array) -> Array:
    """How many stimuli make Z, where a unit fires on ``firing`` of them: at least one, at most all of those."""
    whole = isinstance(near_max, int) and not isinstance(near_max, bool)
    if (whole and near_max < 1) or (not whole and not 0 < near_max <= 1):
        raise AssayError(f"near_max={near_max!r} is not a count of at least 1 or a share in (0, 1]")
    wanted = np.full_like(firing, near_max) if whole else np.ceil(near_max * firing - 1e-9).astype(firing.dtype)
    return np.clip(wanted, 1, np.maximum(firing, 1))


def _checked(responses: Tensor | Array, finite: bool = True) -> Array:
    values = np.asarray(responses.detach().cpu() if isinstance(responses, Tensor) else responses)
    if values.ndim != 2:
        raise AssayError(f"responses are stimuli × units, not {values.shape}")
    values = values.astype(np.float64, copy=False)
    if finite and not np.isfinite(values).all():
        raise AssayError("the responses have NaN or infinite values")
    return values


def _trajectory_table(trajectories: Trajectories, n: int) -> tuple[Array, Array]:
    """Trajectories as a table padded with −1, and the length of each."""
    if len(trajectories) != n:
        raise AssayError(f"there are {n} stimuli and {len(trajectories)} trajectories: give one for each stimulus")
    rows = [np.asarray(t, dtype=np.int64).ravel() for t in trajectories]
    size = np.array([len(r) for r in rows])
    if size.min() < 1:
        raise AssayError(f"the trajectory of stimulus {int(size.argmin())} is empty")
    table = np.full((n, size.max()), -1)
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
    if table.max() >= n or (table < -1).any():
        raise AssayError(f"a trajectory names stimulus {int(table.max())}, but there are only {n}")
    return table, size


def _undefined(units: int) -> dict[str, Any]:
    nan = np.full(units, np.nan)
    rates = {"score": nan, "global_rate": nan.copy(), "local_rate": nan.copy()}
    return {
        **rates,
        "sign": np.zeros(units, dtype=np.int64),
        "threshold": nan.copy(),
        "status": np.empty(units, object),
    }
