"""Learning curves and layers: every point is named after the run it is of, also where another run has no result."""

from __future__ import annotations

import pytest

from assay.report.broad.evaluation import Evaluation
from assay.report.broad.figures import layer_contributions, learning_curves
from broad_report_kit import make_evaluation


@pytest.fixture
def evaluation(tmp_path):
    return Evaluation(make_evaluation(tmp_path / "run", teams=1, text=False))


def points(chart) -> list[tuple[float, str]]:
    assert chart is not None
    ((_, line),) = chart.lines
    return [(point.x, point.label) for point in line]


def test_layers_are_in_order_and_the_last_is_the_run_itself(evaluation):
    (video,) = evaluation.tasks
    assert points(layer_contributions(evaluation, video)) == [
        (0.0, "layer 1 of 3"), (0.5, "layer 2 of 3"), (1.0, "layer 3 of 3"),
    ]  # fmt: skip
    assert points(learning_curves(evaluation, video)) == [
        (0.0, "0% of the data"), (0.3, "30% of the data"), (1.0, "100% of the data"),
    ]  # fmt: skip


def test_a_layer_without_a_result_does_not_rename_the_others(evaluation):
    (video,) = evaluation.tasks
    extra = evaluation.tables["extra"]
    evaluation.tables["extra"] = extra[extra["run"] != "6n.layer1"]
    assert points(layer_contributions(evaluation, video)) == [(0.5, "layer 2 of 3"), (1.0, "layer 3 of 3")]
