"""Sections of measures of single numbers: a sentence with intervals, a chart that compares networks, the table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import assay
from assay.report.document import DotChart, Items, Table
from assay.report.measures.section import section_of
from assay.stats.differences import interval

PAST = ("distance", "margin-bounds", "pac-bayes", "training-speed")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    rng = np.random.default_rng(0)
    data = assay.stimuli.Labelled(rng.random((40, 1, 6, 6)).astype(np.float32), np.arange(40) % 2)
    torch.manual_seed(0)
    past: dict[str, Any] = {
        "initial_weights": {"1.weight": torch.zeros(2, 36), "1.bias": torch.zeros(2)},
        "history": pd.DataFrame({"loss": [1.0, 0.1, 0.01]}),
    }
    networks = [
        assay.Subject(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 2)), name, **past) for name in "ab"
    ]
    state = networks[0].module.state_dict()
    networks[1].module.load_state_dict({name: 1.5 * tensor for name, tensor in state.items()})
    with torch.no_grad():  # both decide alike; some of the inputs are far from the boundary
        scores = networks[0].module(torch.tensor(data.inputs))
    sure = (scores[:, 0] - scores[:, 1]).abs().numpy() > 0.1
    fitted = assay.stimuli.Labelled(data.inputs[sure], scores.argmax(1).numpy()[sure])
    measures = [
        assay.Norms(shape=(1, 6, 6)),
        assay.Margins(data),
        assay.Sharpness(data, draws=2, steps=5),
        assay.ClusterSeparation(data, images=20, rounds=2),
        assay.AugmentationRobustness(data),
        assay.InitialDistance(shape=(1, 6, 6)),
        assay.MarginBounds(fitted),
        assay.PacBayes(fitted, draws=2, steps=8),
        assay.TrainingSpeed(),
    ]
    return assay.evaluate(networks, measures, tmp_path_factory.mktemp("numbers"))


@pytest.mark.parametrize("label", ["norms", "margins", "sharpness", "clusters", "augmentation", *PAST])
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


def section_blocks(run, label):
    blocks = section_of(label)(label, run.manifest.measures[label], run)
    (chart,) = [block for block in blocks if isinstance(block, DotChart)]
    (table,) = [block for block in blocks if isinstance(block, Table)]
    return chart, table.frame


@pytest.mark.parametrize("label", ["margins", "clusters"])
def test_a_number_has_the_interval_of_its_sentence_in_the_table_too(run, label):
    _, table = section_blocks(run, label)
    for subject, numbers in run.evidence(label).items():
        for number in numbers:
            (row,) = table[
                (table.subject == subject) & (table.value == number.value) & (table.n == number.n)
            ].itertuples()
            assert (row.low, row.high) == interval(number)


def test_margins_show_the_median_between_the_percentiles(run):
    chart, _ = section_blocks(run, "margins")
    assert chart.groups == ("percentile 1", "percentile 10", "median", "percentile 90")


def test_a_caption_speaks_of_intervals_and_of_a_comparison_only_where_there_are_any(run, tmp_path):
    assert section_blocks(run, "margins")[0].caption == "margins: networks compared (bars: 95 % intervals)"
    assert section_blocks(run, "norms")[0].caption == "norms: networks compared"
    alone = assay.evaluate({"a": torch.nn.Linear(4, 2)}, assay.Norms(shape=(4,)), tmp_path)
    assert section_blocks(alone, "norms")[0].caption == "norms of a"
