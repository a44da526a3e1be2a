"""The report as one neutral document: sections of text, tables and charts, before any format."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pandas as pd


@dataclass(frozen=True)
class Text:
    """A paragraph of text."""

    text: str


@dataclass(frozen=True)
class Items:
    """A list of sentences."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Facts:
    """Names and values, one pair a row."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Table:
    """A table with a caption and notes on what its columns mean.

    Args:
        caption: Caption above the table.
        frame: The cells.
        notes: What columns mean, by name.
        csv: A file beside the report with the whole table.
        leads: Columns that come first where a screen is too narrow for the table: there each row is a card, these
            values first and large. None for a table that scrolls sideways.
    """

    caption: str
    frame: pd.DataFrame
    notes: dict[str, str] = field(default_factory=dict)
    csv: str = ""
    leads: tuple[str, ...] = ()


@dataclass(frozen=True)
class Point:
    """One point of a line: position, value, the ends of its band, and a label and details for the reader."""

    x: float
    y: float
    band: tuple[float, float] | None
    label: str
    detail: str


@dataclass(frozen=True)
class LineChart:
    """One line per subject, a dashed reference, a band around each line.

    ``x_range`` is what the horizontal axis spans; the default is a share, from 0 to 100 %.
    """

    caption: str
    x_label: str
    y_label: str
    lines: tuple[tuple[str, tuple[Point, ...]], ...]
    reference: tuple[str, float] | None = None
    csv: str = ""
    x_range: tuple[float, float] | None = None


@dataclass(frozen=True)
class Series:
    """What marks of one colour and shape stand for."""

    name: str
    color: int
    shape: int = 0


@dataclass(frozen=True)
class Mark:
    """One value of a series in a group, the ends of its interval, and details for the reader."""

    group: int
    series: int
    value: float
    interval: tuple[float, float] | None
    detail: str


@dataclass(frozen=True)
class DotChart:
    """A chart of values in groups, each value a mark with its interval.

    Args:
        caption: Caption above the chart.
        value_label: Label of the axis of values.
        groups: Names of the groups.
        series: What the marks stand for.
        marks: The values.
        alt: What the chart shows, in words, for those who cannot see it.
        reference: A value to mark with a dashed line.
        rows: Whether groups stand one below the other, as in a forest plot, instead of side by side.
        spread: Whether the series of a group stand beside each other; otherwise each group has one mark.
        absent: Groups without a value, by number, each with the reason.
        csv: A file beside the report with the values.
        band: A range of values to shade, with its name before its ends.
    """

    caption: str
    value_label: str
    groups: tuple[str, ...]
    series: tuple[Series, ...]
    marks: tuple[Mark, ...]
    alt: str
    reference: float | None = None
    rows: bool = False
    spread: bool = True
    absent: tuple[tuple[int, str], ...] = ()
    csv: str = ""
    band: tuple[str, float, float] | None = None


@dataclass(frozen=True)
class ChartGrid:
    """Small charts side by side under one heading, with one legend."""

    caption: str
    charts: tuple[LineChart, ...]


@dataclass(frozen=True)
class MatrixCell:
    """One number of a matrix as readers see it, what stands small under it, and whether it is marked as best."""

    value: str
    detail: str
    best: bool


@dataclass(frozen=True)
class Matrix:
    """Numbers by rows and columns: for each row its name, the measure it comes from, and its cells.

    The columns of reference networks stand behind the others, in a quieter colour.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[MatrixCell, ...]], ...]
    note: str
    references: tuple[str, ...] = ()


@dataclass(frozen=True)
class Findings:
    """Questions with their answers: for each its tone (good, bad, open), the question and the answer."""

    items: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Strip:
    """Outcomes by rows and columns: each cell has its words, its tone (good, bad, open) and the reason."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...]


@dataclass(frozen=True)
class Flow:
    """Columns of boxes, each box leading to the one below: a heading, and boxes with their text and whose they are."""

    caption: str
    columns: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


@dataclass(frozen=True)
class Code:
    """Commands to copy."""

    text: str


@dataclass(frozen=True)
class Pictures:
    """Pictures (PNG), each with a line of text under it; small and in a row, or in their own size."""

    caption: str
    items: tuple[tuple[bytes, str], ...]
    large: bool = False


@dataclass(frozen=True)
class Failure:
    """A cell that failed: its name, the reason and the whole traceback."""

    title: str
    reason: str
    traceback: str


Block = (
    Text | Items | Facts | Table | LineChart | DotChart | ChartGrid | Matrix | Findings | Strip | Flow | Code | Pictures
    | Failure
)  # fmt: skip


@dataclass(frozen=True)
class Section:
    """A heading and the blocks under it, which a reader opens where it is folded."""

    title: str
    blocks: tuple[Block, ...]
    folded: bool = False


@dataclass(frozen=True)
class Document:
    """A whole report, before it is written in any format."""

    title: str
    subtitle: str
    status: str
    sections: tuple[Section, ...]
    manifest: dict[str, Any]
