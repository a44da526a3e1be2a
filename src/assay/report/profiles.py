"""Profiles: how the numbers of a measure go from the input to the output, all measures over one depth axis."""

from __future__ import annotations

import numpy as np
import pandas as pd

from assay.report.document import ChartGrid, LineChart, Point
from assay.runs.manifest import MeasureRecord
from assay.runs.run import Run
from assay.runs.tables import Tables

GROUPS = ("condition", "transformation")
MANY_LINES = 12  # above this a line for each network hides the others: the middle of them and its spread are drawn
DEPTH = "relative depth: input to output"


def profiles(run: Run) -> list[ChartGrid]:
    """One small chart for each measure, or group of it, whose table has a value for every layer."""
    measures = run.manifest.measures.items()
    charts = tuple(chart for label, record in measures for chart in charts_of(label, record, run))
    return [ChartGrid("Layer by layer", charts)] if charts else []


def charts_of(label: str, record: MeasureRecord, tables: Tables) -> list[LineChart]:
    """One small chart for a measure, or for each group of it; none where its table has no value for every layer."""
    table = tables.summary(label)
    if table.empty or not has_profile(table, record):
        return []
    group = next((name for name in GROUPS if name in table), None)
    parts = [("", table)] if group is None else [(str(g), rows) for g, rows in table.groupby(group, sort=False)]
    titles = [label if len(parts) == 1 else f"{label}: {part.replace('_', ' ')}" for part, _ in parts]
    return [profile(title, rows, record.value) for title, (_, rows) in zip(titles, parts, strict=True)]


def has_profile(table: pd.DataFrame, record: MeasureRecord) -> bool:
    """Whether a table has its value once for every layer of a network, at more than one layer."""
    if "layer" not in table or "quantity" in table or record.value not in table:
        return False
    keys = ["subject", "layer", *(name for name in GROUPS if name in table)]
    numeric = pd.api.types.is_numeric_dtype(table[record.value])
    return bool(numeric and not table.duplicated(keys).any() and table["layer"].nunique() > 1)


def profile(title: str, table: pd.DataFrame, value: str) -> LineChart:
    """A line for each network, from its first layer to its last; of many networks the middle, and the middle half."""
    lines = []
    for subject, rows in table.groupby("subject", sort=False):
        last = max(len(rows) - 1, 1)
        points = []
        for i, row in enumerate(rows.to_dict("records")):
            if not np.isfinite(row[value]):
                continue
            low, high = row.get("low", np.nan), row.get("high", np.nan)
            band = (float(low), float(high)) if np.isfinite(low) and np.isfinite(high) else None
            spread = "" if band is None else f" ({low:.3g} to {high:.3g})"
            points.append(Point(i / last, float(row[value]), band, str(row["layer"]), f"{row[value]:.3g}{spread}"))
        lines.append((str(subject), tuple(points)))
    if len(lines) > MANY_LINES:
        lines = [(f"median of {len(lines)} networks", _middle([points for _, points in lines]))]
    name = value.removesuffix("_deg").replace("_", " ") + (" (degrees)" if value.endswith("_deg") else "")
    return LineChart(title, DEPTH, name, tuple(lines))


def _middle(lines: list[tuple[Point, ...]]) -> tuple[Point, ...]:
    """The median over networks at 21 depths, with the middle half as its band."""
    at = np.linspace(0, 1, 21)
    drawn = [np.interp(at, [p.x for p in points], [p.y for p in points]) for points in lines if points]
    low, median, high = np.quantile(drawn, (0.25, 0.5, 0.75), axis=0)
    return tuple(
        Point(
            float(x), float(m), (float(a), float(b)), f"depth {x:.0%}", f"{m:.3g}, the middle half {a:.3g} to {b:.3g}"
        )
        for x, m, a, b in zip(at, median, low, high, strict=True)
    )
