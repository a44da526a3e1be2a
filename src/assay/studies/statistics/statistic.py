"""What a statistic of a corpus is: one number for each measure, in the corpus or in resamples of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from assay.studies.statistics.grid import Array, Grid


class Statistic(ABC):
    """How well a measure predicts the generalization gap.

    A statistic is a frozen dataclass of settings. A resample is given by weights: w_i is how often it holds network i,
    so that a pair (i, j) counts w_i·w_j times, pairs among copies of one network included. The result is that of
    the list of the networks drawn.
    """

    bounds: ClassVar[tuple[float, float]]

    def check(self, gap: Array, grid: Grid) -> None:
        """Raise if the statistic is undefined for this corpus, whatever the measure."""

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
