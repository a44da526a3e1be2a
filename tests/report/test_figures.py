from __future__ import annotations

from dataclasses import replace

import pytest

from assay.report.broad.charts import forest, grand_means
from assay.report.broad.evaluation import Evaluation
from assay.report.figures import picture
from broad_report_kit import make_evaluation


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_evaluation(tmp_path_factory.mktemp("broad") / "evaluation")


def test_the_same_chart_gives_the_same_picture(folder):
    e = Evaluation(folder)
    chart = grand_means(e, e.tasks[0])
    assert picture(chart, 4, 3) == picture(chart, 4, 3)


def test_names_of_rows_are_whole_where_a_chart_is_wide(folder, monkeypatch):
    e = Evaluation(folder)
    chart = forest(e, e.tasks[0])
    long = "6 v 3 · Rectifier denoising autoencoder"
    chart = replace(chart, groups=(long, *chart.groups[1:]))
    drawn = []
    monkeypatch.setattr("assay.report.figures.as_png", drawn.append)
    for width in (6.0, 12.3):
        picture(chart, width, 4.0, text_pt=14.0)
    names = [figure.axes[0].get_yticklabels()[0].get_text() for figure in drawn]
    assert names == ["6 v 3 · Rectifier denoising autoe…", long]
