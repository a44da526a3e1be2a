from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch

from assay import AssayError, Measure, PerturbationResponse, Straightness, evaluate
from assay.runs.compare import compare
from assay.stimuli import Labelled
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


def test_a_run_does_not_differ_from_itself_where_settings_are_floating_point(tmp_path):
    rng = np.random.default_rng(0)
    data = Labelled(rng.random((12, 4), dtype=np.float32), np.arange(12) % 3)
    torch.manual_seed(0)
    network = torch.nn.Linear(4, 3)
    a = evaluate({"a": network}, PerturbationResponse(data, "noise", samples=12), tmp_path / "a")
    table = compare(a, a)
    assert not table.differs.any() and set(table.rows) == {len(a.table("perturbation"))}
    with torch.no_grad():
        network.weight.mul_(-1)
    b = evaluate({"a": network}, PerturbationResponse(data, "noise", samples=12), tmp_path / "b")
    other = compare(a, b).set_index("column")
    assert other.loc["value", "differs"] and other.loc["value", "rows_in_one_only"] == 0
    assert "magnitude" not in other.index


@dataclass(frozen=True)
class Repeated(Measure):
    """A measure whose rows only their order tells apart."""

    value: ClassVar[str] = "value"
    shift: float = 0.0

    def __call__(self, subject):
        return pd.DataFrame({"value": [1.0, 2.0 + self.shift, 1.0]})


def test_rows_that_nothing_tells_apart_are_matched_in_order(tmp_path):
    a = evaluate(subjects(1), {"m": Repeated()}, tmp_path / "a")
    b = evaluate(subjects(1), {"m": Repeated(shift=0.5)}, tmp_path / "b")
    assert not compare(a, a).differs.any()
    (row,) = compare(a, b).itertuples()
    assert row.rows == 3 and row.largest_difference == 0.5 and row.rows_in_one_only == 0


@dataclass(frozen=True)
class Arrays(Measure):
    shift: float = 0.0
    long: int = 3
    name: ClassVar[str] = "arrays"

    def __call__(self, subject):
        values = np.array([1.0, np.nan, 3.0 + self.shift])[: self.long]
        return pd.DataFrame({"layer": ["a", "b"], "values": [values, values], "words": [np.array(["x", "y"])] * 2})


def test_columns_of_arrays_are_compared_entry_by_entry(tmp_path):
    """As those of invariance with details are; they tell no rows apart."""
    a, b, c = (
        evaluate(subjects(1), measure, tmp_path / name)
        for name, measure in (("a", Arrays()), ("b", Arrays(0.5)), ("c", Arrays(long=2)))
    )
    assert not compare(a, a).differs.any()
    table = compare(a, b).set_index("column")
    assert table.loc["values", "largest_difference"] == 0.5 and table.loc["words", "largest_difference"] == 0
    assert compare(a, c).set_index("column").loc["values", "largest_difference"] == np.inf
