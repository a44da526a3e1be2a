"""Differences between two networks, in pairs: how large, how sure."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
import scipy

from assay.stats.bootstrap import percentile_interval
from assay.stats.evidence import Array, Evidence
from assay.stats.paired import standard_error
from assay.stats.proportions import mean_interval, wilson

_FEWEST_DRAWS = 50


@dataclass(frozen=True)
class Difference:
    """How far a number of one network is above that of another.

    Args:
        value: The difference d.
        error: Its standard error s.
        df: Degrees of freedom of s; infinite for a standard deviation over resamples.
        paired: Whether the two were compared on the same clips or inputs, one by one.
        n: Number of clips or inputs.
        most: How far apart the two can be, beyond which no interval goes.
        part: The same difference with one part of the error alone; no interval is narrower than its own.
    """

    value: float
    error: float
    df: float
    paired: bool
    n: int
    most: float = inf
    part: Difference | None = None

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The interval d ± t·s, with t the quantile of Student's distribution (of the normal one for infinite df).

        It is cut at what the difference can be.

        Example:
            >>> low, high = Difference(1.0, 0.5, inf, True, 100).interval()
            >>> round(low, 3), round(high, 3)
            (0.02, 1.98)
        """
        half = max(_quantile((1 + level) / 2, of.df) * of.error for of in (self, self.part) if of is not None)
        return max(self.value - half, -self.most), min(self.value + half, self.most)

    def clear(self, level: float = 0.95) -> bool:
        """Whether the interval leaves out 0."""
        low, high = self.interval(level)
        return low > 0 or high < 0

    @property
    def strength(self) -> float:
        """The probability, as a standard normal deviate, of so large a difference between equal numbers.

        It orders differences that rest on few clips and on many resamples alike.
        """
        if not self.error > 0:
            return 0.0
        t = abs(self.value) / self.error
        tail = scipy.stats.norm.logsf(t) if self.df == inf else scipy.stats.t.logsf(t, self.df)
        return float(-tail)


def difference(a: Evidence, b: Evidence) -> Difference | None:
    """The difference a − b of a number of two networks; None where nothing tells how sure it is.

    Means of parts (clips) are compared part by part: d̄ ± t·s√(1/n + r) over the n parts that both have; r is 0, or the
    share of all inputs in a part where parts overlap (Nadeau & Bengio 2003). Other numbers are
    compared resample by resample, s being the standard deviation of the differences (times √((df + 1)/df) where the
    resamples have degrees of freedom). Where the two rest on different numbers of inputs, resamples are not the same,
    and s is that of two independent numbers.

    Example:
        >>> a = Evidence("curvature", 2.0, items={"x": 1.0, "y": 3.0})
        >>> b = Evidence("curvature", 1.0, items={"x": 0.5, "y": 1.5})
        >>> d = difference(a, b)
        >>> d.value, d.error, d.df
        (1.0, 0.5, 1)
    """
    if not (np.isfinite(a.value) and np.isfinite(b.value)):
        return None
    most = 1.0 if a.proportion and b.proportion else max(a.most - b.least, b.most - a.least)
    if a.items and b.items:
        common = [name for name in a.items if name in b.items]
        apart = np.array([a.items[name] - b.items[name] for name in common])
        apart = apart[np.isfinite(apart)]
        if len(apart) < 2:
            return None
        error = _error_of_mean(apart, max(a.overlap, b.overlap))
        return Difference(float(apart.mean()), error, len(apart) - 1, True, len(apart), most)
    of_a, of_b = a.draws[np.isfinite(a.draws)], b.draws[np.isfinite(b.draws)]
    if min(len(of_a), len(of_b)) < _FEWEST_DRAWS or not min(a.df, b.df) > 0:
        return None
    paired = a.common and b.common and a.n == b.n and len(a.draws) == len(b.draws)
    if paired:
        apart = a.draws - b.draws
        error = _error_of_draws(apart[np.isfinite(apart)], min(a.df, b.df))
    else:
        error = sqrt(_error_of_draws(of_a, a.df) ** 2 + _error_of_draws(of_b, b.df) ** 2)
    return Difference(a.value - b.value, error, min(a.df, b.df), paired, min(a.n, b.n), most)


def interval(evidence: Evidence) -> tuple[float, float] | None:
    """95 % interval of one number: Student's t over its parts, or percentiles of its resamples; None without either.

    Resamples with degrees of freedom give value ± t·(standard error) instead, cut at what the number can be.

    That of a proportion is Wilson's (1927), which covers near 0 and 1 too, where resamples are nearly all
    alike. For a mean of numbers between 0 and 1 it is at least as wide as it need be. That of a proportion with parts
    is `assay.stats.proportions.mean_interval`.

    Example:
        >>> low, high = interval(Evidence("accuracy", 1.0, draws=np.ones(200), n=100, proportion=True))
        >>> round(low, 3), high
        (0.963, 1.0)
    """
    if len(evidence.items) > 1:
        values = np.array(list(evidence.items.values()))
        if evidence.proportion:
            return mean_interval(values, evidence.n)
        half = _quantile(0.975, len(values) - 1) * _error_of_mean(values, evidence.overlap)
        return float(values.mean()) - half, float(values.mean()) + half
    if evidence.proportion and evidence.n and np.isfinite(evidence.value):
        return wilson(evidence.value, evidence.n)
    draws = evidence.draws[np.isfinite(evidence.draws)]
    if not evidence.df > 0:
        return None
    if evidence.df < inf and len(draws) > 1:
        half = _quantile(0.975, evidence.df) * _error_of_draws(draws, evidence.df)
        return max(evidence.value - half, evidence.least), min(evidence.value + half, evidence.most)
    if len(draws) < _FEWEST_DRAWS:
        return None
    low, high = percentile_interval(draws)
    return float(low), float(high)


def _error_of_draws(draws: Array, df: float) -> float:
    """Standard error over resamples; their variance is short by the factor df/(df + 1), where df is known."""
    return float(np.std(draws, ddof=1)) * (sqrt((df + 1) / df) if df < inf else 1.0)


def _error_of_mean(values: Array, overlap: float) -> float:
    """Standard error s√(1/n + r) of the mean of parts that each use a share r of the inputs, where they overlap."""
    return float(standard_error(values)) * sqrt(1 + overlap * len(values))


def _quantile(level: float, df: float) -> float:
    return float(scipy.stats.norm.ppf(level) if df == inf else scipy.stats.t.ppf(level, df))
