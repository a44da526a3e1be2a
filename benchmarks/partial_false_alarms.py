"""Claim: of measures that say nothing at equal controls, some is called correlated in at most 5 % of corpora.

Corpora of 64 cells, of one or three networks each, with 60 measures of noise. Cells have effects of their own on the
gap and on every measure, or none; the gap and the measures follow the same hyper-parameters, or none. Held constant are
all six hyper-parameters and every two together. Prints how often some measure has p ≤ 0.05 by
`partial_spearman_p_max`; by the same with what the controls take out of a cell not given back; with the residuals of
cells permuted instead of turned (Freedman & Lane as it is commonly used); and how often one measure that has something
of the gap's noise is found among 59 others.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np

from assay.stats import partial_chance
from assay.stats.permutation import permutation_p
from assay.stats.proportions import wilson
from assay.stats.rank_correlation import ranks_left

GRID = np.array(list(itertools.product((0.0, 1.0), repeat=6)))
MEASURES, FLIPS = 60, 199
Array = np.ndarray


def corpus(seeds: int, cell_effects: float, follows: bool, tells: float, rng: np.random.Generator) -> list[Array]:
    """Measures, gaps, controls and cells of networks; the first measure has a share of the gap's own noise."""
    cells = np.repeat(np.arange(len(GRID)), seeds)
    h = GRID[cells]
    noise = rng.normal(size=(MEASURES + 1, len(cells))) + cell_effects * rng.normal(size=(MEASURES + 1, 64))[:, cells]
    gap, measures = noise[0], noise[1:]
    measures[0] = tells * gap + np.sqrt(1 - tells**2) * measures[0]
    if follows:
        gap = gap + 3 * h[:, 0] + 2 * h[:, 1] * h[:, 2]
        measures = measures + 3 * h[:, 0] + 2 * h[:, 3] * h[:, 2]
    controls = [*h.T, *(h[:, i] * h[:, j] for i, j in itertools.combinations(range(6), 2))]
    return [measures, gap, np.stack(controls, axis=1), cells]


def permuted(measures: Array, gap: Array, controls: Array, cells: Array, seed: int) -> Array:
    """The p of each measure if the residuals of whole cells are permuted."""
    rng = np.random.default_rng(seed)
    *left, e = ranks_left(np.vstack([measures, gap]), controls)
    x = np.array(left) / np.linalg.norm(left, axis=1, keepdims=True)
    blocks = e.reshape(64, -1)
    basis = partial_chance._basis(controls)
    other = np.stack([blocks[rng.permutation(64)].reshape(-1) for _ in range(FLIPS)], axis=1)
    other -= basis @ (basis.T @ other)
    largest = np.abs(x @ other).max(axis=0) / np.linalg.norm(other, axis=0)
    return permutation_p(np.abs(x @ e) / np.linalg.norm(e), largest[:, None])


def main() -> None:
    """All kinds of corpora."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", type=int, default=400)
    count = parser.parse_args().corpora
    given_back = partial_chance._given_back
    print(f"{count} corpora of 64 cells, {MEASURES} measures, {FLIPS} flips; share with some p ≤ 0.05")
    print("networks a cell  effects of cells  follow hyper-parameters    ours  (95 %)       not given back  permuted")
    for seeds, effects, follows in itertools.product((1, 3), (0.0, 1.0), (False, True)):
        alarms = np.zeros(3)
        for number in range(count):
            data = corpus(seeds, effects, follows, 0.0, np.random.default_rng([number, seeds]))
            alarms[0] += partial_chance.partial_spearman_p_max(*data, FLIPS, number).min() <= 0.05
            partial_chance._given_back = lambda e, *_: e
            alarms[1] += partial_chance.partial_spearman_p_max(*data, FLIPS, number).min() <= 0.05
            partial_chance._given_back = given_back
            alarms[2] += permuted(*data, number).min() <= 0.05
        low, high = wilson(alarms[0] / count, count)
        ours, plain, other = alarms / count
        print(
            f"{seeds:15d}  {effects:16g}  {follows!s:23s} {ours:7.3f}  {low:.3f}–{high:.3f} {plain:16.3f} {other:9.3f}"
        )
    for seeds, tells in itertools.product((1, 3), (0.4, 0.5, 0.6, 0.7)):
        found = 0
        for number in range(count):
            data = corpus(seeds, 1.0, True, tells, np.random.default_rng([number, seeds]))
            found += int(partial_chance.partial_spearman_p_max(*data, FLIPS, number)[0] <= 0.05)
        print(f"found with a correlation of {tells}, {seeds} networks a cell: {found / count:.2f}")


if __name__ == "__main__":
    main()
