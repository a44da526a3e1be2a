"""Slides from the blocks of a document: text that fits, native tables, pictures of charts; equal input, equal bytes."""

from __future__ import annotations

import io
import math
import re
import zipfile
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import matplotlib
from PIL import ImageFont

from assay.core.errors import optional
from assay.report.broad.figures import COLORS, picture
from assay.report.document import (
    Code,
    DotChart,
    Facts,
    Findings,
    Flow,
    Items,
    LineChart,
    Strip,
    Table,
    Text,
)

WIDTH, HEIGHT = 13.333, 7.5  # inches: 16:9
LEFT, TOP, BOTTOM, GAP = 0.5, 1.25, 6.95, 0.15
ROOM = WIDTH - 2 * LEFT
SIZES = (18, 16, 14, 13)  # of text; tables are two points smaller
FONT = "Arial"
PLAIN, BOLD, MONO = "DejaVuSans", "DejaVuSans-Bold", "DejaVuSansMono"  # the fonts in which text is measured
LEADING = 1.2  # from line to line, in sizes of the text; written into the slides, as fonts differ in their own
BOLD_TONES = ("head", "bad")
INK, QUIET, PANEL, LINE = "1C2430", "5C6675", "F1F3F6", "C9D0D9"
TONES = {"good": ("E3F3EA", "12633A"), "bad": ("FBE3E1", "9C1F18"), "open": ("FFF3D6", "6B4E00")}
_LONGEST = 260  # characters of a cell; the page has the rest


@dataclass(frozen=True)
class Editable:
    """A chart of one mark a group, as a picture and, beside it, as a chart that can be edited."""

    chart: DotChart


@dataclass(frozen=True)
class Beside:
    """Two charts side by side."""

    charts: tuple[DotChart | LineChart, ...]


@dataclass(frozen=True)
class Paragraphs:
    """Text, one paragraph a line, with or without bullets."""

    lines: tuple[str, ...]
    bullets: bool = False
    mono: bool = False


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


Drawn = Paragraphs | Grid | DotChart | LineChart | Editable | Beside | Flow


