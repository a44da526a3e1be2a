"""Runs and measures draw themselves with the charts of the report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch

import assay
from assay import AssayError
from assay.stimuli import Labelled, Sequences

RANDOM = np.random.default_rng(0)
CLIPS = Sequences.of(noise=RANDOM.random((5, 1, 6, 6)), other=RANDOM.random((5, 1, 6, 6)))
DATA = Labelled(RANDOM.random((24, 1, 6, 6)).astype(np.float32), np.arange(24) % 2)


@dataclass(frozen=True)
class Weights(assay.Measure):
    """The number of weights: a measure that the report does not know, without layers."""

    name: ClassVar[str] = "weights-of-a-test"
    value: ClassVar[str] = "weights"

    def __call__(self, subject: assay.Subject) -> pd.DataFrame:
        return pd.DataFrame([{"weights": sum(p.numel() for p in subject.module.parameters())}])


@dataclass(frozen=True)
class Silent(assay.Measure):
    """A measure that the report does not know, with a value for every layer."""

    name: ClassVar[str] = "silent-of-a-test"
    value: ClassVar[str] = "silent"

    def __call__(self, subject: assay.Subject) -> pd.DataFrame:
        shares = {k: float((v == 0).float().mean()) for k, v in subject.record(DATA.shown()).items()}
        return pd.DataFrame([{"layer": layer, "silent": share} for layer, share in shares.items()])


def network(seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))


MEASURES = {
    "straightness": assay.Straightness(CLIPS),
    "margins": assay.Margins(DATA),
    "perturbation": assay.PerturbationResponse(DATA),
    "weights": Weights(),
    "silent": Silent(),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    networks = {"one": network(1), "two": network(2)}
    return assay.evaluate(networks, MEASURES, tmp_path_factory.mktemp("plots"))


@pytest.mark.parametrize("measure", MEASURES)
def test_every_measure_of_a_run_is_drawn(run, measure):
    plot = run.plot(measure)
    png, shown = plot._repr_png_()
    assert png.startswith(b"\x89PNG") and shown["width"] > 200
    assert plot.captions and repr(plot).startswith("Plot(") and "\n" not in repr(plot)
    legends = [text.get_text() for part in plot.figure.subfigs for each in part.legends for text in each.get_texts()]
    labels = [text.get_text() for part in plot.figure.subfigs for text in part.axes[0].get_yticklabels()]
    assert {"one", "two"} <= {*legends, *labels}


def test_a_measure_draws_its_own_tables_as_a_run_does(run):
    measure = MEASURES["straightness"]
    of_run, of_table = run.plot("straightness"), measure.plot(run.table("straightness"))
    assert of_run._repr_png_() == of_table._repr_png_()
    one, two = measure(network(1)), measure(network(2))
    assert measure.plot({"one": one, "two": two})._repr_png_() == of_run._repr_png_()
    assert measure.plot(one).captions == of_run.captions


def test_a_measure_that_the_report_does_not_know_is_drawn_too(run):
    assert run.plot("silent").captions == ("silent",)
    assert Silent().plot(Silent()(network(1))).captions == ("silent-of-a-test",)
    assert "weights-of-a-test" in Weights().plot(run.table("weights")).captions[0]


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_plots_are_saved_in_the_format_of_the_file_name(run, ending, tmp_path):
    path = run.plot("weights").save(tmp_path / f"plot.{ending}")
    assert path.read_bytes()[:5] in (b"\x89PNG\r", b"<?xml", b"%PDF-")


def test_plots_that_cannot_be_made_say_why(run, tmp_path):
    with pytest.raises(AssayError, match="name the measure to plot, of: straightness, margins"):
        run.plot()
    with pytest.raises(AssayError, match="no measure 'margin'; did you mean 'margins'"):
        run.plot("margin")
    with pytest.raises(AssayError, match=r"plot\.docx"):
        run.plot("weights").save(tmp_path / "plot.docx")
    with pytest.raises(AssayError, match="table has no rows"):
        MEASURES["margins"].plot(pd.DataFrame())
    with pytest.raises(AssayError, match="table=3"):
        MEASURES["margins"].plot(3)
    failed = assay.evaluate(network(1), assay.Norms(), tmp_path / "failed")
    with pytest.raises(AssayError, match="no cell of the measure 'norms' is done"):
        failed.plot()


def test_a_report_is_written_where_it_is_asked_for_and_shown_in_a_frame(run, tmp_path):
    page = run.report(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == page.html and page.path.endswith("page.html")
    assert page._repr_html_().startswith('<iframe srcdoc="') and "<script" not in page._repr_html_()
    assert page.html not in repr(page) and run.report().path.endswith("report.html")
    with pytest.raises(AssayError, match="is a folder"):
        run.report(tmp_path)
