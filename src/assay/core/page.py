"""Page: a self-contained HTML page that was written to a file, and that a notebook shows in a frame."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

_HEIGHT = 640  # pixels of the frame


@dataclass(frozen=True)
class Page:
    """A self-contained HTML page that was written to a file, and that a notebook shows in a frame.

    Args:
        path: Where the page is.
        html: Its text.

    Example:
        >>> page = Page("run/report.html", "<p>nothing yet</p>")
        >>> page
        Page(path='run/report.html')
        >>> "run/report.html" in page._repr_html_()
        True
    """

    path: str
    html: str = field(repr=False)

    def __str__(self) -> str:
        return self.path

    def _repr_html_(self) -> str:
        frame = f'<iframe srcdoc="{escape(self.html)}" title="{escape(self.path)}" width="100%" height="{_HEIGHT}"'
        return f'{frame} style="border:1px solid #d9dee5;border-radius:6px"></iframe><div>{escape(self.path)}</div>'
