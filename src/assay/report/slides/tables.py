"""Tables on slides: as wide as their text where there is room, each row as high as its deepest cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assay.report.slides.pen import FONT, INK, LEFT, PANEL, ROOM, Pen, describe
from assay.report.slides.text import BOLD, LEADING, PLAIN, inches_of, lines_of, longest_word

BOLD_TONES = ("head", "bad")
PADDING = 0.22  # inches of a column beside its text
_LONG_WORD = 1.6  # inches; a longer word of a cell, such as a path, may be broken
TONES = {"good": ("E3F3EA", "12633A"), "bad": ("FBE3E1", "9C1F18"), "open": ("FFF3D6", "6B4E00")}


@dataclass(frozen=True)
class Grid:
    """A table as it is drawn.

    Args:
        caption: What the table shows.
        head: Names of the columns; none for a table of names and values.
        rows: The cells, each with its text and its tone.
        beyond: Whole texts of the cells that are cut, for the notes.
    """

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[tuple[str, str], ...], ...]
    beyond: tuple[str, ...] = ()

    @property
    def lines(self) -> list[tuple[tuple[str, str], ...]]:
        """All rows, the names of the columns first."""
        return [*([tuple((name, "head") for name in self.head)] if self.head else []), *self.rows]


def column_widths(grid: Grid, size: float) -> list[float]:
    """Widths of the columns: those of their text if there is room; otherwise the widest shrink to one common width.

    No column becomes narrower than the longest word of its name, as long as all of them fit (`across` sees to that).
    """
    columns = zip(*grid.lines, strict=True)
    natural = [max(inches_of(text, size, _face(tone)) for text, tone in column) + PADDING for column in columns]
    if sum(natural) <= ROOM:
        return [w * ROOM / sum(natural) for w in natural] if sum(natural) > 0.6 * ROOM else natural
    least = least_widths(grid, size)
    if sum(least) > ROOM:
        return [w * ROOM / sum(least) for w in least]
    low, high = 0.0, max(natural)
    for _ in range(40):
        middle = (low + high) / 2
        needed = sum(max(low_end, min(w, middle)) for w, low_end in zip(natural, least, strict=True))
        low, high = (low, middle) if needed > ROOM else (middle, high)
    return [max(low_end, min(w, low)) for w, low_end in zip(natural, least, strict=True)]


def least_widths(grid: Grid, size: float) -> list[float]:
    """The widths that columns need so that no word of their names is broken, nor any but a very long one of a cell."""
    widths = []
    for column in zip(*grid.lines, strict=True):
        names = [longest_word(text, size, BOLD) for text, tone in column if tone == "head"]
        words = [longest_word(text, size, _face(tone)) for text, tone in column if tone != "head"]
        widths.append(max(*names, min(max(words, default=0.0), _LONG_WORD), 0.3) + PADDING)
    return widths


def across(grid: Grid, size: float) -> list[Grid]:
    """Split a table whose columns do not fit beside each other; each part has the columns that tell rows apart."""
    widths = least_widths(grid, size)
    if sum(widths) <= ROOM or not grid.head:
        return [grid]
    keys = next((k for k in (1, 2) if len({row[:k] for row in grid.rows}) == len(grid.rows)), 1)
    parts: list[list[int]] = [[]]
    for i in range(keys, len(widths)):
        if parts[-1] and sum(widths[j] for j in (*range(keys), *parts[-1], i)) > ROOM:
            parts.append([])
        parts[-1].append(i)
    columns = [(*range(keys), *part) for part in parts]
    return [
        Grid(grid.caption, tuple(grid.head[i] for i in part), tuple(tuple(row[i] for i in part) for row in grid.rows))
        for part in columns
    ]


def row_heights(grid: Grid, size: float, widths: list[float]) -> list[float]:
    """The height that each row needs, in inches, with columns of these widths."""
    heights = []
    for row in grid.lines:
        cells = zip(row, widths, strict=True)
        deepest = max(lines_of(text, size, w - 0.14, _face(tone)) for (text, tone), w in cells)
        heights.append(deepest * size * LEADING / 72 + 0.1)
    return heights


def _face(tone: str) -> str:
    """The font in which a cell of this tone is measured."""
    return BOLD if tone in BOLD_TONES else PLAIN


def draw_table(pen: Pen, slide: Any, grid: Grid, top: float, size: float) -> float:
    """Draw a table over the width of a slide; return its height in inches."""
    widths = column_widths(grid, size)
    heights = row_heights(grid, size, widths)
    shape = slide.shapes.add_table(len(heights), len(widths), *pen.box(LEFT, top, sum(widths), sum(heights)))
    describe(shape, grid.caption, grid.caption)
    table = shape.table
    table.first_row = bool(grid.head)
    table.horz_banding = False
    for i, width in enumerate(widths):
        table.columns[i].width = pen.inches(width)
    for i, height in enumerate(heights):
        table.rows[i].height = pen.inches(height)
    for i, row in enumerate(grid.lines):
        for j, (text, tone) in enumerate(row):
            ground, ink = TONES.get(tone, ("FFFFFF" if i % 2 else PANEL, INK))
            if tone == "head":
                ground, ink = "DDE3EA", INK
            cell = table.cell(i, j)
            cell.fill.solid()
            cell.fill.fore_color.rgb = pen.rgb(ground)
            cell.margin_left = cell.margin_right = pen.inches(0.06)
            cell.margin_top = cell.margin_bottom = pen.inches(0.03)
            cell.vertical_anchor = pen.pptx.enum.text.MSO_ANCHOR.MIDDLE
            paragraph = cell.text_frame.paragraphs[0]
            paragraph.line_spacing = pen.util.Pt(size * LEADING)
            run = paragraph.add_run()
            run.text = text
            run.font.size, run.font.name = pen.util.Pt(size), FONT
            run.font.bold = tone in BOLD_TONES
            run.font.color.rgb = pen.rgb(ink)
    return sum(heights)
