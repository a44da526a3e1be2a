"""Scores on held-out stimuli: units and signs are chosen on one half of the stimuli and scored on the other.

The best of many units owe their scores partly to luck, and so does the better of two signs. On the stimuli that chose
them, the mean of the best is too high, and no interval around it holds what they would score on others. Here
thresholds, Z, signs and the best units are found on one half of the clips, and what is so chosen is scored on the other
half, with thresholds and Z of its own; then the other way round. Neither half knows anything of the other. (With
thresholds and Z of all stimuli it would: a unit fires on a fixed number of stimuli, and the more of them are in one
clip, the fewer are left for the others.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from assay.measures.invariance.firing import ROUNDING, better_sign, top_count
from assay.stats.bootstrap import counts

Array = np.ndarray[Any, Any]
_DRAWS = 20  # resamples computed at a time
_FEWEST = 2  # degrees of freedom for an interval; with fewer, t is above 12
_FEWEST_PAIRS = 10
_FEWEST_ALIKE = 20  # where all resamples are alike: what 20 clips agree in, one of seven may yet do otherwise


def halves(blocks: Array, seed: int = 0) -> Array | None:
    """The half, 0 or 1, that each stimulus is in: blocks are dealt to them at random; None where there is one block.

    Args:
        blocks: The number of the block of each stimulus, from 0.
        seed: Seed of the deal.

    Example:
        >>> halves(np.array([0, 0, 1, 1, 2, 2])).tolist()
        [0, 0, 1, 1, 0, 0]
    """
    number = int(blocks.max()) + 1
    return None if number < 2 else (np.random.default_rng((seed, number)).permutation(number) % 2)[blocks]


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
    that have a smaller share in it (Kish: (Σc)²/Σc²). They are 0 where it rests on too few to tell how sure it is:
    below 2, below 20 if all resamples are alike, or would be if G were the same on both halves, and where it is the
    mean of fewer than 10 pairs of a unit and a stimulus (Kish's number again), of which an interval covers too rarely
    (`benchmarks/invariance_coverage.py`).
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

    Scores that are equal but for rounding tie: sums of the same local rates depend on their order in the last digits.

    Example:
        >>> top_weights(np.array([3.0, 1.0, 2.0, 2.0, np.nan]), p=0.5).tolist()
        [1.0, 0.0, 0.5, 0.5, 0.0]
    """
    values = np.where(np.isfinite(scores), scores, -np.inf)
    count = top_count(int(np.isfinite(scores).sum()), p)
    if not count:
        return np.zeros(len(values))
    last = np.partition(values, len(values) - count)[len(values) - count]
    above = values > last * (1 + ROUNDING)
    tied = ~above & (values >= last * (1 - ROUNDING))
    return np.where(above, 1.0, np.where(tied, (count - above.sum()) / tied.sum(), 0.0))


def held_out_score(
    by_half: Sequence[Sequence[SignedPairs]],
    p: float,
    blocks: int,
    draws: int = 0,
    seed: int = 0,
    units_seed: Sequence[int] = (0,),
) -> HeldOut:
    """The mean score on the other half of the best-scoring proportion p of units, each with its better sign.

    With w^h the weights (`top_weights`) and s^h the signs that the scores on half h give, and the thresholds, the Z and
    the local rates L of half h̄, the other one,

        Σ_h Σ_i w_i^h Σ_{z ∈ Z_i^h̄} L(z) / (|Z_i^h̄|·G_i)   over   Σ_h Σ_i w_i^h,

    where a unit is left out if it has no score on the other half with the sign that it has on the first, or if there
    ties prevent that sign from reaching the firing rate and not the other. It is the score of a test of half as many
    blocks, which differs from that of the whole where blocks are few: with fewer clips a unit fires on less of its best
    one.

    A resample draws blocks and chosen units anew; choices and thresholds stay as they are. Networks that were shown the
    same stimuli have the same halves and resamples of blocks, so that their differences can be taken draw by draw.

    Args:
        by_half: Z of all units on each half, for each sign that units may have; empty where there are no halves.
        p: The proportion of units.
        blocks: Number of blocks of stimuli.
        draws: Number of resamples.
        seed: Seed of the resamples of blocks.
        units_seed: Seeds of the resamples of units, which are another network's no more than its units are.

    Example:
        >>> unit, rate = np.arange(4), np.full(4, 0.01)
        >>> halves = [[SignedPairs(unit, np.full(4, h), local, rate, np.ones(4))] for h, local in enumerate(
        ...     (np.array([1.0, 0.9, 0.1, 0.2]), np.array([0.6, 0.2, 0.3, 0.1])))]
        >>> held_out_score(halves, 0.25, blocks=2).score          # both halves choose the first unit
        80.0
    """
    if len(by_half) < 2:
        return HeldOut(np.nan, np.full(draws, np.nan), 0.0)
    parts = []
    for here, there in (by_half, by_half[::-1]):
        chosen, scores = _better(here)
        weights = top_weights(scores, p)
        preferred = np.max([pairs.preference for pairs in there], axis=0)
        for i, pairs in enumerate(there):
            parts.append(_held(pairs, np.where((chosen == i) & (pairs.preference == preferred), weights, 0.0)))
    return _mean(parts, blocks, draws, seed, units_seed)


