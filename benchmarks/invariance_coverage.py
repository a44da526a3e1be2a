"""Do intervals of the invariance score cover? Experiments with known truth, the old interval beside ours.

    python benchmarks/invariance_coverage.py [--experiments 400]

Units have true scores; each unit fires more or less in each clip, in some worlds together with the others; Z is twelve
frames of some of the clips. Truth for Inv_p is the mean of the true scores of the units that an experiment calls its
best. Ours chooses units on some clips and scores them on others; the usual interval is a bootstrap, over units and
clips, of the mean of the best, chosen anew in every resample. Both promise 95 %.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from statsmodels.stats.proportion import proportion_confint

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


WORLDS = (
    World("clips matter little", own=20.0),
    World("clips matter"),
    World("clips change all units alike", together=0.7),
    World("units alike", spread=0.02),
    World("eight clips", clips=8),
    World("a hundred clips", clips=100),
    World("four hundred units, eight clips", units=400, clips=8),
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
    write(f"{'world':32}{'p':>5}{'truth':>8}{'score':>8}{'held out':>10}   {'usual':20}{'ours':20}{'width':>6}\n")
    for world in WORLDS:
        for p in (0.2, 1.0):
            held = {"usual": 0, "ours": 0}
            numbers: list[tuple[float, float, float, float]] = []
            for number in range(asked.experiments):
                rng = np.random.default_rng((number, WORLDS.index(world)))
                pairs, truth = experiment(world, rng)
                weights = top_weights(np.bincount(pairs.unit, pairs.local) / Z, p)
                true = float(weights @ truth / weights.sum())
                found = held_out_score([pairs], p, world.clips, asked.draws, number, (number, 1))
                low, high = found.interval(1 / G)
                held["ours"] += low <= true <= high
                usual = usual_interval(pairs, p, world.clips, asked.draws, number)
                held["usual"] += usual[0] <= true <= usual[1]
                score = float(weights @ np.bincount(pairs.unit, pairs.local) / Z / weights.sum() / G)
                numbers.append((true, score, found.score, high - low))
            true, score, ours, width = np.mean(numbers, axis=0)
            write(f"{world.name:32}{p:5.1f}{true:8.1f}{score:8.1f}{ours:10.1f}   ")
            for count in held.values():
                low, high = proportion_confint(count, asked.experiments, method="wilson")
                write(f"{f'{count / asked.experiments:.3f} ({low:.3f}–{high:.3f})':20}")
            write(f"{width:6.1f}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
