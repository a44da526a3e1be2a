"""Controls of a study: what predicts the gap without any measure, and what measures say at equal controls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from assay.stats.rank_correlation import partial_spearman, spearman_interval

CONTROL = "control: "
"""How the names of controls begin in a ranking."""
TRAINING_ACCURACY = f"{CONTROL}training accuracy"
_AMOUNTS = {"none": 0.0, "partial": 0.5, "full": 1.0}
Array = np.ndarray[Any, Any]


def control_predictors(table: pd.DataFrame, hyperparameters: list[str]) -> pd.DataFrame:
    """The numbers that any measure should beat: the exact training accuracy, and each hyper-parameter alone.

    A hyper-parameter is its number, 0 and 1 for two levels, or for ``augmentation`` its level: none 0, partial ½, full
    1. One of several names has no order, and is among the `control_columns` only. What is the same in all networks, or
    unknown in one, is left out.

    Args:
        table: One row per network: the hyper-parameters and, where it is known, ``train_accuracy``.
        hyperparameters: Their columns.

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
    varied = {k: v for k, v in columns.items() if np.isfinite(v).all() and len(np.unique(v)) > 1}
    return pd.DataFrame(varied, index=table.index)


def control_columns(table: pd.DataFrame, hyperparameters: list[str]) -> Array:
    """All controls as columns of numbers, networks × columns: those with an order, and a flag for each level of others.

    Example:
        >>> table = pd.DataFrame({"norm": ["batch", "layer", "none"], "depth": [1, 2, 4]})
        >>> control_columns(table, ["norm", "depth"]).tolist()
        [[1.0, 0.0, 0.0], [2.0, 1.0, 0.0], [4.0, 0.0, 1.0]]
    """
    columns = [*control_predictors(table, hyperparameters).to_numpy(dtype=np.float64).T]
    for name in hyperparameters:
        if _ordered(name, table[name])[1] is None:
            levels = list(dict.fromkeys(table[name]))[1:]
            columns += [(table[name] == level).to_numpy(dtype=np.float64) for level in levels]
    return np.stack(columns, axis=1) if columns else np.empty((len(table), 0))


def partial_correlations(predictors: pd.DataFrame, target: pd.Series, controls: Array) -> pd.DataFrame:
    """Spearman's correlation of each predictor with the target at equal controls, and its 95 % interval.

    Args:
        predictors: One row per network, one column per predictor.
        target: The gap of each network, or another number.
        controls: The numbers that are held constant, networks × controls (`control_columns`).

    Returns:
        One row per predictor, by its name: ``partial_rho``, ``partial_rho_low``, ``partial_rho_high``
        (`spearman_interval`); NaN where a predictor is missing in some network, or the controls leave nothing of it.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> depth = np.repeat([1.0, 2.0, 3.0, 4.0], 10)
        >>> gap = depth + rng.normal(size=40)
        >>> measures = pd.DataFrame({"repeats depth": depth + 0.1 * rng.normal(size=40), "tells": gap})
        >>> partial_correlations(measures, pd.Series(gap), depth[:, None])["partial_rho"].round(1).tolist()
        [-0.1, 1.0]
    """
    rows = {}
    y = target.to_numpy(dtype=np.float64)
    for name, column in predictors.items():
        x = column.to_numpy(dtype=np.float64)
        if not np.isfinite(x).all() or (x == x[0]).all() or (y == y[0]).all():
            rows[name] = (np.nan,) * 3
            continue
        rows[name] = (partial_spearman(x, y, controls), *spearman_interval(x, y, controls))
    names = ["partial_rho", "partial_rho_low", "partial_rho_high"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=names)


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
