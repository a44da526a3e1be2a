"""Plots of a measure for notebooks: the charts of its section in the report, drawn as one figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from assay.core.errors import AssayError
from assay.core.plot import Plot
from assay.report.document import ChartGrid, DotChart, LineChart, Mark, Series
from assay.report.figures import plotted
from assay.report.measures import section_of
from assay.report.profiles import charts_of
from assay.runs.describing import measure_record
from assay.runs.manifest import MeasureRecord
from assay.runs.run import Run
from assay.runs.tables import Tables, TablesInMemory
from assay.stats.differences import interval

Chart = LineChart | DotChart


def plot_run(run: Run, measure: str) -> Plot:
    """The charts of one measure of a run, as the report has them, in one figure."""
    if run.table(measure).empty:
        raise AssayError(f"no cell of the measure {measure!r} is done; run.failures says what went wrong")
    return _plot(measure, run.manifest.measures[measure], run)


def plot_tables(measure: Any, tables: pd.DataFrame | Mapping[str, pd.DataFrame]) -> Plot:
    """The charts of a measure's own tables, as the report would have them, in one figure."""
    record = measure_record(measure)
    try:
        return _plot(record.measure, record, TablesInMemory(measure, tables))
    except AssayError:
        raise
    except (KeyError, ValueError, AttributeError, IndexError) as error:
        if not isinstance(tables, pd.DataFrame | Mapping):
            raise
        columns = sorted(
            {str(c) for t in ([tables] if isinstance(tables, pd.DataFrame) else tables.values()) for c in t}
        )
        raise AssayError(
            f"table, with the columns {', '.join(columns) or 'none'}, is none that the measure {record.measure!r} "
            "returns: give the table that it returned, as it is"
        ) from error


def _plot(label: str, record: MeasureRecord, tables: Tables) -> Plot:
    blocks = section_of(record.measure)(label, record, tables)
    charts = [chart for block in blocks for chart in _charts_in(block)]
    charts = charts or list(charts_of(label, record, tables)) or _number_charts(label, tables)
    charts = [chart for chart in charts if _has_points(chart)]
    if not charts:
        raise AssayError(f"the measure {label!r} has no numbers that can be plotted: see its table")
    return plotted(*charts)


def _charts_in(block: Any) -> list[Chart]:
    if isinstance(block, ChartGrid):
        return list(block.charts)
    return [block] if isinstance(block, LineChart | DotChart) else []


def _has_points(chart: Chart) -> bool:
    return bool(chart.marks) if isinstance(chart, DotChart) else any(points for _, points in chart.lines)


def _number_charts(label: str, tables: Tables) -> list[Chart]:
    """One chart for each number by which networks are compared, where a measure has neither charts nor layers."""
    evidence = tables.evidence(label)
    names = list(evidence)
    marks_by_quantity: dict[str, list[Mark]] = {}
    for i, numbers in enumerate(evidence.values()):
        for number in numbers:
            if np.isfinite(number.value):
                detail = f"{number.value:.4g}{number.unit}, n = {number.n}"
                mark = Mark(i, 0, number.value, interval(number), detail)
                marks_by_quantity.setdefault(number.quantity, []).append(mark)
    return [
        DotChart(
            f"{label}: {quantity} (bars: 95 % intervals)",
            quantity,
            tuple(names),
            (Series(quantity, 0),),
            tuple(marks),
            f"{quantity} of {len(names)} networks",
            rows=True,
            spread=False,
        )
        for quantity, marks in marks_by_quantity.items()
    ]
