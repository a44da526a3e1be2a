"""Slides from the blocks of a document: text that fits, native tables, pictures of charts; equal input, equal bytes."""

from __future__ import annotations

import io
from datetime import datetime
from typing import Any

from assay.core.names import cut, showable
from assay.report.document import Flow
from assay.report.slides.archive import without_times
from assay.report.slides.flows import draw_flow
from assay.report.slides.pages import Beside, Drawn, Editable, Paragraphs, drawn, least_height, pages
from assay.report.slides.pen import BOTTOM, FONT, GAP, HEIGHT, LEFT, QUIET, ROOM, TOP, WIDTH, Pen
from assay.report.slides.pictures import draw_chart, draw_editable
from assay.report.slides.tables import Grid, draw_table
from assay.report.slides.text import BOLD, LEADING, deepest, lines_of

CAPTION_PT = 14  # size of the captions of charts that stand side by side


class Deck:
    """A presentation to which slides are added.

    Args:
        title: Title of the file.
        footer: Text at the foot of every slide.
        when: Time of creation, for the file's properties.
    """

    def __init__(self, title: str, footer: str, when: datetime) -> None:
        self.pen = Pen()
        self.footer = showable(footer)
        self.show: Any = self.pen.pptx.Presentation()
        self.show.slide_width = self.pen.inches(WIDTH)
        self.show.slide_height = self.pen.inches(HEIGHT)
        properties = self.show.core_properties
        properties.title = showable(title)[:250]
        properties.author = "assay"
        properties.last_modified_by = "assay"
        properties.created = properties.modified = properties.last_printed = when
        properties.revision = 1
        properties.subject = "Broad Evaluation"
        properties.keywords = ""
        properties.comments = ""

    def add(self, title: str, blocks: list[Any], notes: str) -> None:
        """Add a slide with this title, these blocks and these notes, or as many slides as the blocks need.

        The notes also have the whole text of every cell that is cut.
        """
        all_drawn = [drawn(b) for b in blocks if b is not None]
        beyond = [text for block in all_drawn if isinstance(block, Grid) for text in block.beyond]
        notes = "\n".join([notes, *(["In full:", *beyond] if beyond else [])])
        layout = pages(all_drawn)
        for i, (size, page) in enumerate(layout):
            number = f" ({i + 1} of {len(layout)})" if len(layout) > 1 else ""
            slide = self._slide(f"{title}{number}", notes)
            top = TOP
            for j, block in enumerate(page, 1):
                below = sum(least_height(b, size) + GAP for b in page[j:])
                top += self._draw(slide, block, top, size, BOTTOM - top - below) + GAP

    def bytes(self) -> bytes:
        """The presentation as the bytes of a file, with footers and page numbers."""
        for number, slide in enumerate(self.show.slides, 1):
            self.pen.text(slide, LEFT, 7.05, ROOM - 1, 0.3, [self.footer], 10, color=QUIET)
            self.pen.text(slide, WIDTH - LEFT - 0.9, 7.05, 0.9, 0.3, [str(number)], 10, color=QUIET, right=True)
        buffer = io.BytesIO()
        self.show.save(buffer)
        return without_times(buffer.getvalue())

    def _slide(self, title: str, notes: str) -> Any:
        slide = self.show.slides.add_slide(self.show.slide_layouts[5])  # title only
        head = slide.shapes.title
        head.left, head.top = self.pen.inches(LEFT), self.pen.inches(0.3)
        head.width, head.height = self.pen.inches(ROOM), self.pen.inches(0.8)
        title = cut(showable(title), 150)
        size = next(
            (s for s in (24, 20, 18, 16) if lines_of(title, s, ROOM - 0.2, BOLD) * s * LEADING / 72 <= 0.75), 14
        )
        self.pen.fill(head.text_frame, [title], size, bold=True)
        head.text_frame.vertical_anchor = self.pen.pptx.enum.text.MSO_ANCHOR.MIDDLE
        slide.notes_slide.notes_text_frame.text = showable(notes)
        return slide

    def _draw(self, slide: Any, block: Drawn, top: float, size: float, room: float) -> float:
        """Draw a block at this distance from the top; return its height in inches."""
        if isinstance(block, Paragraphs):
            height = least_height(block, size)
            font = "Courier New" if block.mono else FONT
            self.pen.text(slide, LEFT, top, ROOM, height, list(block.lines), size, bullets=block.bullets, font=font)
            return height
        if isinstance(block, Grid):
            return draw_table(self.pen, slide, block, top, size - 2)
        if isinstance(block, Flow):
            draw_flow(self.pen, slide, block, top, room)
        elif isinstance(block, Editable):
            half = (ROOM - GAP) / 2
            draw_chart(self.pen, slide, block.chart, LEFT, top, half, room)
            draw_editable(self.pen, slide, block.chart, LEFT + half + GAP, top, half, room)
        elif isinstance(block, Beside):
            part = (ROOM + GAP) / len(block.charts)
            captions = [chart.caption for chart in block.charts]
            above = deepest(captions, CAPTION_PT, part - GAP - 0.15) * CAPTION_PT * LEADING / 72 + 0.1
            for i, chart in enumerate(block.charts):
                x = LEFT + i * part
                self.pen.text(slide, x, top, part - GAP, above, [chart.caption], CAPTION_PT, color=QUIET)
                draw_chart(self.pen, slide, chart, x, top + above, part - GAP, room - above)
        else:
            draw_chart(self.pen, slide, block, LEFT, top, ROOM, room)
        return room
