"""A user's own measure gets by itself a chart, sentences and a table to read, whatever its table is like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import assay
from assay.report import document, html
from assay.report.document import ChartGrid, DotChart, Items, LineChart, Table
from assay.report.measures.section import section_of


@dataclass(frozen=True)
class ByLayer(assay.Measure):
    """A number for each layer."""

    name: ClassVar[str] = "by-layer"
    value: ClassVar[str] = "silent"

    def __call__(self, subject: assay.Subject) -> pd.DataFrame:
        recorded = subject.record(torch.ones(4, 6))
        return pd.DataFrame([{"layer": k, "silent": float((v == 0).float().mean())} for k, v in recorded.items()])


@dataclass(frozen=True)
class Undeclared(assay.Measure):
    """Several numbers for each layer, and no word which column counts."""

    name: ClassVar[str] = "undeclared"

    def __call__(self, subject: assay.Subject) -> pd.DataFrame:
        recorded = subject.record(torch.ones(4, 6))
        rows = [(layer, u, float(v)) for layer, out in recorded.items() for u, v in enumerate(out[0])]
        return pd.DataFrame(rows, columns=["layer", "unit", "response"])


@dataclass(frozen=True)
class OfArrays(assay.Measure):
    """Arrays in columns."""

    name: ClassVar[str] = "of-arrays"
    value: ClassVar[str] = "mean"

    def __call__(self, subject: assay.Subject) -> pd.DataFrame:
        rows = []
        for layer, out in subject.record(torch.ones(4, 6)).items():
            whole = out.numpy().astype(np.float64)
            columns = {"all": whole.ravel(), "grid": whole, "tensor": out, "words": ["a"] * 50, "long": "x" * 5000}
            rows.append({"layer": layer, "mean": whole.mean(), **columns})
        return pd.DataFrame(rows)


@dataclass(frozen=True)
class Scalar(assay.Measure):
    """One number."""

    name: ClassVar[str] = "scalar"
    value: ClassVar[str] = "parameters"

    def __call__(self, subject: assay.Subject) -> pd.DataFrame:
        count = float(sum(p.numel() for p in subject.module.parameters()))
        return pd.DataFrame({"parameters": [count], "low": [count - 1], "high": [count + 1]})


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    torch.manual_seed(0)
    networks = {name: nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 2)) for name in ("a", "b")}
    return assay.evaluate(networks, [ByLayer(), Undeclared(), OfArrays(), Scalar()], tmp_path_factory.mktemp("own"))


def blocks(run, label: str, kind: type) -> list:
    record = run.manifest.measures[label]
    return [block for block in section_of(record.measure)(label, record, run) if isinstance(block, kind)]


@pytest.mark.parametrize(
    ("label", "value"), [("by-layer", "silent"), ("undeclared", "response"), ("of-arrays", "mean")]
)
def test_numbers_of_layers_are_a_line_for_each_network(run, label, value):
    (chart,) = blocks(run, label, LineChart)
    assert [name for name, _ in chart.lines] == ["a", "b"] and chart.y_label == value
    expected = run.table(label).groupby(["subject", "layer"], sort=False)[value].mean()
    for name, points in chart.lines:
        np.testing.assert_allclose([p.y for p in points], expected[name])
        assert [p.label for p in points] == ["0", "1", "2"]


def test_one_number_is_a_mark_for_each_network_and_a_sentence(run):
    (chart,) = blocks(run, "scalar", DotChart)
    assert [(m.value, m.interval) for m in chart.marks] == [(47.0, (46.0, 48.0))] * 2
    (items,) = blocks(run, "scalar", Items)
    assert items.items == ("Scalar: a 47, b 47.",)


def test_arrays_are_a_few_words(run):
    (table,) = blocks(run, "of-arrays", Table)
    first = table.frame.iloc[0]
    assert first["all"].startswith("20 numbers, ") and first["grid"].startswith("4 × 5 numbers, ")
    assert first["tensor"].startswith("4 × 5 numbers, ")
    assert first["words"] == "50 entries" and len(first["long"]) == 300
    assert max(len(str(v)) for v in table.frame.drop(columns="long").to_numpy().ravel()) < 40


def test_own_measures_are_on_the_first_screen(run):
    made = document(run)
    (grid,) = [b for b in made.sections[0].blocks if isinstance(b, ChartGrid)]
    assert [chart.caption for chart in grid.charts] == ["by-layer", "undeclared", "of-arrays"]
    assert "x" * 400 not in html(made)
