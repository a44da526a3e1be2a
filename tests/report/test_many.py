"""Of many networks a report shows how they are spread and who stands apart, never a line for each."""

from __future__ import annotations

import numpy as np
import pandas as pd

from assay.report.document import DotChart, LineChart, Mark, Point, Series, Table
from assay.report.many import MANY, MOST_ROWS, readable

RNG = np.random.default_rng(0)
NAMES = [f"network {i}" for i in range(99)] + ["strange"]


def line(offset: float, places: int) -> tuple[Point, ...]:
    x = np.linspace(0, 1, places)
    return tuple(Point(float(p), float(v) + offset, (0.0, 1.0), "layer", "") for p, v in zip(x, x**2, strict=True))


def test_lines_become_the_median_the_middle_half_and_those_that_stand_apart():
    offsets = RNG.normal(0, 0.1, 100)
    offsets[-1] = 5.0
    lines = tuple((name, line(o, 8 + i % 3)) for i, (name, o) in enumerate(zip(NAMES, offsets, strict=True)))
    chart = readable(LineChart("Curvature (band: ± SEM)", "depth", "curvature", lines))
    assert chart.lines[0][0] == "median of 100 networks"
    assert "strange" in [name for name, _ in chart.lines] and len(chart.lines) <= 6
    assert chart.caption.startswith("Curvature (band: the middle half")
    for point in chart.lines[0][1]:
        low, high = point.band
        assert low <= point.y <= high and abs(point.y - point.x**2 - np.median(offsets)) < 0.1


def test_lines_that_share_their_places_are_compared_there():
    lines = tuple((name, line(0.0, 4)) for name in NAMES)
    chart = readable(LineChart("c", "α", "accuracy", lines, x_range=(0.0, 1.0)))
    assert [p.x for p in chart.lines[0][1]] == [p.x for p in lines[0][1]]


def test_marks_become_quiet_with_the_median_and_names_of_those_that_stand_apart():
    values = RNG.normal(0, 1, (2, 100))
    values[1, -1] = 50.0
    marks = [Mark(g, i, float(values[g, i]), (0.0, 1.0), "") for g in range(2) for i in range(100)]
    series = tuple(Series(name, i % 8) for i, name in enumerate(NAMES))
    chart = readable(DotChart("norms (bars: 95 %)", "value", ("one", "two"), series, tuple(marks), "alt"))
    assert [s.name for s in chart.series][:2] == ["one network each", "median and middle half"]
    assert len(chart.series) <= 7 and "strange" in [s.name for s in chart.series]
    assert sum(m.series == 0 for m in chart.marks) == 200
    medians = [m.value for m in chart.marks if m.series == 1]
    np.testing.assert_allclose(medians, np.median(values, axis=1))


def test_few_networks_stay_as_they_are_and_long_tables_are_cut():
    chart = LineChart("c", "x", "y", tuple((name, line(0.0, 3)) for name in NAMES[:MANY]))
    assert readable(chart) is chart
    table = readable(Table("All", pd.DataFrame({"value": np.arange(MOST_ROWS + 5)})))
    assert len(table.frame) == MOST_ROWS and "the first 1,000 of 1,005 rows" in table.caption
