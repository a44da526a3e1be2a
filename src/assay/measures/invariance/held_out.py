"""Scores on held-out stimuli: units and signs are chosen on some stimuli and scored on others.

The best of many units owe their scores partly to luck. On the stimuli that chose them, the mean of the best is too
high, and no interval around it holds what they would score on others. Here they are chosen on all blocks of stimuli but
some, and scored on those; every block is held out once (cross-fitting).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from assay.measures.invariance.firing import better_sign, top_count
from assay.stats.bootstrap import counts

Array = np.ndarray[Any, Any]
FOLDS = 10
_MOST_CONCENTRATED = 0.1  # of the best units, more than of all: above, a score of the others would not be theirs
_DRAWS = 20  # resamples computed at a time


@dataclass(frozen=True)
class SignedPairs:
    """Z of all units under one sign: pairs of a unit and a stimulus, with the share of its trajectory that fires.

    Args:
        unit: The unit of each pair.
        block: The block of stimuli that the stimulus of each pair belongs to.
        local: The share of T(z) on which the unit fires.
        rate: The global firing rate G of each unit.
        preference: How much each unit prefers this sign whatever the scores: 0 where it has no score.
    """

    unit: Array
    block: Array
    local: Array
    rate: Array
    preference: Array


@dataclass(frozen=True)
class HeldOut:
    """The mean score of chosen units on stimuli that did not choose them, with its value in resamples.

    ``df`` are its degrees of freedom: one less than the number of blocks that it rests on, which counts blocks less
    that have a smaller share in it (Kish: (Σc)²/Σc²).
    """

    score: float
    draws: Array
    df: float

    def interval(self, most: float, confidence: float = 0.95) -> tuple[float, float]:
        """The score ± t·s·√((df + 1)/df), s the standard deviation of the draws, within 0 and ``most``."""
        drawn = self.draws[np.isfinite(self.draws)]
        if len(drawn) < 2 or not self.df > 0:
            return np.nan, np.nan
        half = scipy.stats.t.ppf((1 + confidence) / 2, self.df) * drawn.std(ddof=1) * np.sqrt((self.df + 1) / self.df)
        return max(self.score - half, 0.0), min(self.score + half, most)


def top_weights(scores: Array, p: float) -> Array:
    """The weight of each unit in Inv_p: 1 in the best-scoring proportion, 0 outside, shared between ties at its end.

    Example:
        >>> top_weights(np.array([3.0, 1.0, 2.0, 2.0, np.nan]), p=0.5).tolist()
        [1.0, 0.0, 0.5, 0.5, 0.0]
    """
    values = np.where(np.isfinite(scores), scores, -np.inf)
    count = top_count(int(np.isfinite(scores).sum()), p)
    if not count:
        return np.zeros(len(values))
    last = np.partition(values, len(values) - count)[len(values) - count]
    above, tied = values > last, values == last
    return np.where(above, 1.0, np.where(tied, (count - above.sum()) / tied.sum(), 0.0))


def held_out_score(
    signed: Sequence[SignedPairs],
    p: float,
    blocks: int,
    draws: int = 0,
    seed: int = 0,
    units_seed: Sequence[int] = (0,),
) -> HeldOut:
    """The mean score on held-out stimuli of the best-scoring proportion p of units, each with its better sign.

    Blocks are dealt into ten folds. For each fold k, units and signs are chosen by their scores on the others, with
    weights w (`top_weights`), and scored on the fold:

        Σ_k Σ_i w_i^(−k) Σ_{z ∈ Z_i ∩ k} L(z) / (|Z_i|·G_i)   over   Σ_k Σ_i w_i^(−k) |Z_i ∩ k| / |Z_i|,

    with L(z) the share of T(z) on which unit i fires. Where there is nothing to choose (p = 1 and one sign) this is the
    mean of all scores.

    A unit all of whose Z is in one fold cannot be chosen without it. Invariant units are of this kind where few clips
    are shown: they fire on whole clips. At p = 1 such a unit keeps the sign that it has on all stimuli, and counts.
    Below, where units have to be chosen, those whose Z is spread over many folds are chosen more surely than others.
    Where these are the less invariant ones, the score would be too low. It is NaN if units with more than half of Z in
    one fold are more frequent among the best units on all stimuli than among all units, by more than a tenth.

    A resample draws blocks and chosen units anew; choices and thresholds stay as they are. Networks that were shown the
    same stimuli have the same resamples of blocks, so that their differences can be taken draw by draw.

    Args:
        signed: Z of all units, for each sign that units may have.
        p: The proportion of units.
        blocks: Number of blocks of stimuli.
        draws: Number of resamples.
        seed: Seed of the folds and of the resamples of blocks.
        units_seed: Seeds of the resamples of units, which are another network's no more than its units are.

    Example:
        >>> unit = np.repeat(np.arange(4), 2)
        >>> block, local = np.tile([0, 1], 4), np.array([1.0, 0.6, 0.9, 0.2, 0.1, 0.3, 0.2, 0.1])
        >>> held_out_score([SignedPairs(unit, block, local, np.full(4, 0.01), np.ones(4))], 0.25, blocks=2).score
        80.0
    """
    fold = _folds(blocks, seed)
    unit, block, value, share = _chosen(signed, p, fold)
    total = share.sum()
    if not total or (p < 1 and _concentration(signed, p, fold) > _MOST_CONCENTRATED):
        return HeldOut(np.nan, np.full(draws, np.nan), 0.0)
    by_block = np.bincount(block, share)
    df = float(total**2 / (by_block**2).sum()) - 1
    return HeldOut(
        float(value.sum() / total), _resampled(unit, block, value, share, blocks, draws, seed, units_seed), df
    )


def _folds(blocks: int, seed: int) -> Array:
    """The fold of each block."""
    return np.random.default_rng((seed, blocks)).permutation(blocks) % min(FOLDS, blocks)


def _chosen(signed: Sequence[SignedPairs], p: float, fold: Array) -> tuple[Array, Array, Array, Array]:
    """Of all pairs that are held out from a choice of their unit: unit, block, value and share in the mean."""
    sizes = [np.bincount(pairs.unit, minlength=len(pairs.rate)) for pairs in signed]
    if len(signed) == 1 and p == 1:
        return _held(signed[0], sizes[0], np.ones(len(signed[0].rate)), np.ones(len(signed[0].unit), dtype=bool))
    on_all = _better(signed)[0] if p == 1 else None
    parts = []
    for k in range(int(fold.max()) + 1):
        outside = [fold[pairs.block] != k for pairs in signed]
        chosen, scores = _better(signed, outside)
        weights = top_weights(scores, p)
        if on_all is not None:
            inside = [_has(pairs, ~kept) & ~_has(pairs, kept) for pairs, kept in zip(signed, outside, strict=True)]
            only_here = np.any([(on_all == i) & here for i, here in enumerate(inside)], axis=0)
            chosen, weights = np.where(only_here, on_all, chosen), np.where(only_here, 1.0, weights)
        for i, pairs in enumerate(signed):
            own = np.where(chosen == i, weights, 0.0)
            parts.append(_held(pairs, sizes[i], own, ~outside[i] & (own[pairs.unit] > 0)))
    unit, block, value, share = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return unit, block, value, share


def _concentration(signed: Sequence[SignedPairs], p: float, fold: Array) -> float:
    """How much more frequent units with more than half of Z in one fold are among the best than among all units."""
    chosen, scores = _better(signed)
    folds = int(fold.max()) + 1
    largest = np.zeros(len(scores))
    for i, pairs in enumerate(signed):
        spread = np.bincount(pairs.unit * folds + fold[pairs.block], minlength=len(scores) * folds)
        by_fold = spread.reshape(-1, folds)
        share = by_fold.max(axis=1) / np.maximum(by_fold.sum(axis=1), 1)
        largest = np.where(chosen == i, share, largest)
    best, every = (top_weights(scores, of) @ (largest > 0.5) / top_weights(scores, of).sum() for of in (p, 1.0))
    return float(best - every)


def _better(signed: Sequence[SignedPairs], kept: Sequence[Array] | None = None) -> tuple[Array, Array]:
    """The better sign of each unit, by its number, and its score under it, from some pairs of each sign or from all."""
    some = kept if kept is not None else [np.ones(len(pairs.unit), dtype=bool) for pairs in signed]
    scores = [_scores(pairs, which) for pairs, which in zip(signed, some, strict=True)]
    return better_sign(scores, [pairs.preference for pairs in signed])


def _has(pairs: SignedPairs, some: Array) -> Array:
    """Which units have any of the given pairs."""
    return np.bincount(pairs.unit[some], minlength=len(pairs.rate)) > 0


def _held(pairs: SignedPairs, sizes: Array, weights: Array, which: Array) -> tuple[Array, Array, Array, Array]:
    unit = pairs.unit[which]
    share = weights[unit] / sizes[unit]
    return unit, pairs.block[which], share * pairs.local[which] / pairs.rate[unit], share


def _scores(pairs: SignedPairs, kept: Array) -> Array:
    """The score of each unit from some of its pairs."""
    units = len(pairs.rate)
    total = np.bincount(pairs.unit[kept], pairs.local[kept], units)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(total / np.bincount(pairs.unit[kept], minlength=units) / pairs.rate)


def _resampled(
    unit: Array,
    block: Array,
    value: Array,
    share: Array,
    blocks: int,
    draws: int,
    seed: int,
    units_seed: Sequence[int],
) -> Array:
    """The mean in resamples of the blocks and of the chosen units."""
    present = np.bincount(unit) > 0
    shape = (blocks, int(present.sum()))
    number = np.cumsum(present) - 1  # of a unit among those present
    values, shares = (scipy.sparse.csr_array((x, (block, number[unit])), shape) for x in (value, share))
    means = [np.empty(0)]
    resamples = zip(
        counts(blocks, draws, seed, at_once=_DRAWS * blocks),
        counts(shape[1], draws, units_seed, at_once=_DRAWS * shape[1]),
        strict=True,
    )
    for of_blocks, of_units in resamples:
        by_block = of_blocks.astype(np.float64)
        by_unit = of_units.T.astype(np.float64)
        value_sum, share_sum = (np.vecdot(by_block, (x @ by_unit).T.copy()) for x in (values, shares))
        with np.errstate(invalid="ignore", divide="ignore"):
            means.append(value_sum / share_sum)
    return np.concatenate(means)
