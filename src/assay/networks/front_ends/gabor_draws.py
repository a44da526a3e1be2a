"""Gabor parameters drawn from what was measured in primary visual cortex of macaques."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import scipy

from assay.core.errors import AssayError

Array = np.ndarray[Any, Any]

# Preferred orientation: bins in degrees, cells in each (De Valois, Yund & Hepler 1982).
_ORIENTATION: Final = np.array([-22.5, 22.5, 67.5, 112.5, 157.5])
_ORIENTATION_CELLS: Final = np.array([66, 49, 77, 54])
# Peak spatial frequency: bins in cycles per degree, cells in each (De Valois, Albrecht & Thorell 1982).
_SF: Final = np.array([0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0])
_SF_CELLS: Final = np.array([4, 4, 8, 25, 32, 26, 28, 12])
# Size across (rows) and along (columns) the stripes, in cycles: log₁₀ bins, cells in each (Ringach 2002).
_LOG_SIZE: Final = np.linspace(-1, 0.2, 6)
_SIZE_CELLS: Final = np.array([[2, 0, 1, 0, 0], [8, 9, 4, 1, 0], [1, 2, 19, 17, 3], [0, 0, 1, 7, 4], [0, 0, 0, 0, 0]])


@dataclass(frozen=True)
class GaborDraws:
    """Parameters of a population of Gabor filters, one number for each.

    Attributes:
        sf: Spatial frequency in cycles per degree.
        orientation: Orientation in degrees, from 0 to 180.
        phase: Phase in degrees, from 0 to 360.
        nx: Standard deviation across the stripes, in cycles.
        ny: Standard deviation along the stripes, in cycles.
        channel: The channel of the picture that the filter reads.
    """

    sf: Array
    orientation: Array
    phase: Array
    nx: Array
    ny: Array
    channel: Array


def draw_gabors(
    count: int, seed: int = 0, sf_max: float = 9.0, correlation: float = 0.75, channels: int = 3
) -> GaborDraws:
    """Draw the parameters of ``count`` Gabor filters as published, from NumPy's legacy generator.

    In this order: phase, 360·U; orientation, by its inverse CDF; two Gaussian numbers with a correlation, turned to
    uniform ones by Φ, for the size across the stripes and the spatial frequency; the size along the stripes, by the
    inverse CDF of the cells whose size across the stripes is in the same bin; the channel.

    Args:
        count: Number of filters.
        seed: Seed of the generator.
        sf_max: Largest spatial frequency in cycles per degree: bins above it are left out.
        correlation: Correlation of the two Gaussian numbers.
        channels: Number of channels of the picture.

    Example:
        >>> draws = draw_gabors(512)
        >>> [round(float(value), 5) for value in (draws.sf[0], draws.orientation[0], draws.phase[0])]
        [2.21517, 106.69324, 197.57286]

    Dapello et al. 2020.
    """
    bins = int((sf_max >= _SF).sum())
    if bins < 2:
        raise AssayError(f"sf_max={sf_max}: the lowest bin of spatial frequencies ends at {_SF[1]} cycles per degree")
    if not 0 <= correlation < 1:
        raise AssayError(f"correlation={correlation} is not in [0, 1)")
    random = np.random.RandomState(seed)  # the published draws come from the legacy generator
    phase = 360 * random.random_sample(count)
    orientation = _inverse_cdf(random.random_sample(count), _ORIENTATION_CELLS, _ORIENTATION)
    orientation = np.where(orientation < 0, orientation + 180, orientation)
    # What the generator's multivariate_normal does, with the singular vectors written out: LAPACK may turn their signs.
    sum_part, difference_part = random.standard_normal((count, 2)).T
    sum_part, difference_part = (
        sum_part * math.sqrt((1 + correlation) / 2),
        difference_part * math.sqrt((1 - correlation) / 2),
    )
    across, along = scipy.stats.norm.cdf(-sum_part - difference_part), scipy.stats.norm.cdf(-sum_part + difference_part)
    nx = 10 ** _inverse_cdf(across, _SIZE_CELLS.sum(1), _LOG_SIZE)
    sf = 2 ** _inverse_cdf(along, _SF_CELLS[: bins - 1], np.log2(_SF[:bins]))
    row = np.clip(np.searchsorted(_LOG_SIZE, np.log10(nx), side="left") - 1, 0, len(_SIZE_CELLS) - 1)
    uniform = random.random_sample(count)
    ny = np.empty(count)
    for i in np.unique(row):
        ny[row == i] = 10 ** _inverse_cdf(uniform[row == i], _SIZE_CELLS[i], _LOG_SIZE)
    return GaborDraws(sf, orientation, phase, nx, ny, random.randint(0, channels, count))


def _inverse_cdf(uniform: Array, cells: Array, edges: Array) -> Array:
    """Return the values below which the given shares of a histogram lie, linear within its bins."""
    return np.interp(uniform, np.concatenate([[0], np.cumsum(cells) / cells.sum()]), edges)