def fixed_score(scores: Array, p: float, draws: int = 0, units_seed: Sequence[int] = (0,)) -> HeldOut:
    """Inv_p where the stimuli are all that there are, as in a grid of gratings: none is left that could be held out.

    A resample draws units, among which the best are chosen anew. The degrees of freedom are one less than the units
    that Inv_p is the mean of.

    Args:
        scores: The score of each unit, NaN where it has none.
        p: The proportion of units.
        draws: Number of resamples.
        units_seed: Seeds of the resamples of units.

    Example:
        >>> fixed_score(np.array([3.0, 1.0, np.nan, 5.0, 7.0]), p=0.5).score
        6.0
    """
    ordered = np.sort(scores[np.isfinite(scores)])[::-1]
    count = top_count(len(ordered), p)
    if not count:
        return HeldOut(np.nan, np.full(draws, np.nan), 0.0)
    means = [np.empty(0)]
    for drawn in counts(len(ordered), draws, units_seed, at_once=_DRAWS * len(ordered)):
        of_best = np.clip(count - (drawn.cumsum(axis=1) - drawn), 0, drawn)
        means.append(of_best @ ordered / count)
    return _known(float(ordered[:count].mean()), np.concatenate(means), count - 1.0)


def _better(signed: Sequence[SignedPairs]) -> tuple[Array, Array]:
    """The better sign of each unit, by its number, and its score under it."""
    return better_sign([_scores(pairs) for pairs in signed], [pairs.preference for pairs in signed])


def _scores(pairs: SignedPairs) -> Array:
    """The score of each unit."""
    units = len(pairs.rate)
    total = np.bincount(pairs.unit, pairs.local, units)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(total / np.bincount(pairs.unit, minlength=units) / pairs.rate)


def _held(pairs: SignedPairs, weights: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Of the pairs of units that have a weight: unit, block, value, share in the mean, and local rate."""
    some = weights[pairs.unit] > 0
    unit = pairs.unit[some]
    share = weights[unit] / np.bincount(pairs.unit, minlength=len(weights))[unit]
    local = pairs.local[some]
    return unit, pairs.block[some], share * local / pairs.rate[unit], share, local


def _mean(
    parts: Sequence[tuple[Array, ...]],
    blocks: int,
    draws: int,
    seed: int,
    units_seed: Sequence[int],
) -> HeldOut:
    """The mean over pairs, and in resamples of the blocks and of the units."""
    unit, block, value, share, local = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    total = share.sum()
    if not total:
        return HeldOut(np.nan, np.full(draws, np.nan), 0.0)
    df = float(total**2 / (np.bincount(block, share) ** 2).sum()) - 1
    resampled = _resampled(unit, block, value, share, blocks, draws, seed, units_seed)
    if total**2 / (share**2).sum() < _FEWEST_PAIRS - 1e-9:
        df = 0.0
    return _known(float(value.sum() / total), resampled, df, bool(np.ptp(local) <= 1e-9))


def _known(score: float, draws: Array, df: float, alike: bool = False) -> HeldOut:
    """A score with what tells how sure it is, if anything does: nothing, where it rests on few that are all alike."""
    drawn = draws[np.isfinite(draws)]  # a resample may have none of few blocks
    alike = alike or (len(drawn) > 1 and np.ptp(drawn) <= 1e-9 * abs(score))
    return HeldOut(score, draws, 0.0 if df < (_FEWEST_ALIKE if alike else _FEWEST) else df)


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
