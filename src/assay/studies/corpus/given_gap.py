"""A gap that a table has beside both accuracies: training minus test accuracy, its negative, or another gap."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from assay.stats.ranks import ranks

Array = np.ndarray[Any, Any]
_UNITS = (1.0, 100.0, 0.01)
"""What the gap is of the difference: in the same units, in percent of shares, or as shares of percentages."""
_SINGLE_PRECISION = 1e-6
"""By how much differences of shares are off where they were computed in single precision, at most."""


@dataclass(frozen=True)
class GivenGap:
    """How a gap relates to training minus test accuracy.

    Args:
        is_difference: Whether it is that difference, up to rounding, in shares or in percent.
        is_negative: Whether it is the negative of that difference.
        rho: The rank correlation between the two; NaN where it is not defined.
    """

    is_difference: bool
    is_negative: bool
    rho: float


def given_gap(gap: pd.Series, train: pd.Series, test: pd.Series) -> GivenGap | None:
    """Compare a gap with training minus test accuracy; None where no network has all three numbers.

    Numbers count as rounded to the decimals that a column has at most, of both accuracies taken together.

    Args:
        gap: The gap of each network.
        train: The training accuracy of each network, NaN where it is not known.
        test: The test accuracy of each network in the units of the other, NaN where it is not known.

    Example:
        >>> train, test = pd.Series([0.99, 0.95, 1.0]), pd.Series([0.8, 0.9, 0.7])
        >>> given_gap(train - test, train, test).is_difference
        True
        >>> given_gap(100 * (test - train), train, test).is_negative
        True
    """
    columns = np.stack([held.to_numpy(dtype=np.float64) for held in (gap, train, test)])
    columns = columns[:, np.isfinite(columns).all(axis=0)]
    if not columns.size:
        return None
    g, accuracies = columns[0], columns[1:]
    difference = accuracies[0] - accuracies[1]
    off = 2 * _rounding(accuracies) + _SINGLE_PRECISION * (100 if accuracies.max() > 1 else 1)

    def equal(sign: int) -> bool:
        return any(bool((np.abs(g - sign * k * difference) <= _rounding(g) + k * off).all()) for k in _UNITS)

    rho = np.nan
    if np.ptp(g) > 0 and np.ptp(difference) > 0:
        rho = float(np.corrcoef(ranks(g), ranks(difference))[0, 1])
    return GivenGap(equal(1), equal(-1), rho)


def _rounding(numbers: Array) -> float:
    """Half a unit of the last decimal that any of these numbers has."""
    exponents = (Decimal(f"{number:.10g}").normalize().as_tuple().exponent for number in numbers.ravel())
    return 0.5 * 10.0 ** min(exponent for exponent in exponents if isinstance(exponent, int))
