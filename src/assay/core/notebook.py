"""How things look in a notebook: small tables of what they are, and a row of pictures."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from html import escape

_LEFT = ' style="text-align:left"'


def facts_as_html(title: str, facts: Mapping[str, object]) -> str:
    """A title and a table of names and values as HTML, every string escaped.

    Example:
        >>> facts_as_html("net", {"layers": 3})
        '<b>net</b><table><tr><th style="text-align:left">layers</th><td style="text-align:left">3</td></tr></table>'
    """
    rows = (f"<tr><th{_LEFT}>{escape(k)}</th><td{_LEFT}>{escape(str(v))}</td></tr>" for k, v in facts.items())
    return f"<b>{escape(title)}</b><table>{''.join(rows)}</table>"


def table_as_html(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with a line of headings as HTML, every string escaped; lines break in the first column only.

    Example:
        >>> table_as_html(["a<b"], [["yes"]])
        '<table><tr><th style="text-align:left">a&lt;b</th></tr><tr><td style="text-align:left">yes</td></tr></table>'
    """
    head = "".join(f"<th{_LEFT}>{escape(name)}</th>" for name in columns)
    unbroken = ' style="text-align:left;white-space:nowrap"'
    body = (
        "".join(f"<td{unbroken if i else _LEFT}>{escape(value)}</td>" for i, value in enumerate(row)) for row in rows
    )
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{cells}</tr>' for cells in body)}</table>"


def pictures_as_html(pictures: Iterable[tuple[str, bytes]]) -> str:
    """A row of small pictures (PNG), each over its caption, as HTML; empty where there are none.

    Example:
        >>> pictures_as_html([]), pictures_as_html([("cat", b"PNG")]).count("cat")
        ('', 2)
    """
    items = "".join(
        f'<figure style="margin:0"><img alt="{escape(caption)}" src="data:image/png;base64,{b64encode(png).decode()}" '
        f'style="height:64px;image-rendering:pixelated"><figcaption>{escape(caption)}</figcaption></figure>'
        for caption, png in pictures
    )
    return f'<div style="display:flex;flex-wrap:wrap;gap:10px;margin-top:6px">{items}</div>' if items else ""
