"""Controls of a study: what predicts the gap without any measure, and what measures say at equal controls."""

from __future__ import annotations

from contextlib import suppress
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from assay.core.errors import AssayError
from assay.stats.residual_correlation import (
    residual_spearman,
    residual_spearman_intervals,
    residual_spearman_p_max,
)
from assay.studies.combined import left_out_prediction

CONTROL = "control: "
"""How the names of controls begin in a ranking."""
TRAINING_ACCURACY = f"{CONTROL}training accuracy"
ALL_TOGETHER = f"{CONTROL}all hyper-parameters together"
"""What they predict of the gap of networks left out (`left_out_prediction`)."""
_AMOUNTS = {"none": 0.0, "partial": 0.5, "full": 1.0}
Array = np.ndarray[Any, Any]
Detail = Literal["linear", "factors", "pairs"]
DETAILS: tuple[Detail, ...] = get_args(Detail)
_IN_WORDS: dict[Detail, tuple[str, str]] = {
    "linear": ("each hyper-parameter as a number", "training accuracy"),
    "factors": ("each level of every hyper-parameter", "training accuracy with its square"),
    "pairs": ("each level of every hyper-parameter and of every two together", "training accuracy with its square"),
}
_MOST_LEVELS = 8  # that a flag each is given to


def control_predictors(
    table: pd.DataFrame, hyperparameters: list[str], target: pd.Series | None = None, seed: int = 0
) -> pd.DataFrame:
    """The numbers that any measure should beat: the exact training accuracy, each hyper-parameter alone, and all.

    A hyper-parameter is its number, 0 and 1 for two levels, or for ``augmentation`` its level: none 0, partial ½, full
    1. One of several names has no order, and is among the `control_columns` only. What is the same in all networks, or
    unknown in one, is left out. All hyper-parameters together are what they predict of the target in networks of cells
    left out (`left_out_prediction`), which takes a target and ten cells of the grid.

    Args:
        table: One row per network: the hyper-parameters and, where it is known, ``train_accuracy``.
        hyperparameters: Their columns.
        target: What all hyper-parameters together are to predict; None to leave that out.
        seed: Seed of the folds of that prediction.

    Example:
        >>> table = pd.DataFrame({"depth": [1, 2], "augmentation": ["none", "rotation full"]})
        >>> control_predictors(table, ["depth", "augmentation"]).to_dict("list")["control: augmentation level"]
        [0.0, 1.0]
    """
    columns = {}
    if "train_accuracy" in table:
        columns[TRAINING_ACCURACY] = pd.to_numeric(table["train_accuracy"], errors="coerce").to_numpy(dtype=np.float64)
    for name in hyperparameters:
        said, values = _ordered(name, table[name])
        if values is not None:
            columns[f"{CONTROL}{said}"] = values
    if target is not None and len(hyperparameters) > 1:
        known = table.drop(columns="train_accuracy", errors="ignore")
        degrees = [control_columns(known, hyperparameters, detail) for detail in DETAILS]
        cells = cells_of(table, hyperparameters)
        with suppress(AssayError):  # too few cells
            predicted = left_out_prediction(degrees, target.to_numpy(dtype=np.float64), cells, seed)
            _, first, cell = np.unique(cells, return_index=True, return_inverse=True)
            columns[ALL_TOGETHER] = predicted[first][cell]  # equal in a cell, and not only but for rounding
    varied = {k: v for k, v in columns.items() if np.isfinite(v).all() and len(np.unique(v)) > 1}
    return pd.DataFrame(varied, index=table.index)


def cells_of(table: pd.DataFrame, hyperparameters: list[str]) -> Array:
    """The cell of the grid of each network; its own where there are no hyper-parameters."""
    if not hyperparameters:
        return np.arange(len(table))
    return table.groupby(hyperparameters, sort=False, dropna=False).ngroup().to_numpy()


def control_columns(table: pd.DataFrame, hyperparameters: list[str], detail: Detail = "linear") -> Array:
    """All controls as columns of numbers, networks × columns.

    Args:
        table: One row per network: the hyper-parameters and, where it is known, ``train_accuracy``.
        hyperparameters: Their columns.
        detail: ``linear``: those with an order as their numbers, and a flag for each level of others but the first.
            ``factors``: a flag for each level of every hyper-parameter, so that its effect may have any shape (of more
            than eight levels with an order, the number and its square), and training accuracy with its square.
            ``pairs``: also the products of those of any two hyper-parameters, so that the effect of one may depend on
            another.

    Example:
        >>> table = pd.DataFrame({"norm": ["batch", "layer", "none"], "depth": [1, 2, 4]})
        >>> control_columns(table, ["norm", "depth"]).tolist()
        [[1.0, 0.0, 0.0], [2.0, 1.0, 0.0], [4.0, 0.0, 1.0]]
        >>> control_columns(table, ["depth"], "factors").tolist()
        [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    """
    if detail == "linear":
        columns = [*control_predictors(table, hyperparameters).to_numpy(dtype=np.float64).T]
        unordered = [name for name in hyperparameters if _ordered(name, table[name])[1] is None]
        columns += [flag for name in unordered for flag in _flags(table[name])]
    else:
        accuracy = control_predictors(table, []).to_numpy(dtype=np.float64).T
        parts = [_shape(name, table[name]) for name in hyperparameters]
        columns = [column for x in accuracy for column in _with_square(x)] + [c for part in parts for c in part]
        if detail == "pairs":
            columns += [a * b for one, other in combinations(parts, 2) for a in one for b in other]
    return np.stack(columns, axis=1) if columns else np.empty((len(table), 0))


