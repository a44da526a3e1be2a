"""What every drawing on a slide needs: the size of a slide, its fonts and colours, boxes of text."""

from __future__ import annotations

from typing import Any

from assay.core.errors import optional
from assay.core.names import cut, showable
from assay.report.slides.text import LEADING

WIDTH, HEIGHT = 13.333, 7.5  # inches: 16:9
LEFT, TOP, BOTTOM, GAP = 0.5, 1.25, 6.95, 0.15
ROOM = WIDTH - 2 * LEFT
FONT = "Arial"
INK, QUIET, PANEL, LINE = "1C2430", "5C6675", "F1F3F6", "C9D0D9"


class Pen:
    """Writes and paints on slides, through python-pptx."""

    def __init__(self) -> None:
        self.pptx: Any = optional("pptx", "slides", "writing slides")
        self.util: Any = optional("pptx.util", "slides", "writing slides")

    def inches(self, length: float) -> Any:
        """Convert a length in inches to the unit of the slides."""
        return self.util.Inches(length)

    def box(self, x: float, y: float, width: float, height: float) -> list[Any]:
        """Convert a place and a size in inches to the unit of the slides."""
        return [self.inches(length) for length in (x, y, width, height)]

    def rgb(self, color: str) -> Any:
        """Make a colour of six hexadecimal digits."""
        return self.pptx.dml.color.RGBColor.from_string(color)

    def fill(
        self, frame: Any, lines: list[str], size: float, color: str = INK, bold: bool = False, right: bool = False,
        center: bool = False, bullets: bool = False, font: str = FONT,
    ) -> None:  # fmt: skip
        """Write lines into a frame, each a paragraph."""
        align = self.pptx.enum.text.PP_ALIGN
        frame.word_wrap = True
        frame.margin_left = frame.margin_right = self.inches(0.05)
        frame.margin_top = frame.margin_bottom = self.inches(0.03)
        for i, line in enumerate(lines):
            paragraph = frame.paragraphs[0] if i == 0 else frame.add_paragraph()
            paragraph.alignment = align.RIGHT if right else align.CENTER if center else align.LEFT
            paragraph.line_spacing = self.util.Pt(size * LEADING)
            if bullets:
                paragraph.space_after = self.util.Pt(size * 0.35)
            run = paragraph.add_run()
            run.text = ("• " if bullets else "") + showable(line)
            run.font.size, run.font.bold, run.font.name = self.util.Pt(size), bold, font
            run.font.color.rgb = self.rgb(color)

    def text(
        self, slide: Any, x: float, y: float, w: float, h: float, lines: list[str], size: float, **how: Any
    ) -> Any:
        """Write lines into a box of their own on a slide."""
        box = slide.shapes.add_textbox(*self.box(x, y, w, h))
        self.fill(box.text_frame, lines, size, **how)
        return box

    def paint(self, shape: Any, ground: str, line: str) -> None:
        """Give a shape a colour inside and one for its border, and no shadow."""
        shape.fill.solid()
        shape.fill.fore_color.rgb = self.rgb(ground)
        shape.line.color.rgb = self.rgb(line)
        shape.line.width = self.util.Pt(1.75)
        shape.shadow.inherit = False


def describe(shape: Any, name: str, description: str) -> None:
    """Give a shape a name and an alternative text."""
    properties = shape._element.xpath("./*[1]/p:cNvPr")[0]
    properties.set("name", cut(showable(name), 120))
    properties.set("descr", cut(showable(description), 1000))
