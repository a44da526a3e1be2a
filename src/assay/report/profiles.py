"""Profiles: how the numbers of a measure go from the input to the output, all measures over one depth axis."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from assay.core.names import counted
from assay.report.document import ChartGrid, LineChart, Point
from assay.report.many import MANY, spread_of_lines
from assay.runs.manifest import MeasureRecord
from assay.runs.run import Run
from assay.runs.tables import Tables

GROUPS = ("condition", "transformation")
_NO_VALUES = ("order", "n", "low", "high", "unit", "seed")  # columns that stand beside what a measure measures
HELD_OUT = ("held_out", "held_out_low", "held_out_high")
"""Columns of what the best units of a layer score on stimuli that did not choose them, with its interval."""
DEPTH = "relative depth: input to output"


def profiles(run: Run) -> list[ChartGrid]:
    """One small chart for each measure, or group of it, whose table has a value for every layer."""
    measures = run.manifest.measures.items()
    charts = tuple(chart for label, record in measures for chart in charts_of(label, record, run))
    many = len(run.manifest.subjects) > MANY
    note = " (band: the middle half of the networks; by name: those that stand farthest apart)" if many else ""
    return [ChartGrid(f"Layer by layer{note}", charts)] if charts else []


def charts_of(label: str, record: MeasureRecord, tables: Tables) -> list[LineChart]:
    """One small chart for a measure, or for each group of it; none where its table has no value for every layer."""
    table = tables.summary(label)
    if "kind" in table and (table["kind"] == "layer").any():  # other rows are what layers are set against
        table = table[table["kind"] == "layer"]
    value = value_column(table, record.value)
    if value is None or "layer" not in table or "quantity" in table or table["layer"].nunique() < 2:
        return []
    group = next((name for name in GROUPS if name in table), None)
    parts = [("", table)] if group is None else [(str(g), rows) for g, rows in table.groupby(group, sort=False)]
    titles = [label if len(parts) == 1 else f"{label}: {part.replace('_', ' ')}" for part, _ in parts]
    return [profile(title, rows, value) for title, (_, rows) in zip(titles, parts, strict=True)]


def value_column(table: pd.DataFrame, declared: str = "") -> str | None:
    """The column that holds what a measure measures: the one that it declares, else the first column of numbers.

    Example:
        >>> value_column(pd.DataFrame({"layer": ["a"], "n": [3], "silent": [0.5]}))
        'silent'
    """
    numeric = [str(c) for c in table if pd.api.types.is_numeric_dtype(table[c]) and table[c].dtype != bool]
    if declared in numeric:
        return declared
    candidates = [column for column in numeric if column not in _NO_VALUES]
    decimal = [column for column in candidates if pd.api.types.is_float_dtype(table[column])]
    return next(iter(decimal or candidates), None)


def profile(title: str, table: pd.DataFrame, value: str) -> LineChart:
    """A line for each network, from its first layer to its last; of many networks the median, and the middle half.

    Where the table has what a layer scores on stimuli that did not choose its units (``held_out``), that is drawn, as
    it is what networks are compared by.
    """
    name = value.removesuffix("_deg").replace("_", " ") + (" (degrees)" if value.endswith("_deg") else "")
    caption = title
    if {*HELD_OUT} <= {*table}:
        without = table[table[value].notna() & table["held_out"].isna()]["layer"].nunique()
        if table["held_out"].notna().any():
            caption += f" ({counted(without, 'layer')} without a held-out score)" * (without > 0)
            table = table.assign(low=table["held_out_low"], high=table["held_out_high"])
            value, name = "held_out", f"{name}, held out"
        else:
            name = f"{name}, not held out"
    lines = []
    for subject, rows in table.groupby("subject", sort=False):
        lines.append((str(subject), _points(rows if rows["layer"].is_unique else _means(rows, value), value)))
    chart = spread_of_lines(LineChart(title, DEPTH, name, tuple(lines)), named=2)
    return replace(chart, caption=caption)


def _means(rows: pd.DataFrame, value: str) -> pd.DataFrame:
    """The mean of each layer where a table has several rows of it, such as one for each unit."""
    return rows.groupby("layer", sort=False)[value].mean().reset_index()


def _points(rows: pd.DataFrame, value: str) -> tuple[Point, ...]:
    last = max(len(rows) - 1, 1)
    points = []
    for i, row in enumerate(rows.to_dict("records")):
        if not np.isfinite(row[value]):
            continue
        low, high = (pd.to_numeric(row.get(end, np.nan), errors="coerce") for end in ("low", "high"))
        band = (float(low), float(high)) if np.isfinite(low) and np.isfinite(high) else None
        spread = "" if band is None else f" ({low:.3g} to {high:.3g})"
        points.append(Point(i / last, float(row[value]), band, str(row["layer"]), f"{row[value]:.3g}{spread}"))
    return tuple(points)