class Deck:
    """A presentation in the making.

    Args:
        title: Of the file.
        footer: On every slide.
        when: Of creation, for the file's properties.
    """

    def __init__(self, title: str, footer: str, when: datetime) -> None:
        self.pptx: Any = optional("pptx", "slides", "writing slides")
        self.util: Any = optional("pptx.util", "slides", "writing slides")
        self.footer = clean(footer)
        self.show = self.pptx.Presentation()
        self.show.slide_width, self.show.slide_height = self._inches(WIDTH), self._inches(HEIGHT)
        about = self.show.core_properties
        about.title, about.author, about.last_modified_by = clean(title)[:250], "assay", "assay"
        about.created = about.modified = about.last_printed = when
        about.revision, about.subject, about.keywords, about.comments = 1, "Broad Evaluation", "", ""

    def add(self, title: str, blocks: list[Any], notes: str) -> None:
        """One slide, or as many as its blocks need."""
        pages = _pages([_drawn(b) for b in blocks if b is not None])
        for i, (size, page) in enumerate(pages):
            more = f" ({i + 1} of {len(pages)})" if len(pages) > 1 else ""
            slide = self._slide(f"{title}{more}", notes)
            top = TOP
            for j, block in enumerate(page, 1):
                rest = sum(_least(b, size) + GAP for b in page[j:])
                top += self._draw(slide, block, top, size, BOTTOM - top - rest) + GAP

    def bytes(self) -> bytes:
        """The file."""
        for number, slide in enumerate(self.show.slides, 1):
            self._text(slide, LEFT, 7.05, ROOM - 1, 0.3, [self.footer], 10, color=QUIET)
            self._text(slide, WIDTH - LEFT - 0.9, 7.05, 0.9, 0.3, [str(number)], 10, color=QUIET, right=True)
        held = io.BytesIO()
        self.show.save(held)
        return _fixed(held.getvalue())

    def _inches(self, value: float) -> Any:
        return self.util.Inches(value)

    def _slide(self, title: str, notes: str) -> Any:
        slide = self.show.slides.add_slide(self.show.slide_layouts[5])  # title only
        head = slide.shapes.title
        head.left, head.top = self._inches(LEFT), self._inches(0.3)
        head.width, head.height = self._inches(ROOM), self._inches(0.8)
        title = _cut(clean(title), 150)
        size = next(
            (s for s in (24, 20, 18, 16) if lines_of(title, s, ROOM - 0.2, BOLD) * s * LEADING / 72 <= 0.75), 14
        )
        self._fill(head.text_frame, [title], size, bold=True)
        head.text_frame.vertical_anchor = self.pptx.enum.text.MSO_ANCHOR.MIDDLE
        slide.notes_slide.notes_text_frame.text = clean(notes)
        return slide

    def _fill(
        self, frame: Any, lines: list[str], size: float, color: str = INK, bold: bool = False, right: bool = False,
        center: bool = False, bullets: bool = False, font: str = FONT,
    ) -> None:  # fmt: skip
        align = self.pptx.enum.text.PP_ALIGN
        frame.word_wrap = True
        frame.margin_left = frame.margin_right = self._inches(0.05)
        frame.margin_top = frame.margin_bottom = self._inches(0.03)
        for i, line in enumerate(lines):
            paragraph = frame.paragraphs[0] if i == 0 else frame.add_paragraph()
            paragraph.alignment = align.RIGHT if right else align.CENTER if center else align.LEFT
            paragraph.line_spacing = self.util.Pt(size * LEADING)
            if bullets:
                paragraph.space_after = self.util.Pt(size * 0.35)
            run = paragraph.add_run()
            run.text = ("• " if bullets else "") + clean(line)
            run.font.size, run.font.bold, run.font.name = self.util.Pt(size), bold, font
            run.font.color.rgb = self.pptx.dml.color.RGBColor.from_string(color)

    def _text(
        self, slide: Any, x: float, y: float, w: float, h: float, lines: list[str], size: float, **how: Any
    ) -> Any:
        box = slide.shapes.add_textbox(*(self._inches(v) for v in (x, y, w, h)))
        self._fill(box.text_frame, lines, size, **how)
        return box

    # -- blocks -----------------------------------------------------------------------------------------

    def _draw(self, slide: Any, block: Drawn, top: float, size: float, room: float) -> float:
        """Draw a block; its height."""
        if isinstance(block, Paragraphs):
            height = _least(block, size)
            font = "Courier New" if block.mono else FONT
            self._text(slide, LEFT, top, ROOM, height, list(block.lines), size, bullets=block.bullets, font=font)
            return height
        if isinstance(block, Grid):
            return self._grid(slide, block, top, size - 2)
        if isinstance(block, Flow):
            self._flow(slide, block, top, room)
        elif isinstance(block, Editable):
            half = (ROOM - GAP) / 2
            self._picture(slide, block.chart, LEFT, top, half, room)
            self._native(slide, block.chart, LEFT + half + GAP, top, half, room)
        elif isinstance(block, Beside):
            part = (ROOM + GAP) / len(block.charts)
            for i, chart in enumerate(block.charts):
                self._text(slide, LEFT + i * part, top, part - GAP, 0.6, [chart.caption], 12, color=QUIET)
                self._picture(slide, chart, LEFT + i * part, top + 0.6, part - GAP, room - 0.6)
        else:
            self._picture(slide, block, LEFT, top, ROOM, room)
        return room

    def _picture(self, slide: Any, chart: DotChart | LineChart, x: float, y: float, w: float, h: float) -> None:
        data = io.BytesIO(picture(chart, w, h))
        shape = slide.shapes.add_picture(data, *(self._inches(v) for v in (x, y, w, h)))
        said = chart.alt if isinstance(chart, DotChart) else chart.caption
        _describe(shape, chart.caption, said)

    def _grid(self, slide: Any, grid: Grid, top: float, size: float) -> float:
        widths = _widths(grid, size)
        heights = _row_heights(grid, size, widths)
        place = [self._inches(v) for v in (LEFT, top, sum(widths), sum(heights))]
        shape = slide.shapes.add_table(len(heights), len(widths), *place)
        _describe(shape, grid.caption, grid.caption)
        table = shape.table
        table.first_row, table.horz_banding = bool(grid.head), False
        for i, width in enumerate(widths):
            table.columns[i].width = self._inches(width)
        for i, height in enumerate(heights):
            table.rows[i].height = self._inches(height)
        for i, row in enumerate(grid.lines):
            for j, (said, tone) in enumerate(row):
                ground, ink = TONES.get(tone, ("FFFFFF" if i % 2 else PANEL, INK))
                if tone == "head":
                    ground, ink = "DDE3EA", INK
                cell = table.cell(i, j)
                cell.fill.solid()
                cell.fill.fore_color.rgb = self.pptx.dml.color.RGBColor.from_string(ground)
                cell.margin_left = cell.margin_right = self._inches(0.06)
                cell.margin_top = cell.margin_bottom = self._inches(0.03)
                cell.vertical_anchor = self.pptx.enum.text.MSO_ANCHOR.MIDDLE
                paragraph = cell.text_frame.paragraphs[0]
                paragraph.line_spacing = self.util.Pt(size * LEADING)
                run = paragraph.add_run()
                run.text = said
                run.font.size, run.font.name = self.util.Pt(size), FONT
                run.font.bold = tone in BOLD_TONES
                run.font.color.rgb = self.pptx.dml.color.RGBColor.from_string(ink)
        return sum(heights)

    def _flow(self, slide: Any, flow: Flow, top: float, room: float) -> None:
        shapes = self.pptx.enum.shapes.MSO_SHAPE
        columns, deepest = len(flow.columns), max(len(boxes) for _, boxes in flow.columns)
        wide, arrow, head = ROOM / columns, 0.22, 0.45
        high = min((room - head) / deepest - arrow, 1.1)
        ours = {"ours": "0072B2", "theirs": "D55E00"}
        longest = [said for _, boxes in flow.columns for said, _ in boxes]
        fits = (
            s for s in (14, 13, 12, 11, 10, 9) if _deepest(longest, s, wide - 0.35) * s * LEADING / 72 < high - 0.06
        )
        size = next(fits, 8)
        for i, (title, boxes) in enumerate(flow.columns):
            x = LEFT + i * wide + 0.08
            self._text(slide, x, top, wide - 0.16, head, [title], 14, bold=True, center=True)
            for j, (said, whose) in enumerate(boxes):
                y = top + head + j * (high + arrow)
                if j:
                    place = (x + (wide - 0.16) / 2 - 0.1, y - arrow + 0.03, 0.2, arrow - 0.06)
                    down = slide.shapes.add_shape(shapes.DOWN_ARROW, *(self._inches(v) for v in place))
                    self._paint(down, QUIET, QUIET)
                box = slide.shapes.add_shape(
                    shapes.ROUNDED_RECTANGLE, *(self._inches(v) for v in (x, y, wide - 0.16, high))
                )
                self._paint(box, "FFFFFF" if whose else PANEL, ours.get(whose, LINE))
                self._fill(box.text_frame, [said], size, center=True)
                box.text_frame.vertical_anchor = self.pptx.enum.text.MSO_ANCHOR.MIDDLE

    def _paint(self, shape: Any, ground: str, line: str) -> None:
        rgb = self.pptx.dml.color.RGBColor.from_string
        shape.fill.solid()
        shape.fill.fore_color.rgb = rgb(ground)
        shape.line.color.rgb = rgb(line)
        shape.line.width = self.util.Pt(1.75)
        shape.shadow.inherit = False

    def _native(self, slide: Any, chart: DotChart, x: float, y: float, w: float, h: float) -> None:
        data = optional("pptx.chart.data", "slides", "writing slides").CategoryChartData(number_format="0.000")
        gone = dict(chart.absent)
        data.categories = [clean(name + (f" ({gone[i]})" if i in gone else "")) for i, name in enumerate(chart.groups)]
        marks = {m.group: m for m in chart.marks}
        values = [marks[i].value if i in marks else None for i in range(len(chart.groups))]
        data.add_series(clean(chart.value_label), values)
        kind = self.pptx.enum.chart.XL_CHART_TYPE.LINE_MARKERS
        shape = slide.shapes.add_chart(kind, *(self._inches(v) for v in (x, y, w, h)), data)
        _describe(shape, f"{chart.caption} (can be edited)", chart.alt)
        native = shape.chart
        native.has_legend = False
        native.has_title = True
        self._fill(native.chart_title.text_frame, [f"{chart.value_label} (this chart can be edited)"], 12, color=QUIET)
        native.font.size, native.font.name = self.util.Pt(10), FONT
        axis = native.value_axis
        ends = [v for m in chart.marks for v in (m.interval or (m.value, m.value))]
        axis.minimum_scale, axis.maximum_scale, axis.major_unit = _scale(min(ends), max(ends))
        axis.major_gridlines.format.line.color.rgb = self.pptx.dml.color.RGBColor.from_string(LINE)
        axis.format.line.fill.background()
        axis.tick_labels.number_format, axis.tick_labels.number_format_is_linked = "0.00", False
        series = native.plots[0].series[0]
        series.format.line.fill.background()
        series.smooth = False
        for i, mark in marks.items():
            point = series.points[i]
            point.format.line.fill.background()
            point.marker.style = self.pptx.enum.chart.XL_MARKER_STYLE.CIRCLE
            point.marker.size = 9
            point.marker.format.fill.solid()
            color = COLORS[chart.series[mark.series].color % 8].lstrip("#")
            point.marker.format.fill.fore_color.rgb = self.pptx.dml.color.RGBColor.from_string(color)
            point.marker.format.line.fill.background()
        _error_bars(series, [marks.get(i) for i in range(len(chart.groups))])


