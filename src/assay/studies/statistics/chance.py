"""Whether measures predict the gap better than chance lets the best of them: permutations of all measures at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from assay.core.errors import AssayError
from assay.core.limits import require_count
from assay.core.progress import report
from assay.stats.permutation import permutation_p
from assay.studies.statistics.grid import Array, Hyperparameters, Numbers, checked
from assay.studies.statistics.intervals import Measures, as_cells, named_statistic
from assay.studies.statistics.statistic import Statistic

LEVEL = 0.05
"""The chance at which any of the measures asked is called better than chance though none is."""
FEWEST = 19  # permutations: with fewer, no p is at the level


@dataclass(frozen=True)
class AgainstChance:
    """The measures of a corpus, and what the best of as many would score if none predicted the gap.

    Args:
        table: One row per measure: ``measure``, ``value`` (the statistic) and ``p_max``, its p adjusted for all
            measures.
        maxima: The strength of the best measure in each permutation.
        measures: Number of measures.
        networks: Number of networks.
    """

    table: pd.DataFrame
    maxima: Array
    measures: int
    networks: int

    def chance(self, quantile: float = 1 - LEVEL) -> float:
        """What the best of so many measures stays below, ``quantile`` of the time, if none predicts the gap."""
        return float(np.quantile(self.maxima, quantile))


def against_chance(
    measures: Measures,
    gap: Numbers,
    hyperparameters: Hyperparameters | None = None,
    statistic: str | Statistic = "cmi_distinct",
    permutations: int = 500,
    seed: int = 0,
    cells: Numbers | None = None,
) -> AgainstChance:
    """Test each measure against the best of all of them by chance.

    With T_m the statistic of measure m (its size, for correlations), and T_m^b the same after permutation b of the
    networks' measures,

        p_m = (1 + #{b : max_m' T_m'^b ≥ T_m}) / (1 + B):

    the p value of Westfall and Young's single-step max-T. Each permutation moves all measures of a network together, so
    that measures that say the same count little more than one. Among measures that predict nothing, any
    has p ≤ 0.05 in at most 5 % of corpora, however many there are.

    **What is permuted.** Conditional mutual information is the lowest score over sets of hyper-parameters, so a
    measure fails if there is *one* set S beyond which it says nothing. Under that hypothesis its values are
    exchangeable among the cells of the grid that are equal in S, and nothing else is assumed: it may follow S, and the
    gap may follow everything. Each permutation is drawn within the settings of every S in turn, and the maximum is over
    measures and sets, whichever set each measure fails by. Other statistics have no condition: all cells are permuted.
    Networks of one cell, which differ in their seed alone, move together, with cells of as many networks
    (`order_within`): a measure may follow each cell and the gap each cell in another way, and three seeds of a cell are
    then no three witnesses.

    Args:
        measures: The value of each measure in every network, by name: *all* that were asked, not only the best.
        gap: The generalization gap of each network.
        hyperparameters: The value of each hyper-parameter in every network, by name.
        statistic: One of `STATISTICS`, or a `Statistic` with settings of its own.
        permutations: Number B of permutations for each hypothesis; the least possible p is 1/(1 + B).
        seed: Seed of the permutations.
        cells: The cell of each network, where networks of equal hyper-parameters differ in more than chance; by default
            each combination of hyper-parameters is one.

    Example:
        >>> width, depth, batch = np.indices((3, 3, 4)).reshape(3, -1)
        >>> grid = {"width": width, "depth": depth, "batch": batch}
        >>> rng = np.random.default_rng(0)
        >>> gap = depth + rng.normal(size=36)
        >>> noise = {f"noise {i}": rng.normal(size=36) for i in range(20)}
        >>> found = against_chance({"good": gap**3, **noise}, gap, grid, permutations=99)
        >>> found.table.set_index("measure")["p_max"].loc[["good", "noise 0"]].tolist()
        [0.01, 1.0]

    Westfall & Young 1993, Algorithm 2.8 (max-T); Phipson & Smyth 2010.
    """
    if permutations < FEWEST:
        raise AssayError(f"permutations={permutations} is fewer than {FEWEST}: no p could be at most {LEVEL}")
    require_count(f"permutations={permutations}", permutations)
    columns = {f"measure {str(name)!r}": values for name, values in measures.items()}
    if not columns:
        raise AssayError("measures is empty: give the value of at least one measure in every network")
    rows, g, grid = checked(columns, gap, hyperparameters)
    chosen = named_statistic(statistic)
    chosen.check(g, grid)
    values = chosen.resampled(rows, g, grid, np.ones((1, len(g))))[:, 0]
    strength = chosen.strength(values)
    rng = np.random.default_rng(seed)
    maxima = np.full(permutations, -np.inf)
    together = grid.cells if cells is None else as_cells(cells, len(g))
    blocks = chosen.blocks(grid)
    for k, block in enumerate(blocks):
        orders = np.stack([order_within(block, rng, together) for _ in range(permutations)])
        maxima = np.maximum(maxima, chosen.best_of_reordered(rows, g, grid, orders, k))
        report("permuting", k + 1, len(blocks))
    p = permutation_p(strength, maxima[:, None])
    names = [str(name) for name in measures]
    table = pd.DataFrame({"measure": names, "value": values, "p_max": np.where(np.isnan(values), np.nan, p)})
    return AgainstChance(table, maxima, len(rows), len(g))


def order_within(block: Array, rng: np.random.Generator, cells: Array | None = None) -> Array:
    """A random order of the networks that leaves each in its block, and those of one cell together.

    Cells change places with cells of the same block and number of networks, whose order within the cell is random.

    Args:
        block: The block of each network.
        rng: Source of chance.
        cells: The cell of each network, each of which lies in one block; by default each network is its own.

    Example:
        >>> order_within(np.zeros(6, int), np.random.default_rng(1), np.array([0, 0, 1, 1, 2, 2])).tolist()
        [4, 5, 1, 0, 2, 3]
    """
    order = np.empty(len(block), dtype=np.int64)
    if cells is None or len(np.unique(cells)) == len(cells):
        order[np.argsort(block, kind="stable")] = np.lexsort((rng.random(len(block)), block))
        return order
    size = np.bincount(cells)
    first = np.cumsum(size) - size
    by_cell = np.argsort(cells, kind="stable")
    kind = np.unique(np.stack([block[by_cell[first]], size]), axis=1, return_inverse=True)[1].reshape(-1)
    source = np.empty(len(size), dtype=np.int64)
    source[np.argsort(kind, kind="stable")] = np.lexsort((rng.random(len(size)), kind))
    shuffled = np.lexsort((rng.random(len(cells)), cells))
    cell = cells[by_cell]
    order[by_cell] = shuffled[first[source[cell]] + np.arange(len(cells)) - first[cell]]
    return order
