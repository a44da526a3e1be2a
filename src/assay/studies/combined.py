"""What all measures together say of the gap, cross-validated, and how much of it the controls say already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy
from threadpoolctl import threadpool_limits

from assay.core.errors import AssayError
from assay.core.progress import report

Array = np.ndarray[Any, Any]
PENALTIES = np.logspace(-4, 3, 15)  # per network, of standardised columns
_FOLDS = 5
FEWEST_CELLS = 2 * _FOLDS
"""Cells of a grid of which some are predicted from others."""
_REPEATS = 5
GROUPS = 10  # of cells that the jackknife leaves out


def combined_prediction(
    measures: Array, controls: Array | Sequence[Array], target: Array, cells: Array, seed: int = 0
) -> pd.DataFrame:
    """How much of the target ridge regressions on all measures, and on the controls, explain in networks left out.

    R² = 1 − Σ (y_i − ŷ_i)² / Σ (y_i − ȳ_i)² over all networks, ŷ_i being predicted and ȳ_i the mean from folds without
    network i, and without any other of its cell. Folds are five groups of cells, five times over. Columns are
    standardised, and the penalty chosen, by the training folds alone (nested cross-validation). Where the controls are
    given in several degrees of detail, the training folds choose among these too. 0 is what the mean explains; less
    means that the columns mislead.

    The interval is R² ± t₉·se, of what R² is on average over corpora of so many networks of such a grid. The se is
    that of the grouped jackknife, which repeats everything without each of g = 10 groups of cells:
    se² = (g − 1)/g · Σ_j (R²₍ⱼ₎ − R̄²)². It is wider than need be (`benchmarks/combined_coverage.py`); resampling the
    cells with the predictions as they are would leave out that these depend on the other networks, and misses often.

    Args:
        measures: Values of the measures, networks × measures; all finite.
        controls: Values of the controls, networks × controls; may have no column. Or several such arrays, of which
            those that predict best count.
        target: The gap of each network.
        cells: The number of each network's cell of the grid: networks that differ in their seed alone share it.
        seed: Seed of the folds and of the groups.

    Returns:
        One row each for ``controls``, ``measures``, ``controls and measures`` and their ``difference`` (controls and
        measures minus controls, paired): ``columns`` that could be used, ``r2``, ``low``, ``high``, ``n``
        networks.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> depth = np.repeat(np.arange(4.0), 15)
        >>> noise, gap = rng.normal(size=(60, 3)), depth + rng.normal(size=60)
        >>> table = combined_prediction(noise, depth[:, None], gap, np.arange(60)).set_index("of")
        >>> bool(table.r2["controls"] > 0.3), bool(table.low["difference"] < 0)
        (True, True)

    Hoerl & Kennard 1970; nested cross-validation: Varma & Simon 2006; grouped jackknife: Shao & Wu 1989.
    """
    numbers = _numbered(cells)
    if np.ptp(target) == 0:
        raise AssayError(f"the target is {target[0]:g} in all networks: there is nothing to predict")
    degrees = [controls] if isinstance(controls, np.ndarray) else list(controls)
    both = [np.hstack([some, measures]) for some in degrees]
    columns = {"controls": degrees, "measures": [measures], "controls and measures": both}
    with threadpool_limits(1, user_api="blas"):  # the arrays are too small for several threads
        return _judged(columns, target, numbers, seed)


def _judged(columns: Mapping[str, list[Array]], target: Array, numbers: Array, seed: int) -> pd.DataFrame:
    """The table of `combined_prediction`: R² of each set of columns, and its interval by the grouped jackknife."""
    count = int(numbers.max()) + 1
    rng = np.random.default_rng(seed)
    folds = _divisions(rng, count)
    whole = _explained(columns, target, numbers, folds)
    group = (rng.permutation(count) % GROUPS)[numbers]
    parts = []
    for left_out in range(GROUPS):
        report("what all measures explain together", left_out, GROUPS)
        kept = group != left_out
        some = {name: [x[kept] for x in of] for name, of in columns.items()}
        parts.append(_explained(some, target[kept], numbers[kept], folds))
    spread = np.sqrt((GROUPS - 1) * np.var(parts, axis=0))
    reach = float(scipy.stats.t.ppf(0.975, GROUPS - 1))
    rows = []
    for name, r2, se in zip([*columns, "difference"], whole, spread, strict=True):
        used = max(x.shape[1] for x in columns.get(name, columns["measures"]))
        ends = {"low": float(r2 - reach * se), "high": min(1.0, float(r2 + reach * se))}
        rows.append({"of": name, "columns": used, "r2": float(r2), **ends, "n": len(target)})
    return pd.DataFrame(rows)


def _explained(columns: Mapping[str, list[Array]], y: Array, cells: Array, folds: list[Array]) -> Array:
    """R² of each set of columns, and last how much larger that of the last is than that of the first."""
    nothing = _errors([np.empty((len(y), 0))], y, cells, folds).sum()
    r2 = [1 - _errors(choices, y, cells, folds).sum() / nothing for choices in columns.values()]
    return np.array([*r2, r2[-1] - r2[0]])


def left_out_prediction(controls: Array | Sequence[Array], target: Array, cells: Array, seed: int = 0) -> Array:
    """What a ridge regression on the controls predicts of each network from folds without its cell, but for a constant.

    Mean over five divisions into five folds of ŷ_i − ȳ_i, as in `combined_prediction`. Their mean ȳ_i is taken out
    because it says, turned around, how high the gaps of the fold are that was left out.

    Args:
        controls: Values of the controls, networks × controls, or several such arrays, among which the training folds
            choose.
        target: The gap of each network.
        cells: The number of each network's cell of the grid.
        seed: Seed of the folds.
    """
    choices = [controls] if isinstance(controls, np.ndarray) else list(controls)
    numbers = _numbered(cells)
    folds = _divisions(np.random.default_rng(seed), int(numbers.max()) + 1)
    with threadpool_limits(1, user_api="blas"):  # as above
        deviations = [guess - mean for guess, mean in _predictions(choices, target, numbers, folds)]
    prediction: Array = np.mean(deviations, axis=0)
    return prediction


def _numbered(cells: Array) -> Array:
    """The cells numbered from 0; raise an error where they are too few to predict some from others."""
    numbers: Array = np.unique(cells, return_inverse=True)[1]
    count = int(numbers.max()) + 1
    if count < FEWEST_CELLS:
        raise AssayError(
            f"the networks are of {count} cells of the grid: predicting some from others takes {FEWEST_CELLS}"
        )
    return numbers


def _divisions(rng: np.random.Generator, cells: int) -> list[Array]:
    """The fold of each cell, several times over."""
    return [rng.permutation(cells) % _FOLDS for _ in range(_REPEATS)]


def _errors(choices: list[Array], y: Array, cells: Array, folds: list[Array]) -> Array:
    """The squared error of each network, predicted without its fold, as a mean over divisions into folds."""
    total = np.zeros(len(y))
    for guess, _ in _predictions(choices, y, cells, folds):
        total += (y - guess) ** 2
    return total / len(folds)


def _predictions(choices: list[Array], y: Array, cells: Array, folds: list[Array]) -> Iterator[tuple[Array, Array]]:
    """For each division into folds: each network predicted without its fold, and the mean without it."""
    for division in folds:
        fold = division[cells]
        guess, mean = np.empty(len(y)), np.empty(len(y))
        for out in range(_FOLDS):
            test = fold == out
            x, penalty = _chosen(choices, y, fold, ~test)
            guess[test] = predicted(x[~test], y[~test], x[test], penalty)[0]
            mean[test] = y[~test].mean()
        yield guess, mean


def _chosen(choices: list[Array], y: Array, fold: Array, train: Array) -> tuple[Array, Array]:
    """The columns and the penalty, as an array of one, with the least error in the folds of the training networks."""
    if not any(x.shape[1] for x in choices):
        return choices[0], PENALTIES[:1]
    errors = np.zeros((len(choices), len(PENALTIES)))
    for out in np.unique(fold[train]):
        test, rest = train & (fold == out), train & (fold != out)
        for i, x in enumerate(choices):
            errors[i] += ((y[test] - predicted(x[rest], y[rest], x[test], PENALTIES)) ** 2).sum(axis=1)
    best, penalty = np.unravel_index(int(errors.argmin()), errors.shape)
    return choices[best], PENALTIES[[penalty]]


def predicted(x: Array, y: Array, new: Array, penalties: Array) -> Array:
    """Ridge regression: penalties × new networks. Columns are standardised; those that are constant predict nothing."""
    centre, scale = x.mean(axis=0), x.std(axis=0)
    scale = np.where(scale > 1e-12 * (1 + np.abs(centre)), scale, np.inf)
    u, d, v = np.linalg.svd((x - centre) / scale, full_matrices=False)
    mean = y.mean()
    shrunk = d / (d**2 + len(y) * penalties[:, None]) * (u.T @ (y - mean))
    values: Array = mean + shrunk @ (((new - centre) / scale) @ v.T).T
    return values
