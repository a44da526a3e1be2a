"""Slides read back: their titles, their cells, and whether all of them lies inside."""

from __future__ import annotations

import io


def opened(data: bytes):
    import pptx

    return pptx.Presentation(io.BytesIO(data))


def titles(show) -> list[str]:
    return [slide.shapes.title.text_frame.text for slide in show.slides]


def cells(show) -> list[str]:
    return [c.text for s in show.slides for f in s.shapes if f.has_table for row in f.table.rows for c in row.cells]


def require_inside(show) -> None:
    for number, slide in enumerate(show.slides, 1):
        for shape in slide.shapes:
            assert shape.left >= 0 and shape.top >= 0, (number, shape.name)
            assert shape.left + shape.width <= show.slide_width, (number, shape.name)
            assert shape.top + shape.height <= show.slide_height, (number, shape.name)
