from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from assay.core.names import showable
from assay.report.broad import text
from assay.report.document import Items, Text
from assay.report.slides.pages import SIZES, Paragraphs, drawn, least_height, pages
from assay.report.slides.pen import BOTTOM, GAP, ROOM, TOP
from assay.report.slides.tables import Grid, across, column_widths

LINES = st.text(st.characters(exclude_categories=()), max_size=400)


@settings(max_examples=30)
@given(st.lists(st.tuples(LINES, LINES), min_size=1, max_size=40), st.lists(LINES, max_size=12))
def test_pages_keep_everything_in_order_and_within_the_slide(pairs, lines):
    rows = tuple(((showable(a), ""), (showable(b), "good")) for a, b in pairs)
    blocks = [Paragraphs(tuple(map(showable, lines)), bullets=True)] if lines else []
    filled = pages([*blocks, Grid("g", ("a", "b"), rows)])
    shown = [row for _, page in filled for block in page if isinstance(block, Grid) for row in block.rows]
    said = [line for _, page in filled for block in page if isinstance(block, Paragraphs) for line in block.lines]
    assert shown == list(rows) and said == list(map(showable, lines))
    for size, page in filled:
        pieces = sum(len(b.rows if isinstance(b, Grid) else b.lines) for b in page)
        needed = sum(least_height(b, size) + GAP for b in page) - GAP
        assert needed <= BOTTOM - TOP + 1e-9 or pieces == 1
        for block in page:
            if isinstance(block, Grid):
                assert sum(column_widths(block, size - 2)) <= ROOM + 1e-6


def test_a_table_too_wide_for_a_slide_is_split_by_columns_and_each_part_tells_rows_apart():
    head = ("contrast", "team", *(f"{'long' * 3}-named-{i}" for i in range(14)))
    rows = tuple(tuple((text, "") for text in ("6 v 3", team, *map(str, range(14)))) for team in ("north", "south"))
    parts = across(Grid("wide", head, rows), 14)
    assert len(parts) > 1 and all(part.head[:2] == ("contrast", "team") for part in parts)
    assert [name for part in parts for name in part.head[2:]] == list(head[2:])
    assert all(sum(column_widths(part, 14)) <= ROOM + 1e-6 for part in parts)


def test_a_paragraph_is_cut_only_where_a_slide_cannot_hold_it():
    paragraphs = (*text.STATISTICS, *text.CLAIMS, text.PROTOCOL)
    said = drawn(Items(paragraphs))
    assert said.lines == tuple(paragraph.replace(" %", "\u00a0%") for paragraph in paragraphs)
    for endless in ("word " * 2000, "W" * 5000, "漢" * 5000, "\n" * 5000):
        block = drawn(Text(endless))
        assert block.lines[0].endswith("…") and least_height(block, SIZES[-1]) <= BOTTOM - TOP
