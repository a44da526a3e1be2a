from __future__ import annotations

import importlib.util
from datetime import datetime

import pandas as pd
import pytest

from assay.report.document import Items, Table, Text
from assay.report.slides.deck import Deck
from conftest import need
from slides_kit import cells, opened, require_inside, titles

pytestmark = pytest.mark.slides


@pytest.fixture(scope="module", autouse=True)
def _pptx():
    need(importlib.util.find_spec("pptx") is not None, "the package python-pptx")


def test_a_long_table_is_split_over_slides_and_loses_no_row():
    deck = Deck("t", "f", datetime(2026, 1, 1))
    frame = pd.DataFrame({"name": [f"row {i}" for i in range(150)], "text": ["word " * (i % 40) for i in range(150)]})
    deck.add("Long", [Text("Before it."), Table("long", frame)], "notes")
    show = opened(deck.bytes())
    assert len(show.slides) > 3 and titles(show)[0] == f"Long (1 of {len(show.slides)})"
    require_inside(show)
    assert [c for c in cells(show) if c.startswith("row ")] == frame["name"].tolist()


def test_any_text_can_be_written_and_read_again():
    deck = Deck("\x00 title", "footer \ud800", datetime(2026, 1, 1))
    deck.add(
        "bell \x07 & <b>",
        [Items(("\x1b[31mred", "tab\tand\nline")), Table("t\x0b", pd.DataFrame({"\x01": ["\uffff"]}))],
        "\x02",
    )
    show = opened(deck.bytes())
    assert titles(show) == ["bell � & <b>"]
    require_inside(show)
