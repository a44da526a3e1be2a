"""What a statistic of a corpus is: one number for each measure, in the corpus or in resamples of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from assay.studies.statistics.grid import Array, Grid


class Statistic(ABC):
    """How well a measure tells the generalization gap.

    A frozen dataclass of settings. Resamples are weights: w_i is how often network i is in one, so that a pair (i, j)
    counts w_i·w_j times, the pairs among copies of one network included: the same number as on the list of networks.
    """

    bounds: ClassVar[tuple[float, float]]

    def check(self, gap: Array, grid: Grid) -> None:
        """Raise if the statistic is undefined for this corpus, whatever the measure."""

    @abstractmethod
    def resampled(self, measures: Array, gap: Array, grid: Grid, weights: Array) -> Array:
        """The statistic of each measure in each resample.

        Args:
            measures: Measures × networks.
            gap: Of each network.
            grid: Hyper-parameters.
            weights: Resamples × networks.

        Returns:
            Measures × resamples; NaN where it is undefined.
        """
