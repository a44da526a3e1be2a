"""Claim: of measures that say nothing at equal controls, some is called correlated in about 5 % of corpora.

Corpora of 64 cells, of one or three networks each, with 60 measures. The gap and the measures follow nothing; or some
hyper-parameters, mostly not the same; or all six, the same and additively, with noise that is large or small beside
them. Cells have effects of their own on the gap and on every measure, or none. Held constant are all six
hyper-parameters and every two together. Prints how often some measure has p ≤ 0.05 by `residual_spearman_p_max`; by
the same with ranks taken before the controls are taken out, as in partial Spearman correlation; with what the controls
take out of a cell not given back; and with the residuals of cells permuted instead of turned (Freedman & Lane as it is
commonly used). Then how often one measure that has something of the gap's noise is found among 59 others, and how often
the interval of `residual_spearman_intervals` holds the rank correlation of the noise, (6/π)·arcsin(r/2). Last, why
there is no p where controls leave fewer than ten degrees of freedom: how often some of 20 measures of noise would have
p ≤ 0.05.
"""

from __future__ import annotations

import argparse
import itertools
from math import asin, pi
from unittest.mock import patch

import numpy as np

from assay.stats import residual_correlation as residual
from assay.stats.permutation import permutation_p
from assay.stats.proportions import wilson
from assay.stats.ranks import ranks

GRID = np.array(list(itertools.product((0.0, 1.0), repeat=6)))
EFFECTS = np.array([3.0, 2.0, 1.5, 1.0, 0.7, 0.4])
MEASURES, FLIPS = 60, 199
KINDS = {"nothing": 1.0, "some": 1.0, "all alike": 1.0, "all alike, noise ½": 0.5, "all alike, noise ¼": 0.25}
Array = np.ndarray


def corpus(kind: str, seeds: int, of_cells: float, tells: float, rng: np.random.Generator) -> list[Array]:
    """Measures, gaps, controls and cells of networks; the first measure has a share of the gap's own noise."""
    cells = np.repeat(np.arange(len(GRID)), seeds)
    h = GRID[cells]
    noise = rng.normal(size=(MEASURES + 1, len(cells))) + of_cells * rng.normal(size=(MEASURES + 1, 64))[:, cells]
    gap, measures = noise[0], noise[1:]
    measures[0] = tells * gap + np.sqrt(1 - tells**2) * measures[0]
    if kind == "some":
        gap = gap + 3 * h[:, 0] + 2 * h[:, 1] * h[:, 2]
        measures = measures + 3 * h[:, 0] + 2 * h[:, 3] * h[:, 2]
    elif kind != "nothing":
        gap, measures = KINDS[kind] * gap + h @ EFFECTS, KINDS[kind] * measures + h @ EFFECTS
    controls = [*h.T, *(h[:, i] * h[:, j] for i, j in itertools.combinations(range(6), 2))]
    return [measures, gap, np.stack(controls, axis=1), cells]


def ranks_first(measures: Array, gap: Array, controls: Array, cells: Array, seed: int) -> Array:
    """The p of each measure if ranks are taken first, and the controls out of these."""
    basis = residual._basis(controls)
    ranked = ranks(np.vstack([measures, gap]))
    left = ranked - (ranked @ basis) @ basis.T
    with patch.object(residual, "_left", lambda *_: left):
        return residual.residual_spearman_p_max(measures, gap, controls, cells, FLIPS, seed)


def not_given_back(measures: Array, gap: Array, controls: Array, cells: Array, seed: int) -> Array:
    """The p of each measure if signs are turned of what is left as it is."""
    with patch.object(residual, "_given_back", lambda e, *_: e):
        return residual.residual_spearman_p_max(measures, gap, controls, cells, FLIPS, seed)


def permuted(measures: Array, gap: Array, controls: Array, cells: Array, seed: int) -> Array:
    """The p of each measure if the residuals of whole cells are permuted."""
    rng = np.random.default_rng(seed)
    basis = residual._basis(controls)
    *left, e = residual._left(np.vstack([measures, gap]), basis)
    x = np.array(left) / np.linalg.norm(left, axis=1, keepdims=True)
    blocks = e.reshape(64, -1)
    other = np.stack([blocks[rng.permutation(64)].reshape(-1) for _ in range(FLIPS)], axis=1)
    other -= basis @ (basis.T @ other)
    largest = np.abs(x @ other).max(axis=0) / np.linalg.norm(other, axis=0)
    return permutation_p(np.abs(x @ e) / np.linalg.norm(e), largest[:, None])


def main() -> None:
    """All kinds of corpora."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", type=int, default=300)
    count = parser.parse_args().corpora
    print(f"{count} corpora of 64 cells, {MEASURES} measures, {FLIPS} flips; share with some p ≤ 0.05")
    print("they follow         networks  effects    ours  (95 %)      ranks first  not given back  permuted")
    for kind, seeds, of_cells in itertools.product(KINDS, (1, 3), (0.0, 1.0)):
        alarms = np.zeros(4)
        for number in range(count):
            data = corpus(kind, seeds, of_cells, 0.0, np.random.default_rng([number, seeds]))
            found = [residual.residual_spearman_p_max(*data, FLIPS, number)]
            found += [other(*data, number) for other in (ranks_first, not_given_back, permuted)]
            alarms += [p.min() <= 0.05 for p in found]
        low, high = wilson(alarms[0] / count, count)
        ours, first, plain, other = alarms / count
        print(
            f"{kind:20s}{seeds:8d}{of_cells:9g} {ours:7.3f}  {low:.3f}–{high:.3f}",
            f"{first:11.3f}{plain:15.3f}{other:10.3f}",
            flush=True,
        )
    for seeds, tells in itertools.product((1, 3), (0.4, 0.5, 0.6, 0.7)):
        found = 0
        for number in range(count):
            data = corpus("all alike", seeds, 1.0, tells, np.random.default_rng([number, seeds]))
            found += int(residual.residual_spearman_p_max(*data, FLIPS, number)[0] <= 0.05)
        print(f"found with a correlation of {tells}, {seeds} networks a cell: {found / count:.2f}", flush=True)
    for seeds, of_cells, r in itertools.product((1, 3), (0.0, 1.0), (0.0, 0.5, 0.8)):
        held, truth = 0, 6 / pi * asin(r / 2)
        for number in range(count):
            measures, gap, controls, cells = corpus("some", seeds, of_cells, r, np.random.default_rng([number, 7]))
            low, high = residual.residual_spearman_intervals(measures[:1], gap, controls, cells)[0]
            held += int(low <= truth <= high)
        of = f"{seeds} networks a cell, effects of cells {of_cells:g}"
        print(f"intervals that hold a rank correlation of {truth:.2f}, {of}: {held / count:.2f}", flush=True)
    for freedom, controls in itertools.product((2, 4, 6, 8, 10, 12), (2, 4)):
        alarms = 0
        for number in range(count):
            rng = np.random.default_rng([number, freedom, controls])
            n = freedom + controls + 1
            data = rng.normal(size=(20, n)), rng.normal(size=n), rng.normal(size=(n, controls))
            with patch.object(residual, "_LEAST", 0):
                alarms += int(residual.residual_spearman_p_max(*data, None, FLIPS, number).min() <= 0.05)
        print(f"{freedom} degrees of freedom beside {controls} controls: {alarms / count:.2f}", flush=True)


if __name__ == "__main__":
    main()
