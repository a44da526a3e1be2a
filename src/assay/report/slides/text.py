"""How many lines a text takes on a slide, and how it is cut to fit."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import matplotlib
from PIL import ImageFont

from assay.core.names import cut, showable

PLAIN, BOLD, MONO = "DejaVuSans", "DejaVuSans-Bold", "DejaVuSansMono"  # the fonts in which text is measured
LEADING = 1.2  # distance of lines in sizes of the text; written into the slides, because fonts have different defaults
WORDS = 25  # of a cell at most; the notes have the whole text
_LONGEST = 260  # characters of a cell at most


@cache
def _font(face: str) -> Any:
    return ImageFont.truetype(
        f"{matplotlib.get_data_path()}/fonts/ttf/{face}.ttf", 100, layout_engine=ImageFont.Layout.BASIC
    )


@cache
def inches_of(text: str, size: float, face: str = PLAIN) -> float:
    """Width of a line in inches, in DejaVu: the widest font that a machine without Arial puts in its place."""
    return float(_font(face).getlength(text)) / 100 * size / 72


def lines_of(text: str, size: float, width: float, face: str = PLAIN) -> int:
    """Number of lines a text takes at this size (points) and width (inches); words too long for a line are broken.

    >>> lines_of("one", 12, 2.0), lines_of("one two three four five six", 12, 1.0) > 1
    (1, True)
    """
    width = max(width, 0.1)
    total = 0
    for line in text.split("\n"):
        lines, used = 1, 0.0
        for word in line.split(" "):
            wide = inches_of(f"{word} ", size, face)
            if used and used + wide > width:
                lines, used = lines + 1, 0.0
            extra = int(wide / width)
            lines, used = lines + extra, used + wide - extra * width
        total += lines
    return total


def deepest(texts: list[str], size: float, width: float) -> int:
    """Number of lines that the longest of these texts takes at this size and width."""
    return max(lines_of(text, size, width) for text in texts)


def longest_word(text: str, size: float, face: str = PLAIN) -> float:
    """Width in inches of the widest word of a text, which a column needs so that no word is broken."""
    return max(inches_of(word, size, face) for word in re.split(r"[ \t\n]", text))


def whole_text(value: Any) -> str:
    """Write a value as text of one line, however long.

    >>> whole_text(0.12345), whole_text(float("nan")), whole_text("two\\nlines")
    ('0.123', '–', 'two lines')
    """
    if isinstance(value, float):
        return "–" if value != value else f"{value:.3f}"
    return showable(str(value)).replace("\n", " ")


def cell_text(value: Any) -> str:
    """Write a value as a cell shows it: on one line, and cut to the words and characters that a cell may have.

    >>> cell_text("word " * 30).count("word"), cell_text("x" * 300)[-3:]
    (25, 'xx…')
    """
    text = re.sub(r"\b(\d) v (\d)\b", "\\1\u00a0v\u00a0\\2", whole_text(value))  # contrasts stay on one line
    words = text.split()
    return cut(text if len(words) <= WORDS else " ".join(words[:WORDS]) + "…", _LONGEST)
