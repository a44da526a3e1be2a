"""Evidence: the few numbers by which networks are compared, each with what tells how sure it is.

Two networks were shown the same stimuli, so their numbers are compared in pairs. A number that is a mean keeps what
it is the mean of (``items``, one for each clip); any other keeps its value in resamples of the inputs (``draws``),
which are the same resamples for every network because they are drawn from the same seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal

import numpy as np

Array = np.ndarray[Any, Any]
Better = Literal["higher", "lower", ""]


@dataclass(frozen=True)
class Evidence:
    """One number by which networks are compared.

    Args:
        quantity: What it is, in words that stand alone.
        value: The number; NaN where it is not defined.
        unit: Its unit, such as ``°``; empty for none.
        better: Which direction people want, where there is one.
        items: The parts that it is the mean of, by name, where it is a mean of parts that can be paired.
        draws: Its value in resamples of the inputs, where it is no such mean.
        n: Number of inputs, clips or units that it rests on.
        status: ``ok``, or what is wrong with it.
        common: Whether the resamples are the same for every network that was shown the same inputs.
        exact: Whether it depends on the weights alone, so that other stimuli cannot move it.
        overlap: Share of all inputs that each part uses, where parts were drawn from the same inputs again and again.
        proportion: Whether it is a mean over the n inputs of numbers between 0 and 1, such as an accuracy.
        df: Degrees of freedom, where intervals are value ± t·(standard error of the resamples), with the factor
            √((df + 1)/df) that makes the spread of resamples that of samples; infinite where they are percentiles.
        least: The least that it can be, below which no interval goes.
        most: The most that it can be.
    """

    quantity: str
    value: float
    unit: str = ""
    better: Better = ""
    items: Mapping[str, float] = field(default_factory=dict)
    draws: Array = field(default_factory=lambda: np.zeros(0))
    n: int = 0
    status: str = "ok"
    common: bool = True
    exact: bool = False
    overlap: float = 0.0
    proportion: bool = False
    df: float = inf
    least: float = -inf
    most: float = inf
