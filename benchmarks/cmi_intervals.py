"""Claim: the interval value ± z·se of a score holds what it promises, and bootstrap percentiles of CMI do not.

A grid of networks with one network per cell is trained again and again: gap and measure are main effects that stay, and
noise that does not. The true value is the mean score of many trainings; counted is how often 95 % intervals hold it.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
from threadpoolctl import threadpool_limits

from assay.studies import STATISTICS
from assay.studies.statistics.grid import Grid

TRUE = 300  # trainings behind the true value
DRAWS = 200


class Trainings:
    """Networks of a grid whose gap correlates with two measures, equally, through ``rho``."""

    def __init__(self, levels: tuple[int, ...], rho: float, noise: float, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.rho, self.noise = rho, noise
        self.codes = np.array(list(itertools.product(*map(range, levels))))
        self.grid = Grid.of({f"h{k}": self.codes[:, k] for k in range(len(levels))}, len(self.codes))
        self.gap, *self.own = (self._effects(levels) for _ in range(3))

    def _effects(self, levels: tuple[int, ...]) -> np.ndarray:
        effects = np.sum([self.rng.normal(size=n)[self.codes[:, k]] for k, n in enumerate(levels)], axis=0)
        return np.asarray(effects / effects.std())

    def again(self) -> tuple[np.ndarray, np.ndarray]:
        """Measures and gaps of one training of the whole grid."""
        n = len(self.codes)
        gap = self.gap + self.noise * self.rng.normal(size=n)
        rest = [own + self.noise * self.rng.normal(size=n) for own in self.own]
        return np.stack([self.rho * gap + np.sqrt(1 - self.rho**2) * r for r in rest]), gap


def coverage(trainings: Trainings, name: str, repetitions: int) -> tuple[float, ...]:
    """True value of the first measure; shares held by value ± z·se, by percentiles, and of the difference by ± z·se."""
    statistic, grid = STATISTICS[name], trainings.grid
    n = len(grid.codes)
    once = np.ones((1, n))
    true = np.mean([statistic.resampled(*trainings.again(), grid, once)[:, 0] for _ in range(TRUE)], axis=0)
    held = []
    for _ in range(repetitions):
        draws = trainings.rng.multinomial(n, np.full(n, 1 / n), size=DRAWS)
        found = statistic.resampled(*trainings.again(), grid, np.concatenate([once, draws]))
        value, drawn = found[0, 0], found[0, 1:]
        difference = found[0] - found[1]
        low, high = np.nanquantile(drawn, [0.025, 0.975])
        if (error := np.nanstd(drawn, ddof=1)) > 0:
            apart = abs(difference[0] - (true[0] - true[1])) <= 1.96 * np.nanstd(difference[1:], ddof=1)
            held.append((abs(value - true[0]) <= 1.96 * error, low <= true[0] <= high, apart))
    return (float(true[0]), *(float(share) for share in np.mean(held, axis=0)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--levels", type=int, nargs="+", default=[3, 3, 3, 2])
    options = parser.parse_args()
    print(f"grid {' × '.join(map(str, options.levels))}, {options.repetitions} trainings, {DRAWS} resamples each")
    print(f"{'statistic':20s} {'rho':>4s} {'true':>6s} {'± z·se':>7s} {'percentiles':>12s} {'difference ± z·se':>18s}")
    with threadpool_limits(1):
        for name in STATISTICS:
            for rho in (0.0, 0.5, 0.8, 0.95):
                trainings = Trainings(tuple(options.levels), rho, noise=0.7, seed=int(100 * rho))
                true, ours, percentiles, difference = coverage(trainings, name, options.repetitions)
                print(f"{name:20s} {rho:4.2f} {true:6.3f} {ours:7.2f} {percentiles:12.2f} {difference:18.2f}")


if __name__ == "__main__":
    main()
