"""How things look in a notebook: a small table of what they are."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape


def facts_as_html(title: str, facts: Mapping[str, object]) -> str:
    """A title and a table of names and values as HTML, every string escaped.

    Example:
        >>> facts_as_html("net", {"layers": 3})
        '<b>net</b><table><tr><th style="text-align:left">layers</th><td style="text-align:left">3</td></tr></table>'
    """
    left = ' style="text-align:left"'
    rows = (f"<tr><th{left}>{escape(k)}</th><td{left}>{escape(str(v))}</td></tr>" for k, v in facts.items())
    return f"<b>{escape(title)}</b><table>{''.join(rows)}</table>"
