"""The document as one self-contained page: no network, every string escaped."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup

from assay.core.errors import AssayError
from assay.core.folder import Folder
from assay.core.names import all_showable
from assay.core.page import Page
from assay.report.document import ChartGrid, Document, DotChart, LineChart

_PAGE = resources.files("assay.report") / "page"


def html(document: Document) -> str:
    """Write a document as one self-contained HTML page."""
    document = all_showable(document)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters |= {"cell": _cell, "number": _is_number, "base64": lambda data: b64encode(data).decode()}
    environment.filters |= {"breakable": _breakable}
    environment.globals |= {"kind": lambda block: type(block).__name__}
    template = environment.from_string((_PAGE / "page.html").read_text(encoding="utf-8"))
    blocks = [block for section in document.sections for block in section.blocks]
    inside = [chart for block in blocks if isinstance(block, ChartGrid) for chart in block.charts]
    charts = [block for block in blocks if isinstance(block, (LineChart, DotChart))] + inside
    return template.render(
        document=document,
        charts=charts,
        style=Markup((_PAGE / "style.css").read_text(encoding="utf-8")),
        script=Markup((_PAGE / "chart.js").read_text(encoding="utf-8")),
        data=Markup(_script_json([asdict(chart) for chart in charts])),
        manifest=json.dumps(document.manifest, indent=2, ensure_ascii=False),
    )


def write_page(page: str, folder: Folder, path: str | Path | None = None) -> Page:
    """Write a page, and return it with its place.

    Args:
        page: The page, as HTML.
        folder: The folder of what it reports on, which gets ``report.html``.
        path: Another file to write instead, or any URL that fsspec can write to.
    """
    name = "report.html"
    if path is not None:
        place, _, name = str(path).rpartition("/")
        folder = Folder(place or ("/" if str(path).startswith("/") else "."))
        if not name or Path(path).is_dir():
            raise AssayError(f"path={str(path)!r} is a folder: name the file to write in it, such as report.html")
    folder.write(name, page.encode())
    return Page(folder.path(name), page)


def _script_json(value: Any) -> str:
    """Write a value as JSON in which no string can end the script element around it."""
    text = json.dumps(value, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _breakable(name: Any) -> Markup:
    """The name of a column, which may go on in another line after an underscore."""
    return Markup("_<wbr>").join(str(name).split("_"))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _cell(value: Any) -> str:
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, float):
        return f"{value:.3f}"
    return str(value)