def _error_bars(series: Any, marks: list[Any]) -> None:
    """Custom error bars, for which python-pptx has no call: c:errBars belongs just before c:cat."""
    parse = optional("pptx.oxml", "slides", "writing slides").parse_xml

    def literal(tag: str, reach: list[float | None]) -> str:
        points = "".join(f'<c:pt idx="{i}"><c:v>{r!r}</c:v></c:pt>' for i, r in enumerate(reach) if r is not None)
        held = f'<c:formatCode>General</c:formatCode><c:ptCount val="{len(reach)}"/>{points}'
        return f"<c:{tag}><c:numLit>{held}</c:numLit></c:{tag}>"

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
    """Ends and step of an axis in round numbers.

    >>> _scale(0.337, 0.482)
    (0.3, 0.5, 0.05)
    """
    raw = max(high - low, 1e-3) / 5
    power = 10 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw)
    return round(math.floor(low / step) * step, 9), round(math.ceil(high / step) * step, 9), round(step, 9)


# -- what is drawn --------------------------------------------------------------------------------------


def _drawn(block: Any) -> Drawn:
    """A block of a document as it is drawn on a slide."""
    if isinstance(block, Text):
        return Paragraphs((_cut(clean(block.text), 700),))
    if isinstance(block, Items):
        return Paragraphs(tuple(_cut(clean(item), 700) for item in block.items), bullets=True)
    if isinstance(block, Code):
        return Paragraphs(tuple(clean(line) for line in block.text.splitlines()), mono=True)
    if isinstance(block, Facts):
        return Grid("Facts", (), tuple(tuple((_cell(v), "") for v in row) for row in block.rows))
    if isinstance(block, Findings):
        found = ((asked, answer, tone) for tone, asked, answer in block.items)
        answers = tuple(((_cell(asked), tone), (_cell(answer, 600), "")) for asked, answer, tone in found)
        return Grid("Findings", ("question", "answer"), answers)
    if isinstance(block, Strip):
        shown = tuple(
            ((_cell(name), ""), *((_cell(said), tone) for said, tone, _ in cells)) for name, cells in block.rows
        )
        return Grid(block.caption, ("", *(_cell(c) for c in block.columns)), shown)
    if isinstance(block, Table):
        head = tuple(_cell(column) for column in block.frame.columns)
        shown = tuple(tuple((_cell(v), "") for v in row) for row in block.frame.itertuples(index=False))
        return Grid(block.caption, head, shown)
    if isinstance(block, (DotChart, LineChart, Editable, Beside, Flow)):
        return block
    raise TypeError(f"no way to draw a {type(block).__name__} on a slide")


