"""Charts of many networks: how they are spread, and those that stand apart, instead of a line or mark for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from assay.report.document import DotChart, LineChart, Mark, Point, Series, Table

MANY = 12
"""Number of networks above which a line or mark for each hides the others."""
MOST_ROWS = 1000
"""Number of rows of a table above which a page is too large to be opened."""
_NAMED = 5  # networks that stand apart and are named
_DEPTHS = 21  # places at which lines are compared that have no common ones
_QUIET = 6  # colour of what is not named


def readable(block: Any) -> Any:
    """A block of a report as it is; a chart of more than `MANY` networks as their spread, a long table cut."""
    if isinstance(block, LineChart):
        return spread_of_lines(block)
    if isinstance(block, DotChart) and block.spread and len(block.series) > MANY:
        return _marks(block)
    if isinstance(block, Table) and len(block.frame) > MOST_ROWS:
        caption = f"{block.caption}: the first {MOST_ROWS:,} of {len(block.frame):,} rows, which the run's table holds"
        return replace(block, caption=caption, frame=block.frame.head(MOST_ROWS))
    return block


def standing_apart(values: Mapping[str, float]) -> list[str]:
    """Who lies more than 1.5 times the middle half's width outside it (Tukey's fences), the farthest first.

    Example:
        >>> standing_apart({"a": 1.0, "b": 2.0, "c": 3.0, "d": 2.5, "e": 40.0, "f": -30.0})
        ['e', 'f']
    """
    low, middle, high = np.quantile(list(values.values()), (0.25, 0.5, 0.75))
    reach = 1.5 * (high - low)
    apart = [name for name, value in values.items() if not low - reach <= value <= high + reach]
    return sorted(apart, key=lambda name: -abs(values[name] - float(middle)))


def spread_in_words(values: Mapping[str, float], unit: str = "") -> str:
    """The median, the middle half and the extremes of a number of many networks.

    Example:
        >>> spread_in_words({"a": 1.0, "b": 2.0, "c": 3.0})
        'median 2 of 3 networks, middle half 1.5 to 2.5; lowest 1 (a), highest 3 (c)'
    """
    low, middle, high = np.quantile(list(values.values()), (0.25, 0.5, 0.75))
    first, last = min(values, key=lambda n: values[n]), max(values, key=lambda n: values[n])
    return (
        f"median {middle:.3g}{unit} of {len(values)} networks, middle half {low:.3g}{unit} to {high:.3g}{unit}; lowest "
        f"{values[first]:.3g}{unit} ({first}), highest {values[last]:.3g}{unit} ({last})"
    )


def spread_of_lines(chart: LineChart, named: int = _NAMED) -> LineChart:
    """Of more than `MANY` lines the median, with the middle half as its band, and those that stand farthest from it.

    Args:
        chart: The chart, which is returned as it is where it has no more lines.
        named: The largest number of lines that are drawn beside the median.
    """
    lines = {name: points for name, points in chart.lines if points}
    if len(lines) <= MANY:
        return chart
    at = _places(list(lines.values()), chart.x_range)
    curves = {name: np.interp(at, [p.x for p in points], [p.y for p in points]) for name, points in lines.items()}
    low, median, high = np.quantile(list(curves.values()), (0.25, 0.5, 0.75), axis=0)
    points = tuple(
        Point(x, m, (a, b), _place(x, chart), f"{m:.3g}, middle half {a:.3g} to {b:.3g}")
        for x, m, a, b in np.stack([at, median, low, high], 1).tolist()
    )
    distances = {name: float(np.abs(curve - median).mean()) for name, curve in curves.items()}
    far = [name for name in standing_apart(distances) if distances[name] > np.median(list(distances.values()))]
    alone = [(name, tuple(replace(point, band=None) for point in lines[name])) for name in far[:named]]
    more = f", and {len(far) - named} more stand apart" if len(far) > named else ""
    caption = f"{_without_note(chart.caption)} (band: the middle half; by name: those that stand apart{more})"
    return replace(chart, caption=caption, lines=((f"median of {len(lines)} networks", points), *alone))


def _places(lines: Sequence[Sequence[Point]], x_range: tuple[float, float] | None) -> Any:
    """Where lines are compared: at their own places if they share them, else evenly over the axis."""
    first = [p.x for p in lines[0]]
    if all([p.x for p in points] == first for points in lines):
        return np.array(first)
    return np.linspace(*(x_range or (0.0, 1.0)), _DEPTHS)


def _place(x: float, chart: LineChart) -> str:
    return f"depth {x:.0%}" if chart.x_range is None else f"{x:g}"


def _marks(chart: DotChart) -> DotChart:
    """All networks as quiet marks, beside them the median with the middle half, and those that stand apart by name."""
    names = [series.name for series in chart.series]
    by_group: dict[int, dict[str, float]] = {}
    for mark in chart.marks:
        by_group.setdefault(mark.group, {})[names[mark.series]] = mark.value
    marks = [replace(mark, series=0, interval=None) for mark in chart.marks]
    apart: dict[str, list[tuple[int, float]]] = {}
    for group, values in by_group.items():
        low, middle, high = map(float, np.quantile(list(values.values()), (0.25, 0.5, 0.75)))
        detail = f"{chart.groups[group]}: {spread_in_words(values)}"
        marks.append(Mark(group, 1, middle, (low, high), detail))
        for name in standing_apart(values)[:_NAMED]:
            apart.setdefault(name, []).append((group, values[name]))
    series = [Series("one network each", _QUIET), Series("median and middle half", 0)]
    for name, places in sorted(apart.items(), key=lambda item: -len(item[1]))[:_NAMED]:
        for group, value in places:
            marks.append(Mark(group, len(series), value, None, f"{name}, {chart.groups[group]}: {value:.4g}"))
        series.append(Series(name, len(series) - 1, 1))
    caption = f"{_without_note(chart.caption)} (bars: the middle half; by name: those that stand apart most often)"
    return replace(chart, caption=caption, series=tuple(series), marks=tuple(marks))


def _without_note(caption: str) -> str:
    """A caption without the note in brackets that says what bands and bars of single networks are."""
    return caption.partition(" (ba")[0]
