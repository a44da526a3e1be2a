"""Tables on slides: as wide as their text where there is room, each row as high as its deepest cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assay.report.slides.pen import FONT, INK, LEFT, PANEL, ROOM, Pen, describe
from assay.report.slides.text import BOLD, LEADING, PLAIN, inches_of, lines_of

BOLD_TONES = ("head", "bad")
TONES = {"good": ("E3F3EA", "12633A"), "bad": ("FBE3E1", "9C1F18"), "open": ("FFF3D6", "6B4E00")}


@dataclass(frozen=True)
class Grid:
    """A table as it is drawn: names of the columns, if they have any, and cells with their tone."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[tuple[str, str], ...], ...]

    @property
    def lines(self) -> list[tuple[tuple[str, str], ...]]:
        """All rows, the names of the columns first."""
        return [*([tuple((name, "head") for name in self.head)] if self.head else []), *self.rows]


def column_widths(grid: Grid, size: float) -> list[float]:
    """Widths of the columns: those of their text if there is room; otherwise the widest shrink to one common width."""
    columns = zip(*grid.lines, strict=True)
    natural = [max(inches_of(text, size, _face(tone)) for text, tone in column) + 0.22 for column in columns]
    if sum(natural) <= ROOM:
        return [w * ROOM / sum(natural) for w in natural] if sum(natural) > 0.6 * ROOM else natural
    low, high = 0.0, max(natural)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if sum(min(w, middle) for w in natural) > ROOM else (middle, high)
    return [min(w, low) for w in natural]


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
