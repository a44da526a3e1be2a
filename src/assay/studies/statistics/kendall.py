"""Correlation of a measure with the generalization gap: over all networks, and hyper-parameter by hyper-parameter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from assay.core.errors import AssayError
from assay.stats import correlation
from assay.stats.correlation import correlation_over_pairs, order, pairwise_difference, pairwise_order
from assay.studies.statistics.grid import Array, Grid, Hyperparameters, Numbers, checked
from assay.studies.statistics.statistic import Statistic


def kendall_tau(measure: Numbers, gap: Numbers) -> float:
    """Kendall's τ-b of a measure μ and the gap g.

    τ_b = Σ sgn(μ_i − μ_j)·sgn(g_i − g_j) / √(n_μ·n_g) over pairs i < j; n_μ and n_g are the pairs not tied in each.

    Example:
        >>> kendall_tau([1, 2, 3, 4], [0.1, 0.2, 0.4, 0.3])      # 5 pairs agree, 1 does not
        0.6666666666666666

    Kendall 1945.
    """
    return _of_two(correlation.kendall_tau, measure, gap)


def pearson(measure: Numbers, gap: Numbers) -> float:
    """Pearson's correlation r of a measure with the gap.

    r = Σ (μ_i − μ̄)(g_i − ḡ) / √(Σ (μ_i − μ̄)²·Σ (g_i − ḡ)²).

    Example:
        >>> round(pearson([1, 2, 3], [1, 2, 4]), 6)      # 3/√(2·14/3)
        0.981981
    """
    return _of_two(correlation.pearson, measure, gap)


@dataclass(frozen=True)
class Granulated:
    """The granulated Kendall coefficient, and the coefficient of each hyper-parameter."""

    value: float
    by_hyperparameter: dict[str, float]


def granulated_kendall(measure: Numbers, gap: Numbers, hyperparameters: Hyperparameters) -> Granulated:
    """Kendall's coefficient where one hyper-parameter changes and the others stay.

    ψ_k = mean of τ over the groups of networks alike in all hyper-parameters but k, Ψ = mean_k ψ_k. In a group
    τ = Σ sgn(μ_i − μ_j)·sgn(g_i − g_j) / (number of pairs): ties count as 0 (τ-a, as in the paper). Only pairs that
    differ in k count, so two seeds of one setting are not compared; groups with one level of k are left out.

    Example:
        >>> a, b = np.indices((2, 3)).reshape(2, -1)
        >>> granulated_kendall(b - 10 * a, b + 10 * a, {"a": a, "b": b})
        Granulated(value=0.0, by_hyperparameter={'a': -1.0, 'b': 1.0})

    Jiang et al. 2020, "Fantastic generalization measures and where to find them", ψ and Ψ.
    """
    measures, g, grid = checked({"measure": measure}, gap, hyperparameters)
    statistic = GranulatedKendall()
    statistic.check(g, grid)
    each = statistic.by_hyperparameter(measures, g, grid, np.ones((1, len(g))))[0, :, 0]
    return Granulated(float(each.mean()), dict(zip(grid.names, map(float, each), strict=True)))


class Correlation(Statistic):
    """What all correlations with the gap have in common: their bounds, and that the gaps must differ."""

    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    def check(self, gap: Array, grid: Grid) -> None:
        """Raise if all networks have the same gap."""
        _require_varied("gap", gap)

    def strength(self, values: Array) -> Array:
        """The size of the correlation: a measure that falls with the gap predicts it as well as one that rises."""
        return np.abs(values)


@dataclass(frozen=True)
class KendallTau(Correlation):
    """The statistic `kendall_tau`: two networks are compared by which of them has the larger value."""

    def resampled(self, measures: Array, gap: Array, grid: Grid, weights: Array) -> Array:
        """Kendall's τ-b of each measure in each resample."""
        return correlation_over_pairs(measures, gap, pairwise_order, weights)


@dataclass(frozen=True)
class Pearson(Correlation):
    """The statistic `pearson`: two networks are compared by how much their values differ."""

    def resampled(self, measures: Array, gap: Array, grid: Grid, weights: Array) -> Array:
        """Pearson's r of each measure in each resample."""
        return correlation_over_pairs(measures, gap, pairwise_difference, weights)


@dataclass(frozen=True)
class GranulatedKendall(Statistic):
    """The statistic `granulated_kendall`; in a resample, groups and hyper-parameters without pairs are left out."""

    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    def check(self, gap: Array, grid: Grid) -> None:
        """Raise if there is a hyper-parameter in which alone no two networks differ."""
        if not grid.names:
            raise AssayError("hyperparameters is empty: the granulated coefficient compares networks one apart in them")
        for k, name in enumerate(grid.names):
            if not len(grid.one_apart(k)[0]):
                raise AssayError(f"no two networks differ in {name!r} alone: join it with what changes with it")

    def strength(self, values: Array) -> Array:
        """The size of the coefficient: a measure that falls with the gap predicts it as well as one that rises."""
        return np.abs(values)

    def resampled(self, measures: Array, gap: Array, grid: Grid, weights: Array) -> Array:
        """The granulated coefficient Ψ of each measure in each resample."""
        return mean_of_defined(self.by_hyperparameter(measures, gap, grid, weights), axis=1)

    def by_hyperparameter(self, measures: Array, gap: Array, grid: Grid, weights: Array) -> Array:
        """The coefficient ψ of each measure and hyper-parameter in each resample, in these dimensions."""
        coefficients = np.empty((len(measures), len(grid.names), len(weights)))
        for k in range(len(grid.names)):
            i, j = grid.one_apart(k)
            group = grid.settings(h for h in range(len(grid.names)) if h != k)[i]
            pairs = weights[:, i] * weights[:, j]
            wider = order(gap[i], gap[j])
            total = sum_by(group, pairs)
            for m, mu in enumerate(measures):
                agreement = sum_by(group, pairs * (order(mu[i], mu[j]) * wider))
                with np.errstate(invalid="ignore"):  # 0/0: a group without pairs
                    coefficients[m, k] = mean_of_defined(agreement / total, axis=1)
        return coefficients


def sum_by(group: Array, values: Array) -> Array:
    """Sum the columns of each group: rows × groups, in the order of the groups' numbers.

    >>> sum_by(np.array([7, 3, 7]), np.array([[1.0, 2.0, 3.0]]))
    array([[2., 4.]])
    """
    by_group = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[by_group], prepend=-1))
    sums: Array = np.add.reduceat(values[:, by_group], starts, axis=1)
    return sums


def mean_of_defined(values: Array, axis: int) -> Array:
    """Mean of the values that are not NaN; NaN where all are."""
    defined = ~np.isnan(values)
    with np.errstate(invalid="ignore"):  # 0/0: nothing is defined
        mean: Array = np.where(defined, values, 0.0).sum(axis=axis) / defined.sum(axis=axis)
    return mean


def _of_two(coefficient: Callable[[Array, Array], float], measure: Numbers, gap: Numbers) -> float:
    """Correlate one measure with the gap, after checking both."""
    (mu,), g, _ = checked({"measure": measure}, gap)
    _require_varied("measure", mu)
    _require_varied("gap", g)
    return coefficient(mu, g)


def _require_varied(name: str, values: Array) -> None:
    if (values == values[0]).all():
        raise AssayError(f"{name} is {values[0]:g} for all {len(values)} networks: its correlation is undefined")
