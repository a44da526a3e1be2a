"""Charts on slides: as a picture, and as a chart of the office program that can be edited."""

from __future__ import annotations

import io
import math
from typing import Any

from assay.core.errors import optional
from assay.core.names import showable
from assay.report.document import DotChart, LineChart
from assay.report.figures import COLORS, picture
from assay.report.slides.pen import FONT, LINE, QUIET, Pen, describe

TEXT_PT = 14.0  # size of text on pictures of charts, and on charts that can be edited


def draw_chart(pen: Pen, slide: Any, chart: DotChart | LineChart, x: float, y: float, w: float, h: float) -> None:
    """Draw a chart as a picture at this place and of this size, in inches."""
    data = io.BytesIO(picture(chart, w, h, TEXT_PT))
    shape = slide.shapes.add_picture(data, *pen.box(x, y, w, h))
    description = chart.alt if isinstance(chart, DotChart) else chart.caption
    describe(shape, chart.caption, description)


def draw_editable(pen: Pen, slide: Any, chart: DotChart, x: float, y: float, w: float, h: float) -> None:
    """Draw a chart with one mark a group as one that can be edited, its intervals as error bars."""
    data = optional("pptx.chart.data", "slides", "writing slides").CategoryChartData(number_format="0.000")
    absent = dict(chart.absent)
    data.categories = [
        showable(name + (f" ({absent[i]})" if i in absent else "")) for i, name in enumerate(chart.groups)
    ]
    marks = {m.group: m for m in chart.marks}
    values = [marks[i].value if i in marks else None for i in range(len(chart.groups))]
    data.add_series(showable(chart.value_label), values)
    kind = pen.pptx.enum.chart.XL_CHART_TYPE.LINE_MARKERS
    shape = slide.shapes.add_chart(kind, *pen.box(x, y, w, h), data)
    describe(shape, f"{chart.caption} (can be edited)", chart.alt)
    native = shape.chart
    native.has_legend = False
    native.has_title = True
    pen.fill(native.chart_title.text_frame, [f"{chart.value_label} (this chart can be edited)"], TEXT_PT, color=QUIET)
    native.font.size, native.font.name = pen.util.Pt(TEXT_PT), FONT
    axis = native.value_axis
    ends = [v for m in chart.marks for v in (m.interval or (m.value, m.value))]
    axis.minimum_scale, axis.maximum_scale, axis.major_unit = _scale(min(ends), max(ends))
    axis.major_gridlines.format.line.color.rgb = pen.rgb(LINE)
    axis.format.line.fill.background()
    axis.tick_labels.number_format, axis.tick_labels.number_format_is_linked = "0.00", False
    series = native.plots[0].series[0]
    series.format.line.fill.background()
    series.smooth = False
    for i, mark in marks.items():
        point = series.points[i]
        point.format.line.fill.background()
        point.marker.style = pen.pptx.enum.chart.XL_MARKER_STYLE.CIRCLE
        point.marker.size = 9
        point.marker.format.fill.solid()
        color = COLORS[chart.series[mark.series].color % 8].lstrip("#")
        point.marker.format.fill.fore_color.rgb = pen.rgb(color)
        point.marker.format.line.fill.background()
    _error_bars(series, [marks.get(i) for i in range(len(chart.groups))])


def _error_bars(series: Any, marks: list[Any]) -> None:
    """Add custom error bars, for which python-pptx has no call: c:errBars belongs just before c:cat."""
    parse = optional("pptx.oxml", "slides", "writing slides").parse_xml

    def literal(tag: str, reach: list[float | None]) -> str:
        points = "".join(f'<c:pt idx="{i}"><c:v>{r!r}</c:v></c:pt>' for i, r in enumerate(reach) if r is not None)
        numbers = f'<c:formatCode>General</c:formatCode><c:ptCount val="{len(reach)}"/>{points}'
        return f"<c:{tag}><c:numLit>{numbers}</c:numLit></c:{tag}>"

    plus = [m.interval[1] - m.value if m and m.interval else None for m in marks]
    minus = [m.value - m.interval[0] if m and m.interval else None for m in marks]
    space = 'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"'
    line = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" w="15875"'
    bars = parse(
        f'<c:errBars {space}><c:errDir val="y"/><c:errBarType val="both"/><c:errValType val="cust"/>'
        f'<c:noEndCap val="0"/>{literal("plus", plus)}{literal("minus", minus)}'
        f'<c:spPr><a:ln {line}><a:solidFill><a:srgbClr val="{QUIET}"/></a:solidFill></a:ln></c:spPr></c:errBars>'
    )
    series._element.find("{http://schemas.openxmlformats.org/drawingml/2006/chart}cat").addprevious(bars)


def _scale(low: float, high: float) -> tuple[float, float, float]:
    """Choose round numbers for the ends and the step of an axis.

    >>> _scale(0.337, 0.482)
    (0.3, 0.5, 0.05)
    """
    raw = max(high - low, 1e-3) / 5
    power = 10 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw)
    return round(math.floor(low / step) * step, 9), round(math.ceil(high / step) * step, 9), round(step, 9)
