"""Rules that end a training early by a number measured during it: it has converged, or its population has better."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from assay.core.errors import AssayError

Array = np.ndarray[Any, Any]
Epoch = TypeVar("Epoch", int, float)
_ROUNDING = 1e-9  # of parts of epochs, relative


def converged(values: Sequence[float], epochs: Sequence[Epoch], window: float = 25, sd: float = 0.01) -> Epoch | None:
    """The first epoch at which a number measured during training had been stable for a window of epochs.

    The number is stable at epoch e if the values measured in the epochs from e − window to e cover that window and have
    a standard deviation (of n − 1) of at most ``sd``. They cover it if measuring began at or before e − window, there
    are two of them, and no more epochs pass from e − window to the first of them than from one of them to the next.
    Measured every 5 epochs, a window of 25 holds 6 values. No window with a NaN in it is stable.

    Args:
        values: The values in the order in which they were measured.
        epochs: The epoch of each value, in ascending order; parts of epochs count too.
        window: Number of epochs during which the values must be stable.
        sd: The largest standard deviation that counts as stable.

    Returns:
        The epoch, one of those given, or None if the values were never stable.

    Example:
        >>> hms = [0.02, 0.07, 0.09, 0.095, 0.10, 0.10, 0.10, 0.10, 0.10]
        >>> converged(hms, [5, 10, 15, 20, 25, 30, 35, 40, 45])
        40
        >>> converged([0.1, 0.2, 0.2], [0, 100, 101])      # nothing is known of epochs 76 to 99

    Human-model similarity (2018), §4.2: stable once SD ≤ 0.01 for 25 epochs.
    """
    if len(values) != len(epochs):
        raise AssayError(f"give an epoch for each value: there are {len(values)} values and {len(epochs)} epochs")
    if not all(earlier < later for earlier, later in pairwise(epochs)):
        raise AssayError("epochs must be in ascending order, each once")
    if not window >= 1 or not sd >= 0:
        raise AssayError(f"window={window} must be at least 1, and sd={sd} must not be negative")
    stable = np.flatnonzero(window_sds(values, epochs, window) <= sd)
    return epochs[stable[0]] if len(stable) else None


def window_sds(values: Sequence[float], epochs: Sequence[float], window: float) -> Array:
    """Standard deviation (of n − 1) of the values in the window that ends at each epoch; NaN if they do not cover it.

    Example:
        >>> window_sds([0.1, 0.2, 0.3, 0.3], [5, 10, 15, 20], window=10).round(3).tolist()
        [nan, nan, 0.1, 0.058]
    """
    measured, at = np.asarray(values, dtype=np.float64), np.asarray(epochs, dtype=np.float64)
    sds = np.full(len(measured), np.nan)
    first = 0
    for last, epoch in enumerate(at):
        begin, rounding = epoch - window, _ROUNDING * max(1.0, abs(epoch))
        while at[first] < begin - rounding:
            first += 1
        inside = at[first : last + 1]
        if at[0] <= begin + rounding and len(inside) > 1 and inside[0] - begin < np.diff(inside).max():
            with np.errstate(invalid="ignore"):  # of infinite values
                sds[last] = measured[first : last + 1].std(ddof=1)
    return sds


def population_threshold(population: Iterable[float]) -> float:
    """Mean plus standard deviation (of n − 1) of a population's values; NaN if fewer than two of them are finite.

    Example:
        >>> round(population_threshold([0.05, 0.10, 0.15]), 3)
        0.15
    """
    values = np.array([value for value in population if math.isfinite(value)])
    return float(values.mean() + values.std(ddof=1)) if len(values) > 1 else float("nan")


def below_population(value: float, population: Iterable[float]) -> bool:
    """Whether a value is below the mean plus the standard deviation of a population's values.

    Nothing is below a population of fewer than two finite values; a value that is not finite is below every other.

    Example:
        >>> below_population(0.12, [0.05, 0.10, 0.15]), below_population(0.2, [0.05, 0.10, 0.15])
        (True, False)

    Human-model similarity (2018), §4.3: of 95 networks those below 0.106 + 0.055 = 0.161 may be discarded.
    """
    threshold = population_threshold(population)
    if math.isnan(threshold):
        return False
    return not value >= threshold
