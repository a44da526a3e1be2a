from __future__ import annotations

import pytest

from assay.report.broad.charts import grand_means
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
