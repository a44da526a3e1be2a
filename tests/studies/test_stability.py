"""When metrics are stable, and how far networks of one configuration are apart."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from torch import nn

from assay import AssayError
from assay.studies import Outcome, by_epoch, stable_epochs, stop_when_converged, when_stable
from assay.training import LiveMeasure, Moment, StopWhenConverged


def trajectory(network, values, every=5):
    return pd.DataFrame({"network": network, "epoch": every * np.arange(1, len(values) + 1), "hms": values})


def test_a_step_is_stable_a_window_after_it():
    table = pd.concat([trajectory("step", [0.0] * 3 + [1.0] * 9), trajectory("noise", np.tile([0.0, 1.0], 6))])
    found = stable_epochs(table, ["hms"]).set_index("network")
    assert found["stable_epoch"]["step"] == 45  # the step is at epoch 20, and the window reaches 25 epochs back
    assert np.isnan(found["stable_epoch"]["noise"]) and found["last_epoch"]["noise"] == 60
    loose = stable_epochs(table, ["hms"], sd=1.0)
    assert (loose["stable_epoch"] == 30).all()


def test_networks_that_never_become_stable_count_as_late():
    epochs = [30.0, 40.0, 50.0, np.nan, np.nan]
    stable = pd.DataFrame({"network": list("abcde"), "metric": "hms", "stable_epoch": epochs})
    row = when_stable(stable).iloc[0]
    assert row.median_epoch == 50 and row.mean_epoch == 40 and row.share_stable == 0.6
    assert row.low == 30 and np.isinf(row.high)
    never = when_stable(stable.assign(stable_epoch=np.nan)).iloc[0]
    assert np.isinf(never.median_epoch) and np.isnan(never.mean_epoch) and never.share_stable == 0


def test_the_order_of_rows_and_missing_values_do_not_matter():
    table = trajectory("a", [0.0] * 3 + [1.0] * 9)
    gaps = pd.concat([table, pd.DataFrame({"network": "a", "epoch": [2, 7], "hms": np.nan})])
    shuffled = gaps.sample(frac=1, random_state=0)
    assert stable_epochs(shuffled, ["hms"])["stable_epoch"].item() == 45


def test_a_measurement_that_failed_is_not_stable_live_or_afterwards():
    values = [0.1, 0.1, *[np.nan] * 4, *[0.1] * 14]
    live = StopWhenConverged(LiveMeasure(lambda module: values[len(live.live.values)], every=5))
    answers = [live(Moment(epoch, epoch, 0.0, 0.0, nn.Identity())) for epoch in range(1, 101)]
    table = trajectory("a", values).assign(accuracy=0.5)
    assert stable_epochs(table, ["hms"])["stable_epoch"].item() == answers.index(True) + 1 == 60
    assert stop_when_converged(table, "hms", Outcome("accuracy"))["stop_epoch"].item() == 60


def test_a_metric_measured_more_seldom_than_others_is_judged_where_it_is_measured():
    every_5, every_1 = trajectory("a", [0.1] * 12), pd.DataFrame({"epoch": range(1, 61), "loss": 0.5})
    joined = every_1.merge(every_5, on="epoch", how="left").assign(network="a")
    found = stable_epochs(joined, ["hms", "loss"]).set_index("metric")["stable_epoch"]
    assert found["hms"] == 30 and found["loss"] == 26


def test_parts_of_epochs_are_stable_and_stopped_at_too():
    epochs = 0.5 + 2.5 * np.arange(20)
    table = pd.DataFrame({"network": "a", "epoch": epochs, "hms": [0.0, 0.1, *[0.2] * 18], "accuracy": epochs})
    assert stable_epochs(table, ["hms"])["stable_epoch"].item() == 30.5
    assert stop_when_converged(table, "hms", Outcome("accuracy"))["performance"].item() == 30.5


def test_infinite_values_are_not_stable():
    assert np.isnan(stable_epochs(trajectory("a", [0.1] * 4 + [np.inf] * 9), ["hms"])["stable_epoch"].item())


def test_mean_and_sd_over_networks_by_epoch():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(6, 4))
    table = pd.concat([trajectory(str(i), row) for i, row in enumerate(values)])
    found = by_epoch(table, ["hms"])
    assert np.allclose(found["mean"], values.mean(0)) and np.allclose(found["sd"], values.std(0, ddof=1))
    half = 2.570582 * values.std(0, ddof=1) / np.sqrt(6)  # Student's quantile of 5 degrees of freedom
    assert np.allclose(found["high"], values.mean(0) + half, atol=1e-5) and (found["n"] == 6).all()


def test_what_is_wrong_is_said():
    table = trajectory("a", [0.1, 0.2])
    with pytest.raises(AssayError, match="no column 'network'"):
        stable_epochs(table.drop(columns="network"), ["hms"])
    with pytest.raises(AssayError, match=r"no column 'hmss'.*hms"):
        by_epoch(table, ["hmss"])
    with pytest.raises(AssayError, match="'a' has several rows of epoch 5"):
        stable_epochs(pd.concat([table, table]), ["hms"])
    with pytest.raises(AssayError, match="no rows"):
        stable_epochs(table[:0], ["hms"])
    with pytest.raises(AssayError, match="window=0"):
        stable_epochs(table, ["hms"], window=0)