def _pages(blocks: list[Drawn]) -> list[tuple[float, list[Drawn]]]:
    """Blocks by slide, with the size of their text: the largest at which all fit on one, else as many as needed."""
    room = BOTTOM - TOP
    for size in SIZES:
        if sum(_least(b, size) + GAP for b in blocks) - GAP <= room:
            return [(size, blocks)]
    least = _filled(blocks, SIZES[-1], room)
    for share in (0.5, 0.6, 0.7, 0.8, 0.9):  # as many slides as it takes, filled alike
        if len(pages := _filled(blocks, SIZES[-1], room * share)) == len(least):
            return [(SIZES[-1], page) for page in pages]
    return [(SIZES[-1], page) for page in least]


def _filled(blocks: list[Drawn], size: float, room: float) -> list[list[Drawn]]:
    """Blocks by slide, each filled up to this height before the next."""
    pages: list[list[Drawn]] = [[]]
    left = room
    waiting = list(blocks)
    while waiting:
        block = waiting.pop(0)
        if _least(block, size) <= left:
            pages[-1].append(block)
            left -= _least(block, size) + GAP
            continue
        now, later = _split(block, size, left, least=0 if pages[-1] else 1)
        if now is not None:
            pages[-1].append(now)
        pages.append([])
        left = room
        if later is not None:
            waiting.insert(0, later)
    return [page for page in pages if page]


