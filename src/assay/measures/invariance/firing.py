"""Firing rates: when a unit fires, how often, and how often it goes on firing under a transformation.

Goodfellow, Le, Saxe, Lee, Ng 2009, "Measuring invariances in deep networks", §4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from assay.core.errors import AssayError
from assay.core.rounding import ceiling

Array = np.ndarray[Any, Any]
Trajectories = Sequence[Sequence[int]] | Array
Signs = Literal["choose", "positive"]
SIGNS = {"choose": (1, -1), "positive": (1,)}
SCORED = ("ok", "tied")  # statuses of units that have a score
SLACK = 0.25  # share by which ties may raise a unit's firing rate above the target, and it still counts as met
# Scores and firing rates are ratios of counts: those that differ do so by far more than this share, and rounding moves
# each by far less.
ROUNDING = 1e-12


def firing_thresholds(responses: Tensor | Array, firing_rate: float = 0.01) -> Array:
    """The threshold of each unit above which it fires on a share ``firing_rate`` of the stimuli.

    t is the largest response exceeded by exactly k = ⌈firing_rate·n⌉ of the n stimuli, so that the global firing
    rate G = P(h > t) is k/n. Where the k-th largest response is repeated, no threshold does that; then t is the
    largest that gives G > k/n (all repetitions fire). NaN where none exists: the k-th largest response is also
    the smallest, so the unit fires on everything or on nothing.

    Args:
        responses: The responses, stimuli × units.
        firing_rate: The global firing rate that the thresholds are to give.

    Example:
        >>> firing_thresholds(np.arange(200.0)[:, None], firing_rate=0.01)
        array([197.])

    §4 (the paper's "smallest t with G > 0.01" is read as the smallest G above 0.01).
    """
    values = _checked(responses)
    k = firing_count(len(values), firing_rate)
    kth = np.partition(values, len(values) - k, axis=0)[len(values) - k]
    thresholds = np.where(values < kth, values, -np.inf).max(axis=0)  # the next smaller response
    return np.where(np.isfinite(thresholds), thresholds, np.nan)


def invariance_scores(
    responses: Tensor | Array,
    trajectories: Trajectories,
    firing_rate: float = 0.01,
    near_max: int | float = 0.1,
    signs: Signs = "choose",
    among: Array | None = None,
) -> pd.DataFrame:
    """The invariance score of each unit: how much more often than usual it fires on transforms of what drives it.

    Unit i fires when s·h > t, s ∈ {−1, +1}, t from `firing_thresholds`. With G = E_x[f(x)] over all stimuli, Z the
    stimuli that drive the unit most, T(z) the trajectory of z,

        L = mean_{z ∈ Z} mean_{x ∈ T(z)} f(x),    S = L / G.

    S is at most 1/G: 100 at a firing rate of 1 %.

    Args:
        responses: The responses, stimuli × units.
        trajectories: For each stimulus, the indices of the stimuli on its trajectory (itself among them);
            −1 is padding.
        firing_rate: The global firing rate G that the thresholds are to give.
        near_max: Number of stimuli in Z: a count, or a share (float) of those on which the unit fires. Ties with
            the last of them belong to Z too, so that the order of stimuli does not matter.
        signs: ``"choose"`` the sign that gives the larger score, or ``"positive"`` for units trained to be sparse.
            A sign whose firing rate is within 25 % of the target is preferred to one that ties prevent from reaching
            it.
        among: Indices of the stimuli that Z is taken from; all by default. G is over all stimuli in any case.

    Returns:
        One row per unit: ``score`` S, ``global_rate`` G, ``local_rate`` L, ``sign``, ``threshold``, ``status``.
        ``ok`` and ``tied`` units (repeated responses make G larger than asked for) have a score. The others have
        none: ``constant`` (dead, or always the same); ``sparse`` (above its smallest response on too few stimuli
        to set a threshold); ``always on`` (fires on more than half of the stimuli); ``silent`` (fires on none of
        the stimuli that Z is taken from); ``not finite``.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> energy = np.repeat(rng.random(1000), 10)[:, None]      # the same under all 10 transforms
        >>> orbit = np.arange(10000) // 10 * 10
        >>> invariance_scores(energy, orbit[:, None] + np.arange(10))["score"].round(6).tolist()
        [100.0]

    §4.
    """
    if signs not in SIGNS:
        raise AssayError(f"signs={signs!r} is not 'choose' or 'positive'")
    values = _checked(responses, finite=False)
    table, size = trajectory_table(trajectories, len(values))
    eligible = np.ones(len(values), dtype=bool)
    if among is not None:
        chosen = np.asarray(among)
        chosen = np.flatnonzero(chosen) if chosen.dtype == bool else np.unique(chosen)
        eligible = np.isin(np.arange(len(values)), chosen)
        if not len(chosen) or eligible.sum() != len(chosen):
            raise AssayError(
                f"among={among!r} must name at least one of the {len(values)} stimuli, from 0, and no other"
            )
    finite = np.asarray(np.isfinite(values).all(axis=0))
    scores_by_sign = []
    for sign in SIGNS[signs]:
        fired = fire(sign * np.where(finite, values, 0.0), firing_rate, near_max, eligible)
        along = np.zeros(fired.fires.shape)
        for column in table.T:
            along += fired.fires[column] & (column >= 0)[:, None]
        along /= size[:, None]
        with np.errstate(invalid="ignore"):
            local = np.where(fired.near, along, 0.0).sum(axis=0) / fired.near.sum(axis=0)
        scores_by_sign.append(SignedScores(sign, fired.thresholds, fired.fires.mean(axis=0), local, fired.status))
    return choose_sign(scores_by_sign, firing_count(len(values), firing_rate) / len(values), finite)


@dataclass(frozen=True)
class Fired:
    """Thresholds and status of units of one sign; the stimuli they fire on, and those in Z (stimuli × units)."""

    thresholds: Array
    status: Array
    fires: Array
    near: Array


def fire(signed: Array, firing_rate: float, near_max: int | float, eligible: Array) -> Fired:
    """Find when units fire, and their Z, from responses (stimuli × units) already multiplied by their sign."""
    thresholds = firing_thresholds(signed, firing_rate)
    fires = signed > thresholds
    candidates = fires & eligible[:, None]
    ordered = -np.sort(-np.where(candidates, signed, -np.inf), axis=0)
    chosen = near_count(near_max, candidates.sum(axis=0))
    near = candidates & (signed >= np.take_along_axis(ordered, chosen[None] - 1, 0)[0])
    status = status_of(
        constant=signed.max(axis=0) == signed.min(axis=0),
        sparse=np.isnan(thresholds),
        firing=fires.sum(axis=0),
        silent=candidates.sum(axis=0) == 0,
        n=len(signed),
        asked=firing_count(len(signed), firing_rate),
    )
    return Fired(thresholds, status, fires, near)


def status_of(constant: Array, sparse: Array, firing: Array, silent: Array, n: int, asked: int) -> Array:
    """The status of each unit: the first that applies of constant, sparse, always on, silent, tied and ok."""
    kinds = [(constant, "constant"), (sparse, "sparse"), (2 * firing > n, "always on"), (silent, "silent")]
    kinds.append((firing > asked, "tied"))
    return np.select([np.asarray(k) for k, _ in kinds], [name for _, name in kinds], "ok").astype(object)


@dataclass(frozen=True)
class SignedScores:
    """Thresholds, firing rates and status of all units of a layer under one sign."""

    sign: int
    thresholds: Array
    global_rate: Array
    local_rate: Array
    status: Array

    @cached_property
    def defined(self) -> Array:
        """Whether each unit has a score."""
        return np.isin(self.status, SCORED)

    def preference(self, rate: float) -> Array:
        """How much each unit prefers this sign whatever its score: 2 where it meets the firing rate, 0 without one."""
        return np.where(self.defined, 1 + (self.global_rate <= (1 + SLACK) * rate * (1 + ROUNDING)), 0)

    @cached_property
    def score(self) -> Array:
        """The invariance score S = L / G of each unit, NaN where it is undefined."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.defined, self.local_rate / self.global_rate, np.nan)


def choose_sign(scores_by_sign: Sequence[SignedScores], rate: float, finite: Array) -> pd.DataFrame:
    """Choose the sign of each unit: one that meets the firing rate, then the larger score, then the positive sign."""
    chosen, _ = better_sign([s.score for s in scores_by_sign], [s.preference(rate) for s in scores_by_sign])
    columns = {
        "score": [s.score for s in scores_by_sign],
        "global_rate": [np.where(s.defined, s.global_rate, np.nan) for s in scores_by_sign],
        "local_rate": [np.where(s.defined, s.local_rate, np.nan) for s in scores_by_sign],
        "sign": [np.where(s.defined, s.sign, 0) for s in scores_by_sign],
        "threshold": [np.where(s.defined, s.thresholds, np.nan) for s in scores_by_sign],
        "status": [s.status for s in scores_by_sign],
    }
    table = {name: np.choose(chosen, options) for name, options in columns.items()}
    for name, undefined in (("score", np.nan), ("global_rate", np.nan), ("local_rate", np.nan), ("sign", 0)):
        table[name] = np.where(finite, table[name], undefined)
    table["threshold"] = np.where(finite, table["threshold"], np.nan)
    table["status"] = np.where(finite, table["status"], "not finite")
    return pd.DataFrame(table)


def better_sign(scores: Sequence[Array], preferences: Sequence[Array]) -> tuple[Array, Array]:
    """The number of the sign that each unit has, and its score with that sign; NaN where no sign has a score.

    Args:
        scores: The scores of all units, for each sign.
        preferences: What counts before the score: a larger one wins, and 0 is no score.
    """
    best, chosen = scores[0], np.zeros(len(scores[0]), dtype=np.int64)
    rank = np.where(np.isfinite(best), preferences[0], 0)
    for i, other in enumerate(scores[1:], start=1):
        its = np.where(np.isfinite(other), preferences[i], 0)
        # Equal but for rounding is equal: then the sign stays positive.
        better = (its > rank) | ((its == rank) & (its > 0) & (other > best * (1 + ROUNDING)))
        best, rank, chosen = np.where(better, other, best), np.where(better, its, rank), np.where(better, i, chosen)
    return chosen, np.where(rank > 0, best, np.nan)


def top_proportion_mean(scores: Tensor | Array, p: float) -> float:
    """Mean of the ⌈p·n⌉ largest of n scores, undefined ones (NaN) left out; NaN if none is defined.

    Example:
        >>> top_proportion_mean(np.array([1.0, 4.0, 3.0, np.nan]), p=0.5)
        3.5

    Inv_p(N), §4.
    """
    values = np.asarray(scores.detach().cpu() if isinstance(scores, Tensor) else scores, dtype=np.float64)
    values = values[np.isfinite(values)]
    count = top_count(len(values), p)
    return float(np.partition(values, len(values) - count)[len(values) - count :].mean()) if count else float("nan")


def top_count(n: int, p: float) -> int:
    """Number of scores in the best-scoring proportion p of n: ⌈p·n⌉."""
    if not 0 < p <= 1:
        raise AssayError(f"p={p} is not a proportion in (0, 1]")
    return ceiling(p * n)


def firing_count(n: int, firing_rate: float) -> int:
    """Number of stimuli, of n, on which a unit of the given rate fires: ⌈firing_rate·n⌉."""
    if not 0 < firing_rate < 1:
        raise AssayError(f"firing_rate={firing_rate} is not a rate between 0 and 1")
    if firing_rate * n < 1 - 1e-9:
        need = ceiling(1 / firing_rate)
        raise AssayError(f"a firing rate of {firing_rate} needs at least {need} stimuli, there are {n}")
    return ceiling(firing_rate * n)


def near_count(near_max: int | float, firing: Array) -> Array:
    """Number of stimuli in Z for units that fire on ``firing`` of them: at least one, at most all of those."""
    whole = isinstance(near_max, int) and not isinstance(near_max, bool)
    if (whole and near_max < 1) or (not whole and not 0 < near_max <= 1):
        raise AssayError(f"near_max={near_max!r} is not a count of at least 1 or a share in (0, 1]")
    wanted = np.full_like(firing, near_max) if whole else np.ceil(near_max * firing - 1e-9).astype(firing.dtype)
    return np.clip(wanted, 1, np.maximum(firing, 1))


def _checked(responses: Tensor | Array, finite: bool = True) -> Array:
    if isinstance(responses, Tensor):  # NumPy has no bfloat16
        responses = responses.detach().cpu()
        responses = responses if responses.dtype in (torch.float32, torch.float64) else responses.float()
    values = np.asarray(responses)
    if values.ndim != 2:
        raise AssayError(f"responses are stimuli × units, not {values.shape}")
    if not np.issubdtype(values.dtype, np.floating):
        values = values.astype(np.float64)
    if finite and not np.isfinite(values).all():
        raise AssayError("the responses have NaN or infinite values")
    return values


def trajectory_table(trajectories: Trajectories, n: int) -> tuple[Array, Array]:
    """Trajectories as one table, padded with −1, and the length of each."""
    if len(trajectories) != n:
        raise AssayError(f"there are {n} stimuli and {len(trajectories)} trajectories: give one for each stimulus")
    rows = [np.asarray(t, dtype=np.int64).ravel() for t in trajectories]
    for row in rows:
        if ((row < -1) | (row >= n)).any():
            wrong = int(row[(row < -1) | (row >= n)][0])
            raise AssayError(f"a trajectory names stimulus {wrong}, but there are {n}, numbered from 0")
    rows = [row[row >= 0] for row in rows]
    size = np.array([len(r) for r in rows])
    if size.min() < 1:
        raise AssayError(f"the trajectory of stimulus {int(size.argmin())} is empty")
    table = np.full((n, size.max()), -1)
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
    return table, size
