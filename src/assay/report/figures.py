"""Charts drawn as pictures; the same chart gives the same bytes."""

from __future__ import annotations

import io
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import PercentFormatter

from assay.core.names import all_showable, cut, showable
from assay.core.plot import Plot
from assay.report.document import DotChart, LineChart, Mark

COLORS = ("#0072b2", "#d55e00", "#009e73", "#a0548b", "#b07c00", "#3f8fc9", "#6b6b6b", "#8a5a2b")
_INK, _QUIET, _LINE, _BAD = "#1c2430", "#5c6675", "#d9dee5", "#b3261e"
_MARKERS = ("o", "D", "s", "^")
_WIDTH, _HEIGHT = 6.0, 3.7  # inches of a chart in a figure of several
_CAPTION, _Y_LABEL = 58, 36  # characters of a caption, and of the label of the upright axis, in a line
_LINES = 4  # of a caption or a label
_FEW_ENTRIES = 5  # of a legend, which may stand one below the other
_FEWEST_NAME_LETTERS = 34  # that the name of a row may have, however narrow the chart
_MARK_LETTERS = 6  # that the mark of a legend and the space around it are wide
_MANY_POINTS = 40  # of a line, whose marks are then small
_TEXT_PT = 10.0  # size of text
_CAPTION_OF_ROWS = 42  # characters of the caption of a chart whose groups are named at its side


def picture(chart: DotChart | LineChart, width: float, height: float, text_pt: float = _TEXT_PT) -> bytes:
    """Draw a chart of this width and height, in inches, as PNG; the same chart gives the same bytes."""
    with styled(text_pt):
        figure = Figure(figsize=(width, height), dpi=160, layout="constrained")
        FigureCanvasAgg(figure)
        _draw(figure, chart)
        return as_png(figure)