def affordable_controls(table: pd.DataFrame, hyperparameters: list[str]) -> tuple[Array, Detail]:
    """The most detailed `control_columns` that the corpus affords, and how detailed they are.

    They are at most half as many as the cells of the grid: with more, hardly anything would be left to correlate.
    """
    cells = len(table[hyperparameters].drop_duplicates()) if hyperparameters else len(table)
    for detail in DETAILS[:0:-1]:
        columns = control_columns(table, hyperparameters, detail)
        if 2 * (np.linalg.matrix_rank(columns) if columns.size else 0) <= cells:
            return columns, detail
    return control_columns(table, hyperparameters), DETAILS[0]


def in_words(table: pd.DataFrame, detail: Detail) -> str:
    """What is held constant by the `control_columns` of a table, in words.

    Example:
        >>> in_words(pd.DataFrame({"depth": [1, 2], "train_accuracy": [0.9, 1.0]}), "linear")
        'each hyper-parameter as a number, and training accuracy'
        >>> in_words(pd.DataFrame({"depth": [1, 2]}), "factors")
        'each level of every hyper-parameter'
    """
    hyper, accuracy = _IN_WORDS[detail]
    return f"{hyper}, and {accuracy}" if TRAINING_ACCURACY in control_predictors(table, []) else hyper


def partial_correlations(
    predictors: pd.DataFrame,
    target: pd.Series,
    controls: Array,
    cells: Array | None = None,
    flips: int = 500,
    seed: int = 0,
) -> pd.DataFrame:
    """The rank correlation of each predictor with the target at equal controls, its 95 % interval, and its p.

    Args:
        predictors: One row per network, one column per predictor.
        target: The gap of each network, or another number.
        controls: The numbers that are held constant, networks × controls (`control_columns`).
        cells: The cell of the grid of each network: those of one cell, which differ in their seed alone, are left out
            together by the jackknife, and count as one; by default each network is its own.
        flips: Number of random signs for the p; 0 for none.
        seed: Of the signs.

    Returns:
        One row per predictor, by its name: ``partial_rho``, ``partial_rho_low``, ``partial_rho_high``
        (`residual_spearman`), of this predictor alone, and ``partial_p_max``, its p against the largest of all
        predictors by chance (`residual_spearman_p_max`); NaN where a predictor is missing in some network, or the
        controls leave nothing of it, the p also where they leave too little of the networks.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> depth = np.repeat([1.0, 2.0, 3.0, 4.0], 10)
        >>> gap = depth + rng.normal(size=40)
        >>> measures = pd.DataFrame({"repeats depth": depth + 0.1 * rng.normal(size=40), "tells": gap})
        >>> partial_correlations(measures, pd.Series(gap), depth[:, None])["partial_rho"].round(1).tolist()
        [-0.1, 1.0]
    """
    y = target.to_numpy(dtype=np.float64)
    names = ["partial_rho", "partial_rho_low", "partial_rho_high"]
    correlations = pd.DataFrame(np.nan, index=predictors.columns, columns=names)
    values = predictors.to_numpy(dtype=np.float64).T
    scored = np.isfinite(values).all(axis=1) & (values != values[:, :1]).any(axis=1) & (y != y[0]).any()
    if scored.any():
        rho = residual_spearman(values[scored], y, controls)
        correlations.loc[scored] = np.column_stack(
            [rho, residual_spearman_intervals(values[scored], y, controls, cells)]
        )
        if flips:
            correlations.loc[scored, "partial_p_max"] = residual_spearman_p_max(
                values[scored], y, controls, cells, flips, seed
            )
    return correlations


def _shape(name: str, values: pd.Series) -> list[Array]:
    """A hyper-parameter as columns that let its effect have any shape."""
    numbers = _ordered(name, values)[1]
    many = numbers is not None and values.nunique() > _MOST_LEVELS
    return _with_square(numbers) if many and numbers is not None else _flags(values)


def _flags(values: pd.Series) -> list[Array]:
    """A column of 0 and 1 for every level but the first."""
    return [(values == level).to_numpy(dtype=np.float64) for level in list(dict.fromkeys(values))[1:]]


def _with_square(x: Array) -> list[Array]:
    return [x, (x - x.mean()) ** 2]


def _ordered(name: str, values: pd.Series) -> tuple[str, Array | None]:
    """What a hyper-parameter is called as a control, and its numbers; None where its levels have no order."""
    if pd.api.types.is_numeric_dtype(values):
        return name, values.to_numpy(dtype=np.float64)
    words = [str(value).split(" ")[-1] for value in values]
    if all(word in _AMOUNTS for word in words):
        return f"{name} level", np.array([_AMOUNTS[word] for word in words])
    levels = list(dict.fromkeys(values))
    if len(levels) == 2:
        return f"{name} is {levels[1]}", (values == levels[1]).to_numpy(dtype=np.float64)
    return name, None