def _least(block: Drawn, size: float) -> float:
    """The least height a block needs, in inches."""
    if isinstance(block, Paragraphs):
        return sum(_paragraph(line, size, block) for line in block.lines) + 0.1
    if isinstance(block, Grid):
        return sum(_row_heights(block, size - 2, _widths(block, size - 2)))
    return 4.0


def _split(block: Drawn, size: float, room: float, least: int) -> tuple[Drawn | None, Drawn | None]:
    """The part of a block that fits, of at least so many rows, and the rest."""
    if isinstance(block, Paragraphs):
        fits, used = 0, 0.1
        while fits < len(block.lines) and used + _paragraph(block.lines[fits], size, block) <= room:
            used += _paragraph(block.lines[fits], size, block)
            fits += 1
        fits, count = max(fits, least), len(block.lines)
        made: list[Drawn] = [
            Paragraphs(part, block.bullets, block.mono) for part in (block.lines[:fits], block.lines[fits:])
        ]
    elif isinstance(block, Grid):
        heights = _row_heights(block, size - 2, _widths(block, size - 2))
        first = len(heights) - len(block.rows)
        fits, used = 0, sum(heights[:first])
        while fits < len(block.rows) and used + heights[first + fits] <= room:
            used += heights[first + fits]
            fits += 1
        fits, count = max(fits, least), len(block.rows)
        made = [Grid(block.caption, block.head, part) for part in (block.rows[:fits], block.rows[fits:])]
    else:
        return (block, None) if least else (None, block)
    return (made[0] if fits else None, made[1] if fits < count else None)


def _paragraph(line: str, size: float, block: Paragraphs) -> float:
    lines = lines_of(line, size, ROOM - 0.35, MONO if block.mono else PLAIN)
    return (lines * LEADING + (0.35 if block.bullets else 0)) * size / 72


