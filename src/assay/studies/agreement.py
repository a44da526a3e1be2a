"""Agreement of metrics over many networks: their correlations, also at equal values of a hyper-parameter.

The metric-evaluation framework of Blanchard et al. 2019: networks with random hyper-parameters, each measured by every
metric; then which metrics rise together.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from assay.core.errors import AssayError, nearest
from assay.stats.correlation import spearman
from assay.stats.multiplicity import bonferroni, holm
from assay.stats.rank_correlation import partial_spearman, spearman_interval, spearman_p

LEAST_READ = 0.2
"""Correlations that are nearer to 0 are not interpreted."""
_FEWEST = 4
NAN = float("nan")


def metric_agreement(
    networks: pd.DataFrame, metrics: Sequence[str], given: str | Sequence[str] = (), least: float = LEAST_READ
) -> pd.DataFrame:
    """Spearman's correlation of every two metrics over networks, with intervals and p values adjusted for many tests.

    Args:
        networks: A table with one row per network and a column for each metric.
        metrics: The columns to correlate; at least two.
        given: Columns whose influence is taken out first (partial correlation), such as the learning rate.
        least: Correlations whose size is below this are not interpreted, however small their p.

    Returns:
        One row per pair: ``first``, ``second``, ``given``, ``rho``; ``low`` and ``high``, the 95 % interval
        (`spearman_interval`); ``p``, ``p_bonferroni`` and ``p_holm``, the family being the rows of the table; ``n``,
        the networks that have all the values; ``reading``: ``clear`` if p_bonferroni is below 0.05 and |rho| at least
        ``least``, ``not clear``, ``small`` (|rho| below ``least``: not interpreted), or ``undefined`` (a column is
        constant, or there are fewer than 4 networks).

    Example:
        >>> table = pd.DataFrame({"mse": [0.4, 0.3, 0.2, 0.1, 0.05, 0.01], "accuracy": [0.1, 0.2, 0.3, 0.4, 0.5, 0.45]})
        >>> row = metric_agreement(table, ["mse", "accuracy"]).iloc[0]
        >>> round(float(row.rho), 4), int(row.n), row.reading
        (-0.9429, 6, 'clear')

    Blanchard et al. 2019, §4.1.
    """
    others = [given] if isinstance(given, str) else list(given)
    require_columns(networks, [*metrics, *others])
    if len(metrics) < 2 or len(set(metrics)) < len(metrics):
        raise AssayError(f"metrics={list(metrics)} must be two columns or more, each once")
    if both := sorted(set(metrics) & set(others)):
        raise AssayError(f"given={others}: {both[0]!r} is one of the metrics too")
    rows: list[dict[str, Any]] = []
    for first, second in combinations(metrics, 2):
        values = finite_rows(networks, [first, second, *others])
        n = len(values)
        rho, low, high, p = _correlation(values)
        pair = {"first": first, "second": second, "given": ", ".join(others)}
        rows.append({**pair, "rho": rho, "low": low, "high": high, "p": p, "n": n})
    table = pd.DataFrame(rows)
    table["p_bonferroni"] = bonferroni(table["p"].to_numpy())
    table["p_holm"] = holm(table["p"].to_numpy())
    table["reading"] = [_reading(rho, p, least) for rho, p in zip(table["rho"], table["p_bonferroni"], strict=True)]
    return table[["first", "second", "given", "rho", "low", "high", "p", "p_bonferroni", "p_holm", "n", "reading"]]


def correlation_matrix(agreements: pd.DataFrame) -> pd.DataFrame:
    """The correlations of `metric_agreement` as a matrix, metrics × metrics, with 1 on the diagonal.

    Example:
        >>> table = pd.DataFrame({"a": [1.0, 2, 3, 4, 5], "b": [1.0, 2, 3, 5, 4]})
        >>> correlation_matrix(metric_agreement(table, ["a", "b"])).round(2).to_numpy().tolist()
        [[1.0, 0.9], [0.9, 1.0]]
    """
    names = list(dict.fromkeys([*agreements["first"], *agreements["second"]]))
    matrix = pd.DataFrame(np.eye(len(names)), index=names, columns=names)
    for first, second, rho in agreements[["first", "second", "rho"]].itertuples(index=False):
        matrix.loc[first, second] = matrix.loc[second, first] = rho
    return matrix


def overview(networks: pd.DataFrame, metrics: Sequence[str], by: str | None = None, count: int = 10) -> pd.DataFrame:
    """Mean and standard deviation of metrics over all networks, and over those highest and lowest by one of them.

    Args:
        networks: A table with one row per network and a column for each metric.
        metrics: The columns to describe.
        by: The metric that orders the networks; None describes all networks only. Networks without it are in neither.
        count: Number of networks that are highest, and that are lowest.

    Returns:
        One row per group and metric: ``group``, ``metric``, ``mean``, ``sd`` (of n − 1) and ``n``.

    Example:
        >>> table = pd.DataFrame({"hms": [0.1, 0.3, 0.2, 0.0], "mse": [4.0, 1.0, 2.0, 3.0]})
        >>> found = overview(table, ["hms", "mse"], by="hms", count=2)
        >>> found[found.metric == "mse"][["group", "mean"]].to_numpy().tolist()
        [['all', 2.5], ['highest 2 by hms', 1.5], ['lowest 2 by hms', 3.5]]

    Blanchard et al. 2019, Table 1.
    """
    require_columns(networks, [*metrics, *([by] if by else [])])
    groups = {"all": networks}
    if by is not None:
        ordered = networks[np.isfinite(networks[by].to_numpy(dtype=float))].sort_values(by, kind="stable")
        if not 1 <= count <= len(ordered) // 2:
            raise AssayError(
                f"count={count} networks cannot be highest and as many lowest of the {len(ordered)} that have {by!r}: "
                f"give 1 to {len(ordered) // 2}"
            )
        groups |= {f"highest {count} by {by}": ordered[-count:], f"lowest {count} by {by}": ordered[:count]}
    rows = []
    for group, members in groups.items():
        for metric in metrics:
            values = finite_rows(members, [metric])[:, 0]
            mean = float(values.mean()) if len(values) else float("nan")
            sd = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
            rows.append({"group": group, "metric": metric, "mean": mean, "sd": sd, "n": len(values)})
    return pd.DataFrame(rows)


def require_columns(table: pd.DataFrame, columns: Sequence[str]) -> None:
    """Refuse a table that lacks a column, or has something else than numbers in one."""
    for column in columns:
        if column not in table:
            raise AssayError(f"the table has no column {column!r}{nearest(str(column), list(map(str, table.columns)))}")
        if not pd.api.types.is_numeric_dtype(table[column]):
            raise AssayError(f"column {column!r} of the table holds {table[column].dtype}, not numbers")


def finite_rows(table: pd.DataFrame, columns: Sequence[str]) -> np.ndarray[Any, Any]:
    """Values of columns, rows × columns, of the rows in which all of them are finite."""
    values = table[list(columns)].to_numpy(dtype=np.float64)
    finite: np.ndarray[Any, Any] = values[np.isfinite(values).all(axis=1)]
    return finite


def _correlation(values: np.ndarray[Any, Any]) -> tuple[float, float, float, float]:
    """The correlation of the first two columns given the others, the ends of its interval, and its p."""
    if len(values) < _FEWEST:
        return NAN, NAN, NAN, NAN
    first, second = values[:, 0], values[:, 1]
    others = values[:, 2:] if values.shape[1] > 2 else None
    rho = spearman(first, second) if others is None else partial_spearman(first, second, others)
    return rho, *spearman_interval(first, second, others), spearman_p(first, second, others)


def _reading(rho: float, p: float, least: float) -> str:
    if not np.isfinite(rho):
        return "undefined"
    if abs(rho) < least:
        return "small"
    return "clear" if p < 0.05 else "not clear"
