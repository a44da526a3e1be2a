from __future__ import annotations

import pytest

from assay import AssayError, Straightness, evaluate
from assay.runs.compare import compare
from measure_kit import Slow, sequences, subjects


def test_differences_by_column_and_where_the_largest_is(tmp_path):
    a = evaluate(subjects(2), Slow(), tmp_path / "a")
    b = evaluate(subjects(2), Slow(scale=1.5), tmp_path / "b")
    (row,) = compare(a, b).itertuples()
    largest = (0.5 * a.table("slow").value).abs()
    assert row.largest_difference == pytest.approx(largest.max()) and row.differs and row.rows == 20
    assert row.where.startswith(a.table("slow").subject[largest.idxmax()])
    assert not compare(a, b, tolerance=float(largest.max()) * 1.01).differs.any()
    assert not compare(a, a).differs.any()


def test_rows_and_measures_without_a_match_are_differences(tmp_path):
    a = evaluate(subjects(2), [Slow(), Straightness(sequences())], tmp_path / "a")
    b = evaluate(subjects(1), Slow(), tmp_path / "b")
    table = compare(a, b, tolerance=1e9).set_index("measure")
    assert table.loc["slow", "rows_in_one_only"] == 10 and table.loc["slow", "differs"]
    assert table.loc["straightness", "differs"] and table.loc["straightness", "where"].startswith("only in")


def test_runs_without_a_measure_in_common_cannot_be_compared(tmp_path):
    a = evaluate(subjects(1), {"x": Slow()}, tmp_path / "a")
    b = evaluate(subjects(1), {"y": Slow()}, tmp_path / "b")
    with pytest.raises(AssayError, match="share no measure"):
        compare(a, b)
