"""The small charts over depth on the first screen show what the numbers beside them are."""

from __future__ import annotations

import numpy as np
import pandas as pd

from assay.report.profiles import profile


def layers(held_out, **columns):
    table = pd.DataFrame({"subject": "net", "layer": ["a", "b", "c"], "score": [20.0, 19.0, 18.0], **columns})
    ends = {"held_out_low": np.array(held_out) - 1, "held_out_high": np.array(held_out) + 1}
    return table.assign(held_out=held_out, **ends)


def test_held_out_scores_are_drawn_with_their_interval_and_the_layers_without_are_counted():
    chart = profile("invariance: roll", layers([19.5, 17.0, np.nan]), "score")
    ((_, points),) = chart.lines
    assert [(point.y, point.band) for point in points] == [(19.5, (18.5, 20.5)), (17.0, (16.0, 18.0))]
    assert chart.y_label == "score, held out" and chart.caption == "invariance: roll (1 layer without a held-out score)"


def test_where_nothing_is_held_out_the_axis_says_so():
    chart = profile("invariance: roll", layers([np.nan] * 3), "score")
    assert [point.y for point in chart.lines[0][1]] == [20.0, 19.0, 18.0]
    assert chart.y_label == "score, not held out" and chart.caption == "invariance: roll"
    plain = profile("mine", layers([19.5, 17.0, 16.0])[["subject", "layer", "score"]], "score")
    assert plain.y_label == "score" and plain.lines[0][1][0].y == 20.0
