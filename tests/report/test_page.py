"""The page of a run of measures in a real browser: how long it is, its shared legend, and many networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import assay
from assay.report import write_report
from assay.report.many import MANY
from assay.stimuli import Family, Gratings, Images, Labelled, ParametricTest, Sequences
from page_kit import open_page

LAPTOP, SCREEN = 1366, 768
NAMES = ("standard", "adversarially trained (PGD)", "augmented", "untrained twin", "a network with a long name, seed 3")


def network(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(108, 3))


@pytest.fixture(scope="module")
def five_by_ten(tmp_path_factory):
    """Five networks under ten measures, each of the kind that people ask for."""
    rng = np.random.default_rng(0)
    data = Labelled(rng.random((30, 1, 8, 8)).astype(np.float32), np.arange(30) % 3, "noise")
    clips = Sequences.of(**{f"clip {i}": rng.random((4, 1, 8, 8)).astype(np.float32) for i in range(4)})
    turned = ParametricTest(Images(data.inputs), (Family("rotation", (-20, 0, 20)),))
    response = assay.PerturbationResponse
    measures = {
        "norms": assay.Norms(shape=(1, 8, 8)),
        "straightness": assay.Straightness(clips + clips.pixel_fade()),
        "invariance to gratings": assay.Invariance(Gratings(8, orientations=6, phases=6), units="centre", bootstrap=50),
        "invariance to rotation": assay.Invariance(turned, firing_rate=0.1, units="centre", bootstrap=50),
        "margins": assay.Margins(data),
        "augmentation": assay.AugmentationRobustness(data),
        "sharpness": assay.Sharpness(data, draws=2, steps=4),
        "clusters": assay.ClusterSeparation(data, images=10),
        "perturbation": response(data, ("intra", "noise"), magnitudes=5),
        "perturbation of layer 1": response(data, "intra", 1, magnitudes=5),
    }
    subjects = [assay.Subject(network(i), name) for i, name in enumerate(NAMES)]
    return assay.evaluate(subjects, measures, tmp_path_factory.mktemp("five") / "run")


@dataclass(frozen=True)
class Weights(assay.Measure):
    """The mean size of the weights of each layer."""

    name: ClassVar[str] = "weights"
    value: ClassVar[str] = "size"

    def __call__(self, subject: assay.Subject) -> pd.DataFrame:
        weights = subject.module.named_parameters()
        return pd.DataFrame([{"layer": name, "size": float(w.detach().abs().mean())} for name, w in weights])


@dataclass(frozen=True)
class Largest(assay.Measure):
    """The largest weight."""

    name: ClassVar[str] = "largest"
    value: ClassVar[str] = "weight"

    def __call__(self, subject: assay.Subject) -> pd.DataFrame:
        return pd.DataFrame({"weight": [max(float(w.detach().abs().max()) for w in subject.module.parameters())]})


@pytest.fixture(scope="module")
def hundred(tmp_path_factory):
    subjects = []
    for i in range(100):
        torch.manual_seed(i)
        subjects.append(assay.Subject(nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)), f"network {i}"))
    with torch.no_grad():
        subjects[50].module[0].weight.mul_(50)
    return assay.evaluate(subjects, [Weights(), Largest(), assay.Norms(shape=(4,))], tmp_path_factory.mktemp("many"))


def test_five_networks_by_ten_measures_take_less_than_six_screens(browser, five_by_ten):
    assert not five_by_ten.failures and len(five_by_ten.keys) == 50
    path = write_report(five_by_ten)
    page = open_page(browser, path, LAPTOP)
    assert page.problems == []
    assert page.evaluate("document.documentElement.scrollHeight") < 6 * SCREEN
    page.context.close()
    page = open_page(browser, path, 390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.context.close()


def test_the_charts_of_a_grid_share_a_legend_and_its_colours(browser, five_by_ten):
    page = open_page(browser, write_report(five_by_ten), LAPTOP)
    grid = page.locator("figure.charts")
    charts = grid.locator("figure.chart").count()
    assert charts > 3 and grid.locator(".legend").count() == 1 and grid.locator(".tip").count() == 1
    assert grid.locator(".legend button").count() == len(NAMES)
    colours = page.evaluate(
        "[...document.querySelectorAll('figure.charts path.path')].map(p => p.dataset.line + p.getAttribute('stroke'))"
    )
    assert len(set(colours)) == len(NAMES)
    grid.locator(".legend button").filter(has_text="untrained twin").click()
    assert grid.locator("path.path[data-line='untrained twin']").count() == 0
    assert grid.locator("path.path[data-line='standard']").count() == charts
    page.context.close()


def test_of_a_hundred_networks_the_spread_and_those_apart_are_drawn(browser, hundred):
    page = open_page(browser, write_report(hundred), LAPTOP)
    assert page.problems == []
    lines = page.evaluate(
        "[...document.querySelectorAll('figure.chart')].map(f => f.querySelectorAll('svg path.path').length)"
    )
    assert lines and max(lines) <= MANY
    assert page.locator("path.path[data-line='median of 100 networks']").count() >= 1
    assert page.locator("path.path[data-line='network 50']").count() >= 1
    assert page.evaluate("document.documentElement.scrollHeight") < 6 * SCREEN
    page.context.close()


def test_a_printed_page_opens_what_is_folded_and_cuts_nothing_off(browser, five_by_ten):
    page = open_page(browser, write_report(five_by_ten), LAPTOP)
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 700, "height": 1000})  # a page of A4 within its margins
    assert page.locator("figure.table").filter(has_text="All numbers of norms").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 700
    wide = page.evaluate(
        "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1)"
        ".map(e => e.closest('figure').querySelector('figcaption').textContent)"
    )
    assert wide == []
    page.context.close()
