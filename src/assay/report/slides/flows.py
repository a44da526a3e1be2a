"""Columns of boxes on slides, with arrows from each box to the one below."""

from __future__ import annotations

from typing import Any

from assay.report.document import Flow
from assay.report.slides.pen import LEFT, LINE, PANEL, QUIET, ROOM, Pen
from assay.report.slides.text import LEADING, deepest


def draw_flow(pen: Pen, slide: Any, flow: Flow, top: float, room: float) -> None:
    """Draw columns of boxes over the width of a slide, and up to this height in inches."""
    shapes = pen.pptx.enum.shapes.MSO_SHAPE
    most = max(len(boxes) for _, boxes in flow.columns)
    width = ROOM / len(flow.columns)
    arrow = 0.22
    head = 0.45
    height = min((room - head) / most - arrow, 1.1)
    border_colors = {"ours": "0072B2", "theirs": "D55E00"}
    texts = [text for _, boxes in flow.columns for text, _ in boxes]
    fitting = (s for s in (14, 13, 12, 11, 10, 9) if deepest(texts, s, width - 0.35) * s * LEADING / 72 < height - 0.06)
    size = next(fitting, 8)
    for i, (title, boxes) in enumerate(flow.columns):
        x = LEFT + i * width + 0.08
        pen.text(slide, x, top, width - 0.16, head, [title], 14, bold=True, center=True)
        for j, (text, whose) in enumerate(boxes):
            y = top + head + j * (height + arrow)
            if j:
                place = pen.box(x + (width - 0.16) / 2 - 0.1, y - arrow + 0.03, 0.2, arrow - 0.06)
                pen.paint(slide.shapes.add_shape(shapes.DOWN_ARROW, *place), QUIET, QUIET)
            box = slide.shapes.add_shape(shapes.ROUNDED_RECTANGLE, *pen.box(x, y, width - 0.16, height))
            pen.paint(box, "FFFFFF" if whose else PANEL, border_colors.get(whose, LINE))
            pen.fill(box.text_frame, [text], size, center=True)
            box.text_frame.vertical_anchor = pen.pptx.enum.text.MSO_ANCHOR.MIDDLE