def _widths(grid: Grid, size: float) -> list[float]:
    """Columns as wide as their text where there is room; otherwise the widest give way, to one common width."""
    columns = zip(*grid.lines, strict=True)
    natural = [max(_inches_of(said, size, _face(tone)) for said, tone in column) + 0.22 for column in columns]
    if sum(natural) <= ROOM:
        return [w * ROOM / sum(natural) for w in natural] if sum(natural) > 0.6 * ROOM else natural
    low, high = 0.0, max(natural)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if sum(min(w, middle) for w in natural) > ROOM else (middle, high)
    return [min(w, low) for w in natural]


def _face(tone: str) -> str:
    """The font in which a cell of this tone is measured."""
    return BOLD if tone in BOLD_TONES else PLAIN


def _row_heights(grid: Grid, size: float, widths: list[float]) -> list[float]:
    found = []
    for row in grid.lines:
        cells = zip(row, widths, strict=True)
        deepest = max(lines_of(said, size, w - 0.14, _face(tone)) for (said, tone), w in cells)
        found.append(deepest * size * LEADING / 72 + 0.1)
    return found


# -- text -----------------------------------------------------------------------------------------------


@cache
def _font(face: str) -> Any:
    return ImageFont.truetype(
        f"{matplotlib.get_data_path()}/fonts/ttf/{face}.ttf", 100, layout_engine=ImageFont.Layout.BASIC
    )


@cache
def _inches_of(text: str, size: float, face: str = PLAIN) -> float:
    """Width of a line in DejaVu, the widest font that a machine without Arial puts in its place."""
    return float(_font(face).getlength(text)) / 100 * size / 72


def lines_of(text: str, size: float, width: float, face: str = PLAIN) -> int:
    """Lines a text takes at this size (points) and width (inches); words too long for a line are broken.

    >>> lines_of("one", 12, 2.0), lines_of("one two three four five six", 12, 1.0) > 1
    (1, True)
    """
    width = max(width, 0.1)
    total = 0
    for line in text.split("\n"):
        lines, used = 1, 0.0
        for word in line.split(" "):
            wide = _inches_of(f"{word} ", size, face)
            if used and used + wide > width:
                lines, used = lines + 1, 0.0
            extra = int(wide / width)
            lines, used = lines + extra, used + wide - extra * width
        total += lines
    return total


def _deepest(texts: list[str], size: float, width: float) -> int:
    return max(lines_of(text, size, width) for text in texts)


def clean(text: str) -> str:
    """Text that XML can hold: control characters and halves of characters are replaced.

    >>> clean("red: \\x1b[31m")
    'red: �[31m'
    """
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]", "�", text)


def _cell(value: Any, most: int = _LONGEST) -> str:
    if isinstance(value, float):
        return "–" if value != value else f"{value:.3f}"
    return _cut(clean(str(value)).replace("\n", " "), most)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _describe(shape: Any, name: str, said: str) -> None:
    """Name and alternative text."""
    properties = shape._element.xpath("./*[1]/p:cNvPr")[0]
    properties.set("name", _cut(clean(name), 120))
    properties.set("descr", _cut(clean(said), 1000))


def _fixed(data: bytes) -> bytes:
    """A zip file without the time at which it was made, inside and out."""
    held = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            content = old.read(entry)
            if entry.filename.endswith(".xlsx"):
                content = _xlsx_without_time(content)
            info = zipfile.ZipInfo(entry.filename, (1980, 1, 1, 0, 0, 0))
            info.compress_type, info.create_system, info.external_attr = zipfile.ZIP_DEFLATED, 3, 0o600 << 16
            new.writestr(info, content)
    return held.getvalue()


def _xlsx_without_time(data: bytes) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            content = old.read(entry)
            if entry.filename == "docProps/core.xml":
                content = re.sub(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", b"1980-01-01T00:00:00Z", content)
            info = zipfile.ZipInfo(entry.filename, (1980, 1, 1, 0, 0, 0))
            info.compress_type, info.create_system = zipfile.ZIP_DEFLATED, 3
            new.writestr(info, content)
    return held.getvalue()
