"""The charts of a broad evaluation hold the numbers of its analysis, each named after the run it is of."""

from __future__ import annotations

import re

import numpy as np
import pytest

from assay.broad.run.results import DONE
from assay.report.broad.charts import forest, grand_means, layer_contributions, learning_curves, per_class, per_fold
from assay.report.broad.evaluation import Evaluation
from assay.report.broad.tables import contrasts_table
from broad_report_kit import RATINGS, K, make_evaluation


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_evaluation(tmp_path_factory.mktemp("broad") / "evaluation")


@pytest.fixture
def e(folder):
    return Evaluation(folder)


def task(e, name):
    return next(t for t in e.tasks if t.name == name)


@pytest.mark.requirement("H2", "H3", "M4")
def test_the_three_graphs_hold_the_numbers_of_the_analysis(e):
    values, by_fold, grand = (e.tables[n] for n in ("values", "by_fold", "grand"))
    for name in ("video", "text"):
        t = task(e, name)
        good = [run for run in t.runs if e.status(t, run)[0] in DONE]
        one, two, three = per_class(e, t), per_fold(e, t), grand_means(e, t)
        assert len(one.marks) == len(good) * len(t.labels) * K
        for mark in one.marks[:: len(one.marks) // 7]:
            fold = int(re.search(r"fold (\d+)", mark.detail)[1])
            row = values[
                (values.task == name) & (values.run == t.runs[mark.series]) & (values.label == t.labels[mark.group])
                & (values.fold == fold)
            ]  # fmt: skip
            assert mark.value == row.value.item()
        assert len(two.marks) == len(good) * K and two.groups == tuple(f"fold {i}" for i in range(1, K + 1))
        for mark in two.marks[::9]:
            row = by_fold[
                (by_fold.task == name) & (by_fold.run == t.runs[mark.series]) & (by_fold.fold == mark.group + 1)
            ]
            np.testing.assert_allclose(
                [mark.value, *mark.interval], [*row["mean"], *row["mean"] - row.se, *row["mean"] + row.se]
            )
        assert [t.runs[m.group] for m in three.marks] == good
        for mark in three.marks:
            row = grand[(grand.task == name) & (grand.run == t.runs[mark.group])]
            np.testing.assert_allclose([mark.value, mark.interval[1] - mark.value], [*row["mean"], *row.se])


def test_the_forest_plot_and_its_table_hold_all_contrasts_and_say_which_have_none(e):
    t = task(e, "video")
    rows = e.tables["contrasts"][e.tables["contrasts"].task == "video"].reset_index(drop=True)
    chart, table = forest(e, t), contrasts_table(e, t)
    assert len(chart.groups) == len(rows) == len(table.frame) and chart.reference == 0
    for mark in chart.marks:
        assert (mark.value, *mark.interval) == tuple(rows.loc[mark.group, ["difference", "low", "high"]])
    without = rows.index[rows.difference.isna()].tolist()
    assert [group for group, _ in chart.absent] == without and len(without) == 3, "6 v 3, 1 v 3 and 3 v 4 of one team"
    assert set(table.frame.loc[without, "difference"]) == {"undecided"}
    assert {"plan rule", "p (Holm)", "not inferior", "smallest detectable"} <= set(table.frame)
    assert all("run 3s has no predictions" in why for why in table.frame.loc[without, "why"])


@pytest.mark.requirement("L1")
def test_learning_curves_start_at_random_weights_and_layers_end_at_the_run_itself(e):
    t = task(e, "video")
    extra = e.tables["extra"].set_index(["task", "run"])["mean"]
    whole = e.tables["grand"].set_index(["task", "run"])["mean"]
    ((team, points),) = learning_curves(e, t).lines
    assert team == e.teams["s"] and [p.x for p in points] == [0.0, 0.3, 1.0]
    assert [p.y for p in points] == [extra["video", "6s.share0"], extra["video", "6s.share0.3"], whole["video", "6s"]]
    ((_, points),) = layer_contributions(e, t).lines
    assert [p.y for p in points] == [extra["video", "6s.layer1"], extra["video", "6s.layer2"], whole["video", "6s"]]
    ((_, points),) = learning_curves(e, task(e, "text")).lines
    expected = np.mean([extra[f"text:{r}", "6s.share0"] for r in RATINGS])
    np.testing.assert_allclose(points[0].y, expected)
    grand = e.tables["grand"].set_index(["task", "run"])["se"]
    assert all(point.band is not None for point in points), "folds of all ratings together have a standard error too"
    np.testing.assert_allclose(points[-1].band[1] - points[-1].y, grand["text", "6s"])


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
