"""The page on known networks says what its tables say, and its plan can be followed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pandas as pd
import pytest

from assay import load_plan
from conftest import need

FOLDER = Path(__file__).parents[2] / "reproductions" / "human-model-similarity-2018"


@pytest.fixture
def networks(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module("networks")
    sys.modules.pop("networks", None)


@pytest.fixture
def layers():
    return pd.read_csv(FOLDER / "tables" / "networks.csv", keep_default_na=False, na_values=["nan", ""]).fillna(
        {"subject": ""}
    )


def test_the_summary_and_the_page_follow_from_the_table_of_layers(networks, layers):
    summary = networks.markdown(networks.brief(layers))
    page = (FOLDER / "README.md").read_text()
    assert summary == (FOLDER / "tables" / "networks.md").read_text() and summary in page
    of_layers = layers[layers.kind == "layer"]
    untrained = of_layers[of_layers.subject == "ResNet-20, untrained"]
    shared = layers[layers.subject == ""].set_index("layer")
    assert (untrained.low <= shared.hms["pixels"]).all()
    best = of_layers.loc[of_layers.subject_mean.idxmax()]
    assert f"{best.subject_mean:.3f} ({best.subject_low:.3f} to {best.subject_high:.3f})" in page.replace("\n  ", " ")
    assert of_layers.hms.max() < shared.hms["animacy"] and f"in EfficientNet-Lite0, {of_layers.hms.max():.3f}" in page
    blocks = of_layers[of_layers.layer.str.fullmatch(r"_blocks\.\d+")].hms.tolist()
    assert all(0.13 < hms < 0.22 for hms in blocks[:11]) and all(0.36 < hms < 0.40 for hms in blocks[11:15])
    for network in ("ResNet-20, CIFAR-10", "ResNet-56, CIFAR-10"):
        own = of_layers[of_layers.subject == network]
        assert own.hms.idxmax() == own.index[-1]


def test_reference_values_are_in_the_table(layers):
    shared = layers[layers.subject == ""].set_index("layer")
    assert shared.hms["pixels"] == pytest.approx(0.1065, abs=5e-5)
    assert shared.hms["animacy"] == pytest.approx(0.58819, abs=5e-6)
    assert shared.subject_mean[["lower bound", "upper bound"]].tolist() == pytest.approx([0.37231, 0.66572], abs=5e-6)


@pytest.mark.slow
def test_the_plan_loads_and_fits_its_networks(shared_data):
    need(importlib.util.find_spec("efficientnet_lite_pytorch") is not None, "the package efficientnet_lite_pytorch")
    need(importlib.util.find_spec("onnx") is not None, "the package onnx")
    plan = load_plan(FOLDER / "networks.yaml")
    (measure,) = plan.measures.values()
    for subject in plan.load_subjects():
        measure.check(subject)
        assert len(subject.layers) >= 2
