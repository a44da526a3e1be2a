"""The report as one neutral document: sections of text, tables and charts, before any format."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pandas as pd


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Items:
    """A list of sentences."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Facts:
    """Names and values."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Table:
    """Columns, rows, and what each column means."""

    caption: str
    frame: pd.DataFrame
    notes: dict[str, str] = field(default_factory=dict)
    csv: str = ""  # a file beside the report with the whole table


@dataclass(frozen=True)
class Point:
    """One point of a line: position, value, the ends of its band, and what to say of it."""

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
    """One value of a series in a group, the ends of its interval, and what to say of it."""

    group: int
    series: int
    value: float
    interval: tuple[float, float] | None
    detail: str


@dataclass(frozen=True)
class DotChart:
    """Values in groups side by side; every mark can be read.

    Args:
        caption: Over it.
        value_label: What the values are.
        groups: Names of the groups.
        series: What the marks stand for.
        marks: The values.
        alt: What is to be seen, for those who cannot.
        reference: A value with a dashed line.
        rows: Groups one below the other, as in a forest plot, instead of side by side.
        spread: Whether the series of a group stand beside each other; otherwise each group has one mark.
        absent: Groups without a value, and why.
        csv: A file beside the report with the values.
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


@dataclass(frozen=True)
class Findings:
    """Sentences that answer a question each: how it went (good, bad, open), what was asked, the answer."""

    items: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Strip:
    """How each of many things went, by rows and columns: the words, how they are meant (good, bad, open), and why."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...]


@dataclass(frozen=True)
class Flow:
    """Columns of boxes, each box leading to the one below: a heading, and boxes with what they are and whose."""

    caption: str
    columns: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


@dataclass(frozen=True)
class Code:
    """Commands to copy."""

    text: str


@dataclass(frozen=True)
class Pictures:
    """Pictures (PNG), each with a line under it; small ones in a row, or as large as they are."""

    caption: str
    items: tuple[tuple[bytes, str], ...]
    large: bool = False


@dataclass(frozen=True)
class Failure:
    """A cell that failed: who, what, why, and the whole traceback."""

    title: str
    reason: str
    traceback: str


Block = Text | Items | Facts | Table | LineChart | DotChart | Findings | Strip | Flow | Code | Pictures | Failure


@dataclass(frozen=True)
class Section:
    """A heading and what is under it."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Document:
    """A whole report."""

    title: str
    subtitle: str
    status: str
    sections: tuple[Section, ...]
    manifest: dict[str, Any]
