"""The blocks of a document as they are drawn on slides, and which of them share a slide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assay.core.names import cut, showable
from assay.report.document import Code, DotChart, Facts, Findings, Flow, Items, LineChart, Strip, Table, Text
from assay.report.slides.pen import BOTTOM, GAP, ROOM, TOP
from assay.report.slides.tables import Grid, across, column_widths, row_heights
from assay.report.slides.text import LEADING, MONO, PLAIN, cell_text, lines_of, whole_text

_LONGEST_PARAGRAPH = 1800  # characters, about as many as a slide holds
SIZES = (18, 16)  # of text; tables are two points smaller, and 14 points is the least that a hall can read


@dataclass(frozen=True)
class Editable:
    """A chart with one mark a group, drawn as a picture and, beside it, as a chart that can be edited."""

    chart: DotChart


@dataclass(frozen=True)
class Beside:
    """Charts drawn side by side."""

    charts: tuple[DotChart | LineChart, ...]


@dataclass(frozen=True)
class Paragraphs:
    """Text, one paragraph a line, with or without bullets."""

    lines: tuple[str, ...]
    bullets: bool = False
    mono: bool = False


Drawn = Paragraphs | Grid | DotChart | LineChart | Editable | Beside | Flow


def drawn(block: Any) -> Drawn:
    """A block of a document as it is drawn on a slide."""
    if isinstance(block, Text):
        return Paragraphs((_fitting(block.text),))
    if isinstance(block, Items):
        return Paragraphs(tuple(_fitting(item) for item in block.items), bullets=True)
    if isinstance(block, Code):
        return Paragraphs(tuple(showable(line) for line in block.text.splitlines()), mono=True)
    if isinstance(block, Facts):
        return _grid("Facts", (), [[(v, "") for v in row] for row in block.rows])
    if isinstance(block, Findings):
        answers = [[(question, tone), (answer, "")] for tone, question, answer in block.items]
        return _grid("Findings", ("question", "answer"), answers)
    if isinstance(block, Strip):
        rows = [[(name, ""), *((words, tone) for words, tone, _ in cells)] for name, cells in block.rows]
        return _grid(block.caption, ("", *block.columns), rows)
    if isinstance(block, Table):
        frame = block.frame
        return _grid(
            block.caption, tuple(frame.columns), [[(v, "") for v in row] for row in frame.itertuples(index=False)]
        )
    if isinstance(block, (DotChart, LineChart, Editable, Beside, Flow)):
        return block
    raise TypeError(f"no way to draw a {type(block).__name__} on a slide")


def _fitting(text: str) -> str:
    """A paragraph cut to what a slide holds in the smallest size; almost all are shorter."""
    text = showable(text).replace(" %", "\u00a0%")  # a number and its sign stay on one line
    letters = _LONGEST_PARAGRAPH
    shown = cut(text, letters)
    while least_height(Paragraphs((shown,), bullets=True), SIZES[-1]) > BOTTOM - TOP:
        letters = letters * 3 // 4
        shown = cut(text, letters)
    return shown


def _grid(caption: str, head: Sequence[Any], rows: Sequence[Sequence[tuple[Any, str]]]) -> Grid:
    """A table whose cells are short enough for a slide; it keeps the whole texts of those that are cut."""
    cells = tuple(tuple((cell_text(value), tone) for value, tone in row) for row in rows)
    whole = [(whole_text(value), cell_text(value)) for row in rows for value, _ in row]
    beyond = dict.fromkeys(text for text, shown in whole if shown.endswith("…") and text != shown)
    return Grid(caption, tuple(cell_text(name) for name in head), cells, tuple(beyond))


def pages(blocks: list[Drawn]) -> list[tuple[float, list[Drawn]]]:
    """Distribute blocks over slides, with the size of their text.

    All go on one slide, in the largest size at which they fit; if none does, on as many slides as the smallest needs.
    """
    room = BOTTOM - TOP
    blocks = [part for b in blocks for part in (across(b, SIZES[-1] - 2) if isinstance(b, Grid) else [b])]
    for size in SIZES:
        if sum(least_height(b, size) + GAP for b in blocks) - GAP <= room:
            return [(size, blocks)]
    fewest = _filled(blocks, SIZES[-1], room)
    for share in (0.5, 0.6, 0.7, 0.8, 0.9):  # the same number of slides, filled evenly
        if len(pages := _filled(blocks, SIZES[-1], room * share)) == len(fewest):
            return [(SIZES[-1], page) for page in pages]
    return [(SIZES[-1], page) for page in fewest]


def _filled(blocks: list[Drawn], size: float, room: float) -> list[list[Drawn]]:
    """Distribute blocks over slides, each filled up to this height, in inches, before the next."""
    pages: list[list[Drawn]] = [[]]
    left = room
    waiting = list(blocks)
    while waiting:
        block = waiting.pop(0)
        if least_height(block, size) <= left:
            pages[-1].append(block)
            left -= least_height(block, size) + GAP
            continue
        fitting, remainder = _split(block, size, left, least=0 if pages[-1] else 1)
        if fitting is not None:
            pages[-1].append(fitting)
        pages.append([])
        left = room
        if remainder is not None:
            waiting.insert(0, remainder)
    return [page for page in pages if page]


def least_height(block: Drawn, size: float) -> float:
    """The least height a block needs, in inches."""
    if isinstance(block, Paragraphs):
        return sum(_paragraph(line, size, block) for line in block.lines) + 0.1
    if isinstance(block, Grid):
        return sum(row_heights(block, size - 2, column_widths(block, size - 2)))
    return 4.0


def _split(block: Drawn, size: float, room: float, least: int) -> tuple[Drawn | None, Drawn | None]:
    """Split a block into the part that fits, of at least so many rows or paragraphs, and the rest."""
    if isinstance(block, Paragraphs):
        fits, used = 0, 0.1
        while fits < len(block.lines) and used + _paragraph(block.lines[fits], size, block) <= room:
            used += _paragraph(block.lines[fits], size, block)
            fits += 1
        fits, count = max(fits, least), len(block.lines)
        parts: list[Drawn] = [
            Paragraphs(part, block.bullets, block.mono) for part in (block.lines[:fits], block.lines[fits:])
        ]
    elif isinstance(block, Grid):
        heights = row_heights(block, size - 2, column_widths(block, size - 2))
        first = len(heights) - len(block.rows)
        fits, used = 0, sum(heights[:first])
        while fits < len(block.rows) and used + heights[first + fits] <= room:
            used += heights[first + fits]
            fits += 1
        fits, count = max(fits, least), len(block.rows)
        parts = [Grid(block.caption, block.head, part) for part in (block.rows[:fits], block.rows[fits:])]
    else:
        return (block, None) if least else (None, block)
    return (parts[0] if fits else None, parts[1] if fits < count else None)


def _paragraph(line: str, size: float, block: Paragraphs) -> float:
    lines = lines_of(line, size, ROOM - 0.35, MONO if block.mono else PLAIN)
    return (lines * LEADING + (0.35 if block.bullets else 0)) * size / 72
