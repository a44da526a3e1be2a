"""Sections of measures of single numbers: a sentence with intervals, a chart that compares networks, the table."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import assay
from assay.report.document import DotChart, Items, Table
from assay.report.measures.section import section_of


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    rng = np.random.default_rng(0)
    data = assay.stimuli.Labelled(rng.random((40, 1, 6, 6)).astype(np.float32), np.arange(40) % 2)
    torch.manual_seed(0)
    networks = {name: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 2)) for name in ("a", "b")}
    measures = [
        assay.Norms(shape=(1, 6, 6)),
        assay.Margins(data),
        assay.Sharpness(data, draws=2, steps=5),
        assay.ClusterSeparation(data, images=20, rounds=2),
        assay.AugmentationRobustness(data),
    ]
    return assay.evaluate(networks, measures, tmp_path_factory.mktemp("numbers"))


@pytest.mark.parametrize("label", ["norms", "margins", "sharpness", "clusters", "augmentation"])
def test_every_measure_of_numbers_has_a_sentence_a_chart_and_its_table(run, label):
    blocks = section_of(label)(label, run.manifest.measures[label], run)
    (items,) = [block for block in blocks if isinstance(block, Items)]
    assert all(": a " in said or ": none for a" in said for said in items.items)
    (table,) = [block for block in blocks if isinstance(block, Table)]
    assert len(table.frame) == len(run.table(label))
    values = run.table(label).set_index(["subject", "quantity", "layer"])["value"]
    for chart in [block for block in blocks if isinstance(block, DotChart)]:
        assert [series.name for series in chart.series] == ["a", "b"]
        assert {mark.value for mark in chart.marks} <= set(values)
    assert label == "sharpness" or any(isinstance(block, DotChart) for block in blocks)
