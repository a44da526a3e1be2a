"""Do intervals of the invariance score cover? Experiments with known truth, the usual interval beside ours.

    python benchmarks/invariance_coverage.py [--experiments 200] [--only "one in Z"]

Units respond r = b·clip + √(1 − b²)·frame: b² says how much of a unit's variance lies between clips, and so how
invariant it is. Thresholds, Z and scores follow from the responses, as in a measurement. Ours chooses units and signs
on half of the clips and scores them on the other half, both ways. What it promises to hold in 95 % is what the units so
chosen score on average over experiments with half as many clips. Beside it stands what they score on average with all
clips, which is another number where clips are few. The usual interval is a bootstrap, over units and clips, of the mean
of the best, chosen anew in every resample, with the whole as its truth.
"""

from __future__ import annotations

import argparse
import functools
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from statsmodels.stats.proportion import proportion_confint

from assay.measures.invariance.firing import better_sign, fire
from assay.measures.invariance.held_out import SignedPairs, halves, held_out_score, top_weights
from assay.stats.bootstrap import crossed_picks, percentile_interval

Array = NDArray[np.float64]
REACH = 5  # frames before and after z that are on T(z)
AVERAGED = 100  # experiments that the truth is the mean of


@dataclass(frozen=True)
class World:
    """How many units and clips; b² of the units, ``least`` to ``most``; the firing rate, and the share of it in Z."""

    name: str
    units: int = 100
    clips: int = 20
    frames: int = 50
    least: float = 0.05
    most: float = 0.95
    rate: float = 0.01
    near: float = 0.1


WORLDS: tuple[World, ...] = (
    World("20 clips, units differ"),
    World("20 clips, units differ, all firing in Z", near=1.0),
    World("60 short clips, units differ", clips=60, frames=30),
    World("10 clips, units alike, clips drive all", clips=10, least=0.9, most=0.9, rate=0.05, near=1.0),
    World("20 clips × 72, units alike, clips drive all", frames=72, least=0.95, most=0.95, near=1.0),
    World("the same, a tenth of firing in Z", frames=72, least=0.95, most=0.95),
    World("6 clips, units alike", clips=6, least=0.9, most=0.9, rate=0.05, near=1.0),
    World("20 clips × 100, units alike, clips drive half", frames=100, least=0.5, most=0.5, near=1.0),
    World("400 units, 8 clips", units=400, clips=8, rate=0.05, near=1.0),
    World("clips that matter little", frames=100, least=0.02, most=0.1, near=1.0),
    World("10 units, 172 pictures × 3, one in Z", units=10, clips=172, frames=3),
    World("25 units, 172 pictures × 3, one in Z", units=25, clips=172, frames=3),
    World("25 units alike, 57 pictures × 9, one in Z", units=25, clips=57, frames=9, least=0.5, most=0.5),
)


def responses(world: World, rng: np.random.Generator) -> Array:
    """Responses of all units: clips × frames × units."""
    driven = np.linspace(world.least, world.most, world.units)
    clip = rng.normal(size=(world.clips, 1, world.units)) * np.sqrt(driven)
    return np.asarray(clip + np.sqrt(1 - driven) * rng.normal(size=(world.clips, world.frames, world.units)))


def pairs_of(world: World, shown: Array, clips: Array, sign: int) -> SignedPairs:
    """Z of all units under one sign in some clips, with the share of frames around each on which the unit fires."""
    found = fire(sign * shown.reshape(-1, world.units), world.rate, world.near, np.ones(shown[..., 0].size, dtype=bool))
    fires = found.fires.reshape(shown.shape)
    until = np.concatenate([np.zeros((len(shown), 1, world.units)), fires.cumsum(axis=1)], axis=1)
    first = np.maximum(np.arange(world.frames) - REACH, 0)
    last = np.minimum(np.arange(world.frames) + REACH + 1, world.frames)
    local = (until[:, last] - until[:, first]) / (last - first)[:, None]
    unit, stimulus = np.nonzero(found.near.T)
    clip, frame = np.divmod(stimulus, world.frames)
    return SignedPairs(unit, clips[clip], local[clip, frame, unit], found.fires.mean(axis=0), np.ones(world.units))


def scores_of(pairs: SignedPairs) -> Array:
    """The score of each unit."""
    units = len(pairs.rate)
    total = np.bincount(pairs.unit, pairs.local, units)
    return np.asarray(total / np.bincount(pairs.unit, minlength=units) / pairs.rate)