def as_png(figure: Figure) -> bytes:
    """A figure as PNG; the same figure gives the same bytes."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():  # of a name too long for its place, which is cut
        warnings.filterwarnings("ignore", "constrained_layout not applied")
        figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def plotted(*charts: DotChart | LineChart) -> Plot:
    """Draw charts under their captions as one figure that a notebook shows and that can be saved."""
    return Plot(drawn(charts), tuple(chart.caption for chart in charts))


def drawn(charts: Sequence[DotChart | LineChart]) -> Figure:
    """Draw charts under their captions as one figure: one alone, several two in a row."""
    columns = 1 if len(charts) == 1 else 2
    lines = -(-len(charts) // columns)
    with styled():
        figure = Figure(figsize=(_WIDTH * columns, _HEIGHT * lines), layout="constrained")
        FigureCanvasAgg(figure)
        parts = figure.subfigures(lines, columns, squeeze=False).ravel()
        for part, chart in zip(parts, charts, strict=False):
            axes = _draw(part, chart)
            beside_names = isinstance(chart, DotChart) and chart.rows  # which leave less room above the chart
            width = _CAPTION_OF_ROWS if beside_names else _CAPTION
            caption = "\n".join(textwrap.wrap(showable(chart.caption), width, max_lines=_LINES, placeholder=" …"))
            axes.set_title(caption, loc="left", fontsize=10.5, fontweight="bold", color=_INK)
            axes.set_ylabel("\n".join(textwrap.wrap(axes.get_ylabel(), _Y_LABEL, max_lines=_LINES, placeholder=" …")))
        figure.canvas.draw()  # while the style holds: ticks are made when a figure is first drawn
    return figure


@contextmanager
def styled(text_pt: float = _TEXT_PT) -> Iterator[None]:
    """Draw figures inside the block in the style of reports, with text of this size."""
    style: Any = {"text.parse_math": False, "font.family": "DejaVu Sans", "font.size": text_pt}
    with mpl.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a letter the font lacks is drawn as a box
        yield


def _draw(figure: Figure | SubFigure, chart: DotChart | LineChart) -> Any:
    chart = all_showable(chart)
    axes: Any = figure.add_subplot()
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_LINE)
    axes.tick_params(colors=_INK, length=0)
    (_dots if isinstance(chart, DotChart) else _lines)(axes, chart)
    return axes


def scatter(groups: Sequence[tuple[str, Any, Any]], x_label: str, y_label: str) -> bytes:
    """Draw points as PNG, each group of them (name, x, y) in a colour of its own."""
    with styled():
        figure = Figure(figsize=(3.6, 2.9), dpi=130, layout="constrained")
        axes: Any = figure.subplots()
        for i, (name, x, y) in enumerate(groups):
            color = mpl.colormaps["viridis"](i / max(len(groups) - 1, 1))
            axes.scatter(x, y, s=16, color=color, label=showable(name))
        axes.set(xlabel=showable(x_label), ylabel=showable(y_label))
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(fontsize=7, frameon=False)
        return as_png(figure)


def _dots(axes: Any, chart: Any) -> None:
    count = len(chart.series) if chart.spread else 1

    def position(mark: Mark) -> float:
        return mark.group + ((mark.series + 0.5) / count * 0.8 - 0.4 if chart.spread else 0.0)

    size = 16 if chart.spread else 55
    for i, series in enumerate(chart.series):
        marks = [m for m in chart.marks if m.series == i]
        color, shape = COLORS[series.color % 8], _MARKERS[series.shape]
        positions = [position(m) for m in marks]
        values = [m.value for m in marks]
        x, y = (values, positions) if chart.rows else (positions, values)
        axes.scatter(
            x,
            y,
            s=size,
            color=color,
            marker=shape,
            label=cut(series.name, _letters(axes, len(chart.series))),
            zorder=3,
            linewidths=0,
        )
        intervals = [(position(m), *m.interval) for m in marks if m.interval is not None]
        if intervals:
            draw_bars = axes.hlines if chart.rows else axes.vlines
            draw_bars(*zip(*intervals, strict=True), color=color, linewidth=1.4 if chart.spread else 2.2, zorder=2)
    n = len(chart.groups)
    names = [cut(name, _name_letters(axes) if chart.rows else 22) for name in chart.groups]
    if chart.rows:
        axes.set_yticks(range(n), names)
        axes.set_ylim(n - 0.5, -0.5 if chart.band is None else -1.0)  # room for the name of the band
        axes.set_xlabel(chart.value_label, color=_QUIET)
    else:
        # About 110 characters of this size fit under a chart of slide width.
        tilt = sum(len(name) + 1 for name in names) > 95 * _width(axes) / 12 / _enlarged()
        axes.set_xticks(range(n), names, rotation=30 if tilt else 0, ha="right" if tilt else "center")
        axes.set_xlim(-0.5, n - 0.5)
        axes.set_ylabel(chart.value_label, color=_QUIET)
    axes.grid(axis="x" if chart.rows else "y", color=_LINE, linewidth=0.8, zorder=0)
    if chart.spread:
        for i in range(1, n):
            (axes.axhline if chart.rows else axes.axvline)(i - 0.5, color=_LINE, linewidth=0.8, linestyle=(0, (2, 4)))
    if chart.band is not None:
        name, low, high = chart.band
        span = axes.axvspan if chart.rows else axes.axhspan
        span(low, high, color=_QUIET, alpha=0.18, linewidth=0, zorder=1)
        axes.annotate(
            name, ((low + high) / 2, 1.0) if chart.rows else (1.0, high), (0 if chart.rows else -3, -2), color=_QUIET,
            fontsize=8 * _enlarged(), ha="center" if chart.rows else "right", va="top", textcoords="offset points",
            xycoords=axes.get_xaxis_transform() if chart.rows else axes.get_yaxis_transform(),
        )  # fmt: skip
    if chart.reference is not None:
        (axes.axvline if chart.rows else axes.axhline)(
            chart.reference, color=_QUIET, linewidth=1.2, linestyle="--", zorder=1
        )
    for group, reason in chart.absent:
        if chart.rows:
            axes.text(0.01, group, reason, color=_BAD, va="center", transform=axes.get_yaxis_transform())
        else:
            axes.text(
                group,
                0.03,
                reason,
                color=_BAD,
                rotation=90,
                ha="center",
                va="bottom",
                transform=axes.get_xaxis_transform(),
            )
    if chart.spread:
        columns = _legend_columns(axes)
        axes.figure.legend(
            loc="outside lower center", ncols=columns, frameon=False, fontsize=9 * _enlarged(), markerscale=2
        )


def _lines(axes: Any, chart: Any) -> None:
    for i, (name, points) in enumerate(chart.lines):
        x, y = [p.x for p in points], [p.y for p in points]
        size = 2.5 if len(points) > _MANY_POINTS else 6
        axes.plot(
            x,
            y,
            color=COLORS[i % 8],
            marker=_MARKERS[i % 4],
            markersize=size,
            linewidth=2,
            label=cut(name, _letters(axes, len(chart.lines))),
        )
        banded = [p for p in points if p.band is not None]
        axes.fill_between(
            [p.x for p in banded], [p.band[0] for p in banded], [p.band[1] for p in banded], color=COLORS[i % 8],
            alpha=0.16, linewidth=0,
        )  # fmt: skip
    if chart.x_range is None:
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    if chart.reference is not None:
        name, value = chart.reference
        said = f"{name} {value:.3f}" if abs(value) < 1 else f"{name} {value:.1f}"
        axes.axhline(value, color=_QUIET, linewidth=1.2, linestyle="--", zorder=1, label=said)
    axes.set_xlabel(chart.x_label, color=_QUIET)
    axes.set_ylabel(chart.y_label, color=_QUIET)
    axes.grid(axis="y", color=_LINE, linewidth=0.8)
    axes.figure.legend(loc="outside lower center", ncols=_legend_columns(axes), frameon=False, fontsize=9 * _enlarged())


def _enlarged() -> float:
    """How many times larger than usual the text of the present style is."""
    return float(mpl.rcParams["font.size"]) / _TEXT_PT


def _width(axes: Any) -> float:
    """Width in inches of the part of a figure that a chart has for itself."""
    return float(axes.figure.bbox.width / axes.figure.dpi)


def _name_letters(axes: Any) -> int:
    """How many letters the name of a row beside a chart may have: two fifths of a wide chart, and never few."""
    return max(_FEWEST_NAME_LETTERS, int(_width(axes) * 0.4 * 13 / _enlarged()))


def _letters(axes: Any, entries: int) -> int:
    """How many letters an entry of the legend under a chart may have: many entries must fit in two columns."""
    columns = 1 if entries <= _FEW_ENTRIES else 2
    return int(_width(axes) * 13 / _enlarged() / columns) - _MARK_LETTERS


def _legend_columns(axes: Any) -> int:
    """How many entries of the legend fit beside each other under a chart, at least one."""
    names = axes.get_legend_handles_labels()[1]
    longest = max(map(len, names), default=0) + _MARK_LETTERS
    return max(1, min(len(names), int(_width(axes) * 13 / _enlarged() / longest)))
