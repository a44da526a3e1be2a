"""Columns of boxes on slides, with arrows from each box to the one below."""

from __future__ import annotations

from typing import Any

from assay.report.document import Flow
from assay.report.slides.pen import LEFT, LINE, PANEL, QUIET, ROOM, Pen
from assay.report.slides.text import LEADING, deepest


def draw_flow(pen: Pen, slide: Any, flow: Flow, top: float, room: float) -> None:
    """Draw columns of boxes over the width of a slide, and up to this height in inches."""
    shapes = pen.pptx.enum.shapes.MSO_SHAPE
    columns, most = len(flow.columns), max(len(boxes) for _, boxes in flow.columns)
    wide, arrow, head = ROOM / columns, 0.22, 0.45
    high = min((room - head) / most - arrow, 1.1)
    ours = {"ours": "0072B2", "theirs": "D55E00"}
    texts = [said for _, boxes in flow.columns for said, _ in boxes]
    fits = (s for s in (14, 13, 12, 11, 10, 9) if deepest(texts, s, wide - 0.35) * s * LEADING / 72 < high - 0.06)
    size = next(fits, 8)
    for i, (title, boxes) in enumerate(flow.columns):
        x = LEFT + i * wide + 0.08
        pen.text(slide, x, top, wide - 0.16, head, [title], 14, bold=True, center=True)
        for j, (said, whose) in enumerate(boxes):
            y = top + head + j * (high + arrow)
            if j:
                place = (x + (wide - 0.16) / 2 - 0.1, y - arrow + 0.03, 0.2, arrow - 0.06)
                down = slide.shapes.add_shape(shapes.DOWN_ARROW, *pen.box(*place))
                pen.paint(down, QUIET, QUIET)
            box = slide.shapes.add_shape(shapes.ROUNDED_RECTANGLE, *pen.box(x, y, wide - 0.16, high))
            pen.paint(box, "FFFFFF" if whose else PANEL, ours.get(whose, LINE))
            pen.fill(box.text_frame, [said], size, center=True)
            box.text_frame.vertical_anchor = pen.pptx.enum.text.MSO_ANCHOR.MIDDLE
