"""Do intervals of the invariance score cover? Experiments with known truth, the old interval beside ours.

    python benchmarks/invariance_coverage.py [--experiments 400]

Units have true scores; each unit fires more or less in each clip, in some worlds together with the others; Z is twelve
frames of some of the clips. Truth for Inv_p is the mean of the true scores of the units that an experiment calls its
best. Ours chooses units on some clips and scores them on others; the usual interval is a bootstrap, over units and
clips, of the mean of the best, chosen anew in every resample. Both promise 95 %. Ours gives
no interval where the best units have Z in few clips more often than the others; these experiments are counted apart.
The last worlds have responses in place of given firing rates: units differ in how much a clip drives all of their
responses, and so in their invariance, and thresholds and Z follow from the responses; truth is what the units chosen
score on average over such experiments.
"""

from __future__ import annotations

import argparse
import functools
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from statsmodels.stats.proportion import proportion_confint

from assay.measures.invariance.firing import fire
from assay.measures.invariance.held_out import SignedPairs, held_out_score, top_weights
from assay.stats.bootstrap import crossed_picks, percentile_interval

Array = NDArray[np.float64]
G, MAGNITUDES, Z = 0.01, 11, 12


@dataclass(frozen=True)
class World:
    """How much units differ, how much clips change them, and how much clips change all units alike."""

    name: str
    units: int = 100
    clips: int = 20
    spread: float = 0.15
    own: float = 3.0
    together: float = 0.0


@dataclass(frozen=True)
class Responses(World):
    """A world of responses r = b·clip + √(1 − b²)·frame, with b² from 0.05 to 0.95 over the units."""

    units: int = 20
    frames: int = 50
    near: float = 0.1


WORLDS: tuple[World, ...] = (
    World("clips matter little", own=20.0),
    World("clips matter"),
    World("clips change all units alike", together=0.7),
    World("units alike", spread=0.02),
    World("eight clips", clips=8),
    World("a hundred clips", clips=100),
    World("four hundred units, eight clips", units=400, clips=8),
    Responses("responses, twenty clips"),
    Responses("responses, all firing in Z", near=1.0),
    Responses("responses, sixty clips", units=50, clips=60, frames=30),
)


def experiment(world: World, rng: np.random.Generator) -> tuple[SignedPairs, Array]:
    """Z of all units, and their true scores."""
    truth = np.clip(rng.normal(0.4, world.spread, world.units), 0.05, 0.95)
    shift = rng.normal(0, world.together, world.clips)
    odds = np.log(truth / (1 - truth))[:, None]
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    alike = 1 / (1 + np.exp(-(odds[..., None] + world.together * nodes)))  # the mean over clips that change all alike
    scores = (alike[:, 0] @ weights) / weights.sum()
    mean = 1 / (1 + np.exp(-(odds + shift)))
    rates = rng.beta(world.own * mean, world.own * (1 - mean))
    unit = np.repeat(np.arange(world.units), Z)
    some = [rng.choice(world.clips, rng.integers(2, 8), replace=False) for _ in range(world.units)]
    block = np.concatenate([rng.choice(of, Z) for of in some])
    local = rng.binomial(MAGNITUDES, rates[unit, block]) / MAGNITUDES
    return SignedPairs(unit, block, local, np.full(world.units, G), np.ones(world.units)), scores / G


def responded(world: Responses, rng: np.random.Generator) -> SignedPairs:
    """Z of all units from simulated responses, with the share of eleven frames around each on which the unit fires."""
    driven = np.linspace(0.05, 0.95, world.units)
    clip = rng.normal(size=(world.clips, 1, world.units)) * np.sqrt(driven)
    frames = rng.normal(size=(world.clips, world.frames, world.units))
    for t in range(1, world.frames):
        frames[:, t] = 0.3 * frames[:, t - 1] + np.sqrt(1 - 0.3**2) * frames[:, t]
    shown = (clip + np.sqrt(1 - driven) * frames).reshape(-1, world.units)
    found = fire(shown, G, world.near, np.ones(len(shown), dtype=bool))
    fires = found.fires.reshape(world.clips, world.frames, world.units)
    unit, stimulus = np.nonzero(found.near.T)
    block, frame = np.divmod(stimulus, world.frames)
    reach = MAGNITUDES // 2
    near = zip(block, frame, unit, strict=True)
    local = np.array([fires[b, max(0, f - reach) : f + reach + 1, u].mean() for b, f, u in near])
    return SignedPairs(unit, block, local, found.fires.mean(axis=0), np.ones(world.units))


def unit_scores(pairs: SignedPairs) -> Array:
    """The score of each unit on all of its Z."""
    units = len(pairs.rate)
    total = np.bincount(pairs.unit, pairs.local, units)
    return np.asarray(total / np.bincount(pairs.unit, minlength=units) / pairs.rate)


@functools.cache
def expected(world: Responses) -> Array:
    """What each unit scores on average over experiments."""
    rng = np.random.default_rng(99)
    return np.mean([unit_scores(responded(world, rng)) for _ in range(150)], axis=0)


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


def main() -> None:
    """Print, for each world and p, how often each interval held the truth."""
    parser = argparse.ArgumentParser(description="Do intervals of the invariance score cover?")
    parser.add_argument("--experiments", type=int, default=400)
    parser.add_argument("--draws", type=int, default=200)
    asked = parser.parse_args()
    write = sys.stdout.write
    write(f"{asked.experiments} experiments each; share of 95 % intervals that held the truth (95 % interval of it)\n")
    write(f"{'world':32}{'p':>5}{'truth':>8}{'score':>8}{'held out':>10}   {'usual':20}{'ours':20}")
    write(f"{'width':>6}{'missing':>9}\n")
    for world in WORLDS:
        for p in (0.2, 1.0):
            held = {"usual": 0, "ours": 0}
            missing = 0
            numbers: list[tuple[float, float, float, float]] = []
            for number in range(asked.experiments):
                rng = np.random.default_rng((number, WORLDS.index(world)))
                if isinstance(world, Responses):
                    pairs, truth = responded(world, rng), expected(world)
                else:
                    pairs, truth = experiment(world, rng)
                weights = top_weights(unit_scores(pairs), p)
                true = float(weights @ truth / weights.sum())
                found = held_out_score([pairs], p, world.clips, asked.draws, number, (number, 1))
                low, high = found.interval(1 / G)
                held["ours"] += low <= true <= high
                missing += bool(np.isnan(low))
                usual = usual_interval(pairs, p, world.clips, asked.draws, number)
                held["usual"] += usual[0] <= true <= usual[1]
                score = float(weights @ unit_scores(pairs) / weights.sum())
                numbers.append((true, score, found.score, high - low))
            true, score, ours, width = np.nanmean(numbers, axis=0) if missing < len(numbers) else numbers[0]
            write(f"{world.name:32}{p:5.1f}{true:8.1f}{score:8.1f}{ours:10.1f}   ")
            for kind, count in held.items():
                of = asked.experiments - (missing if kind == "ours" else 0)
                low, high = proportion_confint(count, of, method="wilson") if of else (np.nan, np.nan)
                write(f"{f'{count / max(of, 1):.3f} ({low:.3f}–{high:.3f})':20}")
            write(f"{width:6.1f}{missing / asked.experiments:9.2f}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
