"""How a measure is shown that nothing is known of: its numbers in sentences, a chart, and a table without arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from assay.report.document import DotChart, Items, Mark, Series, Table
from assay.report.measures.sentences import digits, number_sentences
from assay.report.profiles import charts_of, value_column
from assay.runs.manifest import MeasureRecord
from assay.runs.tables import Tables

MOST_CHARTS = 6  # a table of more quantities is read better than as many charts
_LONGEST = 300  # characters of a text in a table


def plain_section(label: str, record: MeasureRecord, tables: Tables) -> list[Any]:
    """Show any measure: its key numbers, a profile over layers or a comparison of networks, and its table."""
    frame = tables.summary(label)
    blocks: list[Any] = []
    if sentences := number_sentences(tables.evidence(label)):
        blocks.append(Items(tuple(sentences)))
    blocks += charts_of(label, record, tables) or _comparisons(label, record, frame)
    blocks.append(Table(label, without_arrays(frame)))
    return blocks


def without_arrays(frame: pd.DataFrame) -> pd.DataFrame:
    """A table for readers: without pictures, and with a few words in the place of arrays, lists and mappings.

    Example:
        >>> without_arrays(pd.DataFrame({"layer": ["a"], "histogram": [np.arange(4.0)]})).iloc[0].tolist()
        ['a', '4 numbers, 0 to 3']
    """
    shown = frame.copy()
    for column in [c for c in frame if not pd.api.types.is_numeric_dtype(frame[c])]:
        if frame[column].map(lambda value: isinstance(value, bytes)).any():
            shown = shown.drop(columns=column)
        else:
            shown[column] = frame[column].map(_in_words)
    return shown


def _in_words(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…"
    if isinstance(value, Mapping):
        return f"{len(value)} entries"
    if not isinstance(value, (np.ndarray, list, tuple, set, frozenset)):
        return value
    try:
        array = np.array([np.asarray(entry).tolist() for entry in value], dtype=float)
    except (TypeError, ValueError):
        return f"{len(value)} entries"
    finite = array[np.isfinite(array)]
    extent = f", {digits(finite.min())} to {digits(finite.max())}" if finite.size else ""
    return f"{' × '.join(map(str, array.shape))} numbers{extent}"


def _comparisons(label: str, record: MeasureRecord, frame: pd.DataFrame) -> list[DotChart]:
    """A chart for each quantity of a table without layers, a mark for each network."""
    value = value_column(frame, record.value)
    if value is None or frame["subject"].nunique() < 2:
        return []
    parts = [(value.replace("_", " "), frame)]
    if "quantity" in frame:
        parts = [(str(quantity), rows) for quantity, rows in frame.groupby("quantity", sort=False)]
    charts = [_comparison(label, name, value, rows) for name, rows in parts]
    return [chart for chart in charts if chart.marks] if len(charts) <= MOST_CHARTS else []


def _comparison(label: str, name: str, value: str, frame: pd.DataFrame) -> DotChart:
    subjects = list(frame["subject"].unique())
    marks = []
    for i, subject in enumerate(subjects):
        rows = frame[frame["subject"] == subject]
        mean = float(pd.to_numeric(rows[value], errors="coerce").mean())
        if not np.isfinite(mean):
            continue
        bounds = _bounds(rows)
        spread = "" if bounds is None else f" ({digits(bounds[0])} to {digits(bounds[1])})"
        over = f", mean of {len(rows)} rows" if len(rows) > 1 else ""
        marks.append(Mark(0, i, mean, bounds, f"{subject}, {name}: {digits(mean, '.4g')}{spread}{over}"))
    series = tuple(Series(str(subject), i % 8, i // 8 % 4) for i, subject in enumerate(subjects))
    caption = f"{label}: networks compared" + (" (bars: from low to high)" if any(m.interval for m in marks) else "")
    return DotChart(caption, name, (name,), series, tuple(marks), f"{name} of {len(subjects)} networks")


def _bounds(rows: pd.DataFrame) -> tuple[float, float] | None:
    """The columns low and high of a table of one row."""
    if len(rows) != 1 or not {"low", "high"} <= set(rows):
        return None
    low, high = (float(pd.to_numeric(rows[end], errors="coerce").iloc[0]) for end in ("low", "high"))
    return (low, high) if np.isfinite(low) and np.isfinite(high) else None