@functools.cache
def expected(world: World, of_clips: int) -> Array:
    """What each unit scores on average over experiments of so many clips; units that are alike, all the same."""
    rng = np.random.default_rng((99, of_clips))
    total = np.zeros(world.units)
    for _ in range(AVERAGED):
        total += scores_of(pairs_of(world, responses(world, rng)[:of_clips], np.arange(of_clips), 1))
    mean = total / AVERAGED
    return np.full_like(mean, mean.mean()) if world.least == world.most else mean


def usual_interval(pairs: SignedPairs, p: float, clips: int, draws: int, seed: int) -> tuple[float, float]:
    """Percentiles of the mean of the best, which are chosen and scored on the same resample."""
    units = len(pairs.rate)
    totals, counts = (np.zeros((units, clips)) for _ in range(2))
    np.add.at(totals, (pairs.unit, pairs.block), pairs.local)
    np.add.at(counts, (pairs.unit, pairs.block), 1)
    means = []
    for drawn, drawn_units in crossed_picks((clips, units), draws, seed):
        weight = np.bincount(drawn, minlength=clips)
        with np.errstate(invalid="ignore"):
            scores = (totals @ weight / (counts @ weight) / pairs.rate)[drawn_units]
        weights = top_weights(scores, p)
        means.append(weights @ np.nan_to_num(scores) / weights.sum())
    low, high = percentile_interval(means)
    return float(low), float(high)


def judged(world: World, p: float, signs: tuple[int, ...], experiments: int, draws: int) -> dict[str, float]:
    """How often each interval held its truth, and means over the experiments."""
    held = {"ours": 0, "usual": 0, "missing": 0}
    numbers = []
    for number in range(experiments):
        rng = np.random.default_rng((number, WORLDS.index(world)))
        shown = responses(world, rng)
        half = halves(np.arange(world.clips), number)
        assert half is not None
        mine = [np.flatnonzero(half == h) for h in (0, 1)]
        by_half = [[pairs_of(world, shown[clips], clips, sign) for sign in signs] for clips in mine]
        found = held_out_score(by_half, p, world.clips, draws, number, (number, 1))
        low, high = found.interval(1 / world.rate)
        chosen = [better_sign([scores_of(s) for s in of], [s.preference for s in of])[1] for of in by_half]
        weights = np.sum([top_weights(scores, p) for scores in chosen], axis=0)
        true, whole = (float(weights @ expected(world, c) / weights.sum()) for c in (world.clips // 2, world.clips))
        every = pairs_of(world, shown, np.arange(world.clips), 1)
        of_best = top_weights(scores_of(every), p)
        usual = usual_interval(every, p, world.clips, draws, number)
        held["ours"] += low <= true <= high
        held["missing"] += bool(np.isnan(low))
        held["usual"] += usual[0] <= float(of_best @ expected(world, world.clips) / of_best.sum()) <= usual[1]
        score = float(of_best @ scores_of(every) / of_best.sum())
        numbers.append((true, found.score, high - low, whole, score))
    names = ("true", "held_out", "width", "whole", "score")
    return held | dict(zip(names, map(float, np.nanmean(numbers, axis=0)), strict=True))


def main() -> None:
    """Print, for each world, p and number of signs, how often each interval held its truth."""
    parser = argparse.ArgumentParser(description="Do intervals of the invariance score cover?")
    parser.add_argument("--experiments", type=int, default=200)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--only", default="", help="worlds with these words in their names")
    asked = parser.parse_args()
    write = sys.stdout.write
    write(f"{asked.experiments} experiments each; share of 95 % intervals given that held the truth (95 % interval)\n")
    write(f"{'':46}{'':>5}{'':>6}{'with half of the clips':^44}{'with all clips':^34}\n")
    write(f"{'world':46}{'p':>5}{'signs':>6}{'truth':>8}{'held out':>10}{'width':>7}  {'ours':21}")
    write(f"{'truth':>8}{'score':>8}  {'usual, one sign':21}{'missing':>8}\n")
    for world in (w for w in WORLDS if asked.only in w.name):
        for p, signs in ((0.2, (1,)), (0.2, (1, -1)), (1.0, (1,)), (1.0, (1, -1))):
            found = judged(world, p, signs, asked.experiments, asked.draws)
            shares = []
            for kind, given in (("ours", asked.experiments - found["missing"]), ("usual", asked.experiments)):
                low, high = proportion_confint(found[kind], given, method="wilson") if given else (np.nan, np.nan)
                shares.append(f"{found[kind] / given if given else np.nan:.3f} ({low:.3f}–{high:.3f})")
            write(f"{world.name:46}{p:5.1f}{len(signs):6}{found['true']:8.1f}{found['held_out']:10.1f}")
            write(f"{found['width']:7.1f}  {shares[0]:21}{found['whole']:8.1f}{found['score']:8.1f}  {shares[1]:21}")
            write(f"{found['missing'] / asked.experiments:8.2f}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
