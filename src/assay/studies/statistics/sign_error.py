"""Sign error: how often a measure orders the gaps of two networks wrongly, at worst and on average.

Dziugaite et al. 2020, "In search of robust measures of generalization".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
import pandas as pd

from assay.core.errors import AssayError, nearest
from assay.stats.correlation import order
from assay.studies.statistics.grid import Array, Grid, Hyperparameters, Numbers, checked
from assay.studies.statistics.kendall import mean_of_defined, sum_by
from assay.studies.statistics.statistic import Statistic

Environment = Literal["levels", "settings"]


@dataclass(frozen=True)
class SignErrors:
    """The sign errors of a measure, overall and by environment.

    Args:
        worst: The largest error over environments: the robust error.
        mean: The mean error over environments, each counting the same.
        environments: One row each: ``hyperparameter``, its two levels ``a`` and ``b``, ``error``, ``pairs`` of
            networks and their ``effective_pairs``; with ``environment="settings"`` also ``others``, the levels of the
            other hyper-parameters.
    """

    worst: float
    mean: float
    environments: pd.DataFrame


def sign_error(
    measure: Numbers,
    gap: Numbers,
    hyperparameters: Hyperparameters,
    environment: Environment = "levels",
    test_size: int | None = None,
    min_pairs: float = 1.0,
) -> SignErrors:
    """Error of a measure μ in ordering the gaps g of two networks that differ in exactly one hyper-parameter.

    ε(i, j) = (1 − sgn(μ_i − μ_j)·sgn(g_i − g_j)) / 2: 0 for the right order, 1 for the wrong one, ½ for a tie. In an
    environment e the error is Σ ω_ij·ε(i, j) / Σ ω_ij over its pairs; a coin's is ½, and the
    worst environment decides.

    Args:
        measure: The value μ of the measure for each network; larger should mean a larger gap.
        gap: The gap g of each network.
        hyperparameters: The value of each hyper-parameter in every network, by name.
        environment: ``"levels"``: a change of one hyper-parameter between two of its levels, whatever the others
            are. ``"settings"``: the same with the others at given levels, as in the paper, whose settings have many
            networks (data sets, seeds) each; with one network per setting an environment is one pair, and the
            worst error is 1 as soon as one pair is out of order.
        test_size: Number n of test samples behind each gap; pairs whose gaps may differ by chance then count less,
            ω = max(0, (1 − 2·exp(−n·(g_i − g_j)²/2))₊² − ½), as in the paper's code. All count the same by default.
        min_pairs: Environments with fewer effective pairs, (Σω)²/Σω², are left out. 12 in the paper.

    Example:
        >>> width, depth = np.indices((2, 3)).reshape(2, -1)
        >>> errors = sign_error(depth - width, depth + 10 * width, {"width": width, "depth": depth})
        >>> errors.worst, errors.mean
        (1.0, 0.25)

    Dziugaite et al. 2020 and its released code.
    """
    (mu,), g, grid = checked({"measure": measure}, gap, hyperparameters)
    statistic = SignError("worst", environment, test_size, min_pairs)
    statistic.check(g, grid)
    table = statistic.environments(mu, g, grid)
    return SignErrors(float(table["error"].max()), float(table["error"].mean()), table)


@dataclass(frozen=True)
class SignError(Statistic):
    """The statistic `sign_error`, worst or mean; in a resample, environments without pairs are left out."""

    over: Literal["worst", "mean"] = "worst"
    environment: Environment = "levels"
    test_size: int | None = None
    min_pairs: float = 1.0

    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self) -> None:
        for name, known in (("over", ("worst", "mean")), ("environment", get_args(Environment))):
            if (value := getattr(self, name)) not in known:
                raise AssayError(f"{name}={value!r} is unknown{nearest(str(value), known)}")
        if self.test_size is not None and self.test_size < 1:
            raise AssayError(f"test_size={self.test_size} is not a number of samples: give the size of the test set")
        if not self.min_pairs > 0:
            raise AssayError(f"min_pairs={self.min_pairs} must be above 0: 1 keeps all, the paper takes 12")

    def check(self, gap: Array, grid: Grid) -> None:
        """Raise if no environment has enough pairs."""
        pairs = self._pairs(grid)
        if not len(pairs.i):
            raise AssayError("hyperparameters: no two networks differ in one alone, so there is no environment")
        effective = _effective(pairs, self._weights(gap, pairs), np.ones((1, len(pairs.i))))
        if not effective.any():
            raise AssayError("no two networks that differ in one hyper-parameter alone surely differ in their gap")
        if not (effective >= self.min_pairs).any():
            raise AssayError(
                f"no environment has min_pairs={self.min_pairs:g} effective pairs, the most is {effective.max():.3g}: "
                "lower it, or give more networks"
            )

    def strength(self, values: Array) -> Array:
        """The share of right orders: fewer errors predict better."""
        return 1 - values

    def resampled(self, measures: Array, gap: Array, grid: Grid, weights: Array) -> Array:
        """The worst or mean error of each measure in each resample."""
        pairs = self._pairs(grid)
        rows = [self._errors(mu, gap, pairs, weights) for mu in measures]
        return np.stack([mean_of_defined(e, axis=1) if self.over == "mean" else _max_of_defined(e) for e in rows])

    def environments(self, measure: Array, gap: Array, grid: Grid) -> pd.DataFrame:
        """The error in each environment, as in `SignErrors`."""
        pairs = self._pairs(grid)
        once = np.ones((1, len(gap)))
        rows = []
        for x in np.unique(pairs.environment, return_index=True)[1]:
            i, j, k = pairs.i[x], pairs.j[x], pairs.k[x]
            a, b = (grid.levels[k][grid.codes[n, k]] for n in (i, j))
            fixed = [f"{n}={grid.levels[h][grid.codes[i, h]]}" for h, n in enumerate(grid.names) if h != k]
            others = {"others": ", ".join(fixed)} if self.environment == "settings" else {}
            rows.append({"hyperparameter": grid.names[k], "a": a, "b": b, **others})
        table = pd.DataFrame(rows)
        table["error"] = self._errors(measure, gap, pairs, once)[0]
        table["pairs"] = np.bincount(pairs.environment)
        table["effective_pairs"] = _effective(pairs, self._weights(gap, pairs), np.ones((1, len(pairs.i))))[0]
        return table.dropna(subset="error").reset_index(drop=True)

    def _errors(self, measure: Array, gap: Array, pairs: _Pairs, weights: Array) -> Array:
        """Errors of a measure, resamples × environments; NaN for environments with too few pairs."""
        i, j = pairs.i, pairs.j
        times = weights[:, i] * weights[:, j]
        weight = self._weights(gap, pairs)
        wrong = (1 - order(measure[i], measure[j]) * order(gap[i], gap[j])) / 2
        total = sum_by(pairs.environment, times * weight)
        kept = _effective(pairs, weight, times) >= self.min_pairs
        sums = sum_by(pairs.environment, times * (weight * wrong))
        errors: Array = np.divide(sums, total, out=np.full(total.shape, np.nan), where=kept)
        return errors

    def _pairs(self, grid: Grid) -> _Pairs:
        hyperparameters = range(len(grid.names))
        apart = [np.stack([i, j, np.full(len(i), k)]) for k in hyperparameters for i, j in [grid.one_apart(k)]]
        i, j, k = np.concatenate([np.empty((3, 0), np.int64), *apart], axis=1)
        swap = grid.codes[i, k] > grid.codes[j, k]
        i, j = np.where(swap, j, i), np.where(swap, i, j)
        setting = grid.settings(hyperparameters)
        ends = [setting[i], setting[j]] if self.environment == "settings" else [grid.codes[i, k], grid.codes[j, k]]
        environment = np.unique(np.stack([k, *ends]), axis=1, return_inverse=True)[1].reshape(-1)
        return _Pairs(i, j, k, environment)

    def _weights(self, gap: Array, pairs: _Pairs) -> Array:
        if self.test_size is None:
            return np.ones(len(pairs.i))
        doubt = 2 * np.exp(-self.test_size * (gap[pairs.i] - gap[pairs.j]) ** 2 / 2)
        weights: Array = np.maximum(np.maximum(1 - doubt, 0) ** 2 - 0.5, 0)
        return weights


@dataclass(frozen=True)
class _Pairs:
    """Pairs of networks i and j that differ in hyper-parameter k alone, and the number of their environment."""

    i: Array
    j: Array
    k: Array
    environment: Array


def _effective(pairs: _Pairs, weight: Array, times: Array) -> Array:
    """Number of effective pairs, (Σω)²/Σω², of each environment in each resample; 0 where no pair counts."""
    squares = sum_by(pairs.environment, times * weight**2)
    sums = sum_by(pairs.environment, times * weight)
    effective: Array = np.divide(sums**2, squares, out=np.zeros_like(squares), where=squares > 0)
    return effective


def _max_of_defined(values: Array) -> Array:
    highest = np.where(np.isnan(values), -np.inf, values).max(axis=1)
    return np.where(np.isinf(highest), np.nan, highest)
