"""Two runs side by side: which numbers differ, and by how much."""

from __future__ import annotations

import numpy as np
import pandas as pd
from pandas.api.types import is_float_dtype

from assay.core.errors import AssayError
from assay.runs.run import Run

COLUMNS = ["measure", "column", "rows", "rows_in_one_only", "largest_difference", "differs", "where"]
_PLACE = "place among rows alike"


def compare(a: Run, b: Run, tolerance: float = 0.0) -> pd.DataFrame:
    """One row per measure and column of numbers or arrays: rows matched, rows in one run only, largest difference.

    Rows are matched by all their other columns, by floating-point settings such as a magnitude where those do not tell
    them apart, and at last by their order. Arrays differ by the largest difference of their entries, and without bound
    where they have another shape or words. ``differs`` is whether any difference exceeds the tolerance or any row or
    measure is without its match.
    """
    shared = [m for m in a.measures if m in b.measures]
    if not shared:
        raise AssayError(f"the runs share no measure: {', '.join(a.measures)} and {', '.join(b.measures)}")
    rows = []
    for measure in shared:
        left, right = a.table(measure), b.table(measure)
        if left.empty or right.empty:
            raise AssayError(f"measure {measure!r} has no rows in {a.path if left.empty else b.path}")
        floats = [c for c in left.columns if is_float_dtype(left[c]) and c in right.columns]
        arrays = [c for c in left.columns if c in right.columns and _has_arrays(left[c])]
        keys = [c for c in left.columns if c in right.columns and c not in (*floats, *arrays)]
        keys += _settings_among(floats, keys, left, right)
        values = [c for c in (*floats, *arrays) if c not in keys]
        left, right, keys = _numbered(left, keys), _numbered(right, keys), [*keys, _PLACE]
        joined = left.merge(right, on=keys, how="outer", suffixes=("_a", "_b"), indicator="found")
        both = joined[joined["found"] == "both"]
        alone = len(joined) - len(both)
        if not values:
            entry = {"column": "", "rows": len(both), "rows_in_one_only": alone, "largest_difference": 0.0}
            rows.append({"measure": measure, **entry, "differs": bool(alone), "where": ""})
        for column in values:
            x, y = both[f"{column}_a"], both[f"{column}_b"]
            gap = _apart(x, y) if column in arrays else (x - y).abs().where(~(x.isna() & y.isna()), 0.0)
            largest = float("nan") if gap.empty else float(gap.max(skipna=False))
            worst = both.iloc[int(gap.to_numpy().argmax())] if largest > 0 else None
            rows.append(
                {
                    "measure": measure,
                    "column": column,
                    "rows": len(both),
                    "rows_in_one_only": alone,
                    "largest_difference": largest,
                    "differs": bool(alone or not largest <= tolerance),
                    "where": "" if worst is None else ", ".join(f"{worst[k]}" for k in keys[:-1][:4]),
                }
            )
    for run, other in ((a, b), (b, a)):
        for measure in run.measures:
            if measure not in other.measures:
                lone = {"rows": 0, "rows_in_one_only": len(run.table(measure)), "largest_difference": float("nan")}
                where = f"only in {run.path}"
                rows.append({"measure": measure, "column": "", **lone, "differs": True, "where": where})
    return pd.DataFrame(rows, columns=COLUMNS)


def _has_arrays(column: pd.Series) -> bool:
    return any(isinstance(value, (np.ndarray, list)) for value in column)


def _apart(x: pd.Series, y: pd.Series) -> pd.Series:
    """How far apart the arrays of two columns are; entries that are not numbers in both are equal."""
    largest = []
    for one, other in zip(map(np.asarray, x), map(np.asarray, y), strict=True):
        if np.issubdtype(one.dtype, np.number) and np.issubdtype(other.dtype, np.number) and one.shape == other.shape:
            alike = (one == other) | (np.isnan(one) & np.isnan(other))  # infinite entries too
            with np.errstate(invalid="ignore"):
                gaps = np.where(alike, 0.0, np.abs(one - other.astype(np.float64)))
            largest.append(float(gaps.max(initial=0.0)))
        else:
            largest.append(0.0 if np.array_equal(one, other) else float("inf"))
    return pd.Series(largest, index=x.index, dtype=np.float64)


def _settings_among(floats: list[str], keys: list[str], left: pd.DataFrame, right: pd.DataFrame) -> list[str]:
    """The floating-point columns that tell rows apart which the keys do not, such as a magnitude.

    They are told from measured values by what they hold: all the numbers of one run are among those of the other.
    """
    settings: list[str] = []
    for column in floats:
        distinct = [_groups(table, [*keys, *settings]) for table in (left, right)]
        if distinct == [len(left), len(right)]:
            break
        a, b = set(left[column].dropna()), set(right[column].dropna())
        more = [_groups(table, [*keys, *settings, column]) for table in (left, right)]
        if (a <= b or b <= a) and more != distinct:
            settings.append(column)
    return settings


def _groups(table: pd.DataFrame, keys: list[str]) -> int:
    """How many rows of a table the keys tell apart."""
    return len(table[keys].drop_duplicates()) if keys else 1


def _numbered(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The table with the place of each row among those that the keys do not tell apart."""
    alike = table.groupby(keys, dropna=False, sort=False).cumcount() if keys else range(len(table))
    return table.assign(**{_PLACE: alike})
