"""What a statistic of a corpus is: one number for each measure, in the corpus or in resamples of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from assay.studies.statistics.grid import Array, Grid


class Statistic(ABC):
    """How well a measure predicts the generalization gap.

    A statistic is a frozen dataclass of settings. A resample is given by weights: w_i is how often it holds network i,
    so that a pair (i, j) counts w_i·w_j times. The result is that of the list of the networks drawn. Two copies of one
    network in it are a pair of that network with itself: a statistic of distinct networks leaves these w_i² pairs out.
    """

    bounds: ClassVar[tuple[float, float]]

    def check(self, gap: Array, grid: Grid) -> None:
        """Raise if the statistic is undefined for this corpus, whatever the measure."""

    def blocks(self, grid: Grid) -> list[Array]:
        """The groups of networks within which a measure that predicts nothing is exchangeable.

        One array for each hypothesis of "nothing", with the number of every network's group in it. By default there is
        one hypothesis, that the measure has nothing to do with the networks, and one group.
        """
        return [np.zeros(len(grid.codes), dtype=np.int64)]

    def strength(self, values: Array) -> Array:
        """Values of the statistic so that larger ones predict the gap better."""
        return values

    def best_of_reordered(self, measures: Array, gap: Array, grid: Grid, orders: Array, block: int) -> Array:
        """The greatest strength of any measure in each order of the networks; −∞ where none is defined.

        Args:
            measures: Values of the measures, measures × networks.
            gap: The generalization gap of each network.
            grid: The hyper-parameters of the networks.
            orders: Which network's values each network is given, for all measures, orders × networks.
            block: The hypothesis of `blocks` under which the networks were reordered.
        """
        once = np.ones((1, len(gap)))
        best = np.full(len(orders), -np.inf)
        for measure in measures:
            best = np.fmax(best, self.strength(self.resampled(measure[orders], gap, grid, once)[:, 0]))
        return best

    @abstractmethod
    def resampled(self, measures: Array, gap: Array, grid: Grid, weights: Array) -> Array:
        """The statistic of each measure in each resample.

        Args:
            measures: Values of the measures, measures × networks.
            gap: The generalization gap of each network.
            grid: The hyper-parameters of the networks.
            weights: How often each network is in each resample, resamples × networks.

        Returns:
            The statistics, measures × resamples; NaN where a statistic is undefined.
        """
