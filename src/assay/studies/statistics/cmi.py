"""Conditional mutual information: what a measure says about the generalization gap beyond the hyper-parameters.

Jiang et al. 2020, "Predicting Generalization in Deep Learning" (PGDL), as its scoring program computes it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, pairwise
from typing import ClassVar, Literal, get_args

import numpy as np

from assay.core.errors import AssayError, nearest
from assay.studies.statistics.grid import Array, Grid, Hyperparameters, Numbers, checked
from assay.studies.statistics.pair_counts import COMPARED, PairsOnce, scores_in_resamples
from assay.studies.statistics.statistic import Statistic

CellWeight = Literal["uniform", "count"]
WAVES = (1, 4, 16)  # measures of which the highest CMI is looked for first


class IncompleteGridWarning(UserWarning):
    """Some combination of hyper-parameters has no network, so cells cannot be weighted as asked."""


def conditional_mutual_information(
    measure: Numbers,
    gap: Numbers,
    hyperparameters: Hyperparameters,
    sizes: tuple[int, ...] = (2,),
    self_pairs: bool = True,
    cell_weight: CellWeight = "uniform",
) -> float:
    """PGDL's score of a measure μ for the gap g, from 0 to 1 (times 100 in its tables).

    Over ordered pairs (i, j) of networks, V_g = [g_i > g_j] and V_μ = [μ_i > μ_j]; ties are false. For a set S of
    hyper-parameters, each combination u of their values in i and in j is a cell:

        score(S) = Σ_u ω_u I_u(V_g; V_μ) / Σ_u ω_u H_u(V_g),      CMI = min_S score(S),

    I and H in bits from the counts of the cell. Chance alone gives more than 0: about 0.02 for an unrelated measure on
    54 networks.

    Without self-pairs and ties it is blind to direction: −μ scores as μ does. Self-pairs, which are false and false,
    favour a measure that rises with the gap over its negative, the more so the fewer networks a cell has: 0.43 v 0.31
    for one measure over 16 networks, 0.14 v 0.12 for another over 96. To compare a measure that rises with the gap and
    one that falls with it, leave self-pairs out; ``docs/cmi-self-pairs.md`` has the proof.

    Args:
        measure: The value μ of the measure for each network.
        gap: The gap g of each network, training minus test accuracy.
        hyperparameters: The value of each hyper-parameter in every network, by name.
        sizes: Sizes of the sets S; PGDL takes all pairs of hyper-parameters.
        self_pairs: Whether pairs (i, i), which are false and false, count, as they do in PGDL.
        cell_weight: The weights ω of the cells: ``"uniform"`` as in PGDL, or ``"count"``, the number of
            pairs in the cell, which makes the score I(V_g; V_μ | U) / H(V_g | U). Where combinations have no network,
            uniform weights mean nothing (PGDL gives no score): cells are then weighted by count, with an
            `IncompleteGridWarning`.

    Example:
        >>> width, depth, rate = np.indices((2, 3, 2)).reshape(3, -1)
        >>> gap = depth + 0.5 * width + 0.1 * rate + 0.01 * depth * rate
        >>> grid = {"width": width, "depth": depth, "rate": rate}
        >>> conditional_mutual_information(gap**3, gap, grid)
        1.0
        >>> conditional_mutual_information(depth, gap, grid)      # nothing beyond the hyper-parameters
        0.0

    Jiang et al. 2020, scoring program; perturbation response curves, appendix A.2.
    """
    by_set = information_by_condition(measure, gap, hyperparameters, sizes, self_pairs, cell_weight)
    for names, score in by_set.items():
        _require_defined(names, score)
    return min(by_set.values())


def information_by_condition(
    measure: Numbers,
    gap: Numbers,
    hyperparameters: Hyperparameters,
    sizes: tuple[int, ...] = (2,),
    self_pairs: bool = True,
    cell_weight: CellWeight = "uniform",
) -> dict[tuple[str, ...], float]:
    """The score of `conditional_mutual_information` for each set of hyper-parameters to condition on.

    The score is NaN where no cell leaves the order of two gaps open. The arguments are the same.

    Example:
        >>> a, b, c = np.indices((2, 2, 2)).reshape(3, -1)
        >>> information_by_condition(b, 4 * a + 2 * b, {"a": a, "b": b, "c": c}, sizes=(2,))
        {('a', 'b'): nan, ('a', 'c'): 1.0, ('b', 'c'): 0.0}
    """
    measures, g, grid = checked({"measure": measure}, gap, hyperparameters)
    statistic = ConditionalMutualInformation(sizes, self_pairs, cell_weight)
    scores = statistic.by_condition(measures, g, grid, np.ones((1, len(g))))[0, :, 0]
    sets = statistic.conditions(grid)
    return {tuple(grid.names[h] for h in s): float(score) for s, score in zip(sets, scores, strict=True)}


@dataclass(frozen=True)
class ConditionalMutualInformation(Statistic):
    """The statistic `conditional_mutual_information`, with its settings, for resamples of a corpus.

    In a resample, cells that lost all their pairs are left out, and so are sets that leave no order open; the cells
    are weighted as in the whole corpus. Two copies of a network are a pair of it with itself: without self-pairs, and
    with w_i copies of network i, a cell of two networks of one setting has (Σ w_i)² − Σ w_i² pairs. A measure of
    distinct values and its negative then score the same in every resample.
    """

    sizes: tuple[int, ...] = (2,)
    self_pairs: bool = True
    cell_weight: CellWeight = "uniform"

    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self) -> None:
        if not isinstance(self.sizes, tuple) or not self.sizes or any(s < 0 or s != int(s) for s in self.sizes):
            raise AssayError(f"sizes={self.sizes!r} must be whole numbers from 0 in a tuple, such as (2,) or (0, 1, 2)")
        if self.cell_weight not in get_args(CellWeight):
            raise AssayError(
                f"cell_weight={self.cell_weight!r} is unknown{nearest(str(self.cell_weight), get_args(CellWeight))}"
            )

    def conditions(self, grid: Grid) -> list[tuple[int, ...]]:
        """The sets of hyper-parameters to condition on, each hyper-parameter by its number in the grid."""
        known = len(grid.names)
        if max(self.sizes) > known:
            raise AssayError(
                f"sizes={self.sizes} asks for {max(self.sizes)} hyper-parameters at once and there are {known}: "
                f"give more, or sizes up to {known}"
            )
        return [s for size in dict.fromkeys(self.sizes) for s in combinations(range(known), size)]

    def check(self, gap: Array, grid: Grid) -> None:
        """Raise if some set of hyper-parameters leaves the order of no two gaps open."""
        # The gap determines itself: its score is 1 wherever a score is defined, under either weighting.
        counting = replace(self, cell_weight="count")
        scores = counting.by_condition(gap[None], gap, grid, np.ones((1, len(gap))))[0, :, 0]
        for s, score in zip(self.conditions(grid), scores, strict=True):
            _require_defined(tuple(grid.names[h] for h in s), float(score))

    def resampled(self, measures: Array, gap: Array, grid: Grid, weights: Array) -> Array:
        """The CMI of each measure in each resample."""
        return _lowest(self.by_condition(measures, gap, grid, weights))

    def blocks(self, grid: Grid) -> list[Array]:
        """The settings of each set of hyper-parameters: a measure may say what such a set says, and no more."""
        return [grid.settings(s) for s in self.conditions(grid)]

    def best_of_reordered(self, measures: Array, gap: Array, grid: Grid, orders: Array, block: int) -> Array:
        """The highest CMI of any measure in each order of the networks.

        No CMI is above its score for one set of hyper-parameters. That of the set within which networks were
        reordered is computed for all measures. The others are computed for those that are first by it, then for more,
        and only while the lowest so far is above the highest CMI found, beginning with the set that is mostly lowest.
        """
        settings = self.blocks(grid)
        uniform = self._uniform(grid, settings)
        sets = [PairsOnce(gap, setting, self.self_pairs, uniform) for setting in settings]
        ranked = np.stack([np.unique(measure, return_inverse=True)[1] for measure in measures])
        ranked = ranked.astype(np.int16 if len(gap) < 2**15 else np.int32)  # quicker to compare than numbers
        step = max(1, COMPARED // orders.size)
        some = (ranked[start : start + step, orders].reshape(-1, len(gap)) for start in range(0, len(ranked), step))
        bound = np.concatenate([sets[block].quick_scores(reordered) for reordered in some])
        bound = bound.reshape(len(ranked), len(orders)).T
        by_bound = np.argsort(-bound, axis=1)
        others = [pairs for k, pairs in enumerate(sets) if k != block]
        first = ranked[by_bound[:100, :1], orders[:100]]
        others.sort(key=lambda pairs: float(pairs.quick_scores(first).mean()))
        best = np.full(len(orders), -np.inf)
        for begin, end in pairwise((0, *(n for n in WAVES if n < len(ranked)), len(ranked))):
            wave = by_bound[:, begin:end]
            order, place = np.nonzero(np.take_along_axis(bound, wave, axis=1) > best[:, None])
            measure = wave[order, place]
            lowest = bound[order, measure]
            for pairs in others:
                lowest = np.minimum(lowest, pairs.quick_scores(ranked[measure[:, None], orders[order]]))
                left = lowest > best[order]
                order, measure, lowest = order[left], measure[left], lowest[left]
            np.maximum.at(best, order, lowest)
        return np.where(np.isinf(best), -np.inf, best)

    def by_condition(self, measures: Array, gap: Array, grid: Grid, weights: Array) -> Array:
        """The score of each measure for each set of hyper-parameters in each resample, in these dimensions."""
        sets = self.conditions(grid)
        settings = self.blocks(grid)
        uniform = self._uniform(grid, settings)
        if len(weights) == 1 and (weights == 1).all():
            every = [PairsOnce(gap, setting, self.self_pairs, uniform) for setting in settings]
            return np.stack([pairs.scores(measures) for pairs in every], axis=1)[:, :, None]
        scores = np.empty((len(measures), len(sets), len(weights)))
        for k, setting in enumerate(settings):
            scores[:, k] = scores_in_resamples(measures, gap, setting, weights, self.self_pairs, uniform)
        return scores

    def _uniform(self, grid: Grid, settings: list[Array]) -> bool:
        """Whether cells count the same: as asked, and only where every combination has a network."""
        return self.cell_weight == "uniform" and all(map(partial(_complete, grid), self.conditions(grid), settings))


def _lowest(scores: Array) -> Array:
    """The lowest score over sets of hyper-parameters, the second dimension, of those that are defined."""
    lowest: Array = np.where(np.isnan(scores), np.inf, scores).min(axis=1)
    return np.where(np.isinf(lowest), np.nan, lowest)


def _require_defined(names: tuple[str, ...], score: float) -> None:
    if np.isnan(score):
        where = f"given {' and '.join(map(repr, names))}, " if names else ""
        raise AssayError(
            f"gap: {where}the order of no two gaps is open, so the score is 0/0: condition on fewer hyper-parameters "
            "(sizes), or give more networks for each combination"
        )


def _complete(grid: Grid, chosen: tuple[int, ...], setting: Array) -> bool:
    """Whether every combination of the chosen hyper-parameters has a network; warns where not."""
    possible = int(np.prod([len(grid.levels[h]) for h in chosen]))
    filled = int(setting.max()) + 1
    if filled < possible:
        names = " and ".join(repr(grid.names[h]) for h in chosen)
        warnings.warn(
            f"{possible - filled} of {possible} combinations of {names} have no network: cells are weighted by their "
            "count of pairs, and the score is not PGDL's; cell_weight='count' says so",
            IncompleteGridWarning,
            stacklevel=2,
        )
    return filled == possible
