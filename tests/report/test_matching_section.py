"""Object matching in reports and notebooks."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import assay
from assay.report.measures.matching import section
from assay.stimuli import novel_objects


@pytest.fixture(scope="module")
def measure():
    return assay.ObjectMatching(novel_objects(count=4, size=12, changes=1), trials=3)


def networks():
    torch.manual_seed(0)
    return [
        assay.Subject(nn.Flatten(), "pixels"),
        assay.Subject(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten()), "network"),
    ]


def test_a_report_shows_the_accuracy_by_factor_beside_chance(measure, tmp_path):
    run = assay.evaluate(networks(), measure, run=tmp_path / "run")
    text, items, chart, table = section("matching", run.manifest.measures["matching"], run)
    assert "gallery of 4 pictures" in text.text and "Chance is 0.25" in text.text
    assert any("bject matching" in item for item in items.items)
    assert chart.groups == ("rotation", "light", "color", "mix", "all") and chart.reference == 0.25
    assert len(chart.marks) == 10 and len(table.frame) == 10
    run.report(tmp_path / "report.html")
    assert "Accuracy by what changed" in (tmp_path / "report.html").read_text()


def test_a_notebook_draws_it(measure):
    tables = {subject.name: measure(subject) for subject in networks()}
    assert measure.plot(tables)._repr_png_()[0].startswith(b"\x89PNG")


def test_a_network_without_an_accuracy_has_the_reason_in_the_table(measure, tmp_path):
    class Silent(nn.Module):
        def forward(self, x):
            return x.flatten(1) * 0

    run = assay.evaluate([assay.Subject(Silent(), "silent")], measure, run=tmp_path / "run")
    *_, chart, table = section("matching", run.manifest.measures["matching"], run)
    assert not chart.marks and chart.absent[0] == (0, "0 for 20 of 20 pictures")
    assert set(table.frame["status"]) == {"0 for 20 of 20 pictures"}
