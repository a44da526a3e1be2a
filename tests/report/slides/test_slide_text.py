from __future__ import annotations

from assay.report.slides.text import inches_of, lines_of


def test_words_are_broken_where_they_do_not_fit():
    assert lines_of("", 12, 3) == 1 and lines_of("a\nb", 12, 3) == 2
    wide = inches_of("x" * 100, 12)
    assert lines_of("x" * 100, 12, wide / 4) in (4, 5)
