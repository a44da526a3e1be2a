"""What early stopping saves and loses, after the fact."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from assay import AssayError
from assay.studies import (
    Outcome,
    compare_signals,
    discard_below_population,
    discard_summary,
    matching_threshold,
    saving_tradeoff,
    stop_when_converged,
    stopping_summary,
)

MSE = Outcome("mse", better="lower", cost="seconds")


@pytest.fixture(scope="module")
def trajectories():
    """Forty networks that learn at their own pace; the signal follows the error, the loss is noise on another scale."""
    rng = np.random.default_rng(0)
    tables = []
    for number in range(40):
        epochs = np.arange(5, 155, 5)
        pace, final = rng.uniform(5, 40), rng.uniform(0.05, 0.3)
        left = np.exp(-epochs / pace)
        tables.append(
            pd.DataFrame(
                {
                    "network": f"n{number:02}",
                    "epoch": epochs,
                    "seconds": 2.0 * epochs,
                    "mse": final + left,
                    "hms": 0.2 - final / 2 - 0.3 * left,
                    "loss": 10 * left + rng.normal(0, 0.02, len(epochs)),
                }
            )
        )
    return pd.concat(tables, ignore_index=True)


def test_a_signal_that_is_constant_stops_at_the_first_window(trajectories):
    stopped = stop_when_converged(trajectories.assign(hms=0.1), "hms", MSE)
    assert (stopped["stop_epoch"] == 30).all() and stopped["stopped"].all()
    assert np.allclose(stopped["saved"], 0.8)
    at_30 = trajectories[trajectories["epoch"] == 30].set_index("network")["mse"]
    at_end = trajectories[trajectories["epoch"] == 150].set_index("network")["mse"]
    assert np.allclose(stopped.set_index("network")["lost"], at_30 - at_end)  # a higher error is a loss
    found = stopping_summary(stopped).set_index("quantity")
    assert found["value"]["time saved"] == pytest.approx(0.8) and found["low"]["time saved"] == pytest.approx(0.8)
    assert found["value"]["performance lost"] == pytest.approx((at_30 - at_end).mean())
    assert found["low"]["performance lost"] < found["value"]["performance lost"] < found["high"]["performance lost"]


def test_a_signal_that_never_settles_saves_and_loses_nothing(trajectories):
    wild = trajectories.assign(hms=np.tile([0.0, 1.0], len(trajectories) // 2))
    found = stopping_summary(stop_when_converged(wild, "hms", MSE)).set_index("quantity")["value"]
    assert (found == 0).all()


def test_saved_time_is_that_of_all_networks_together():
    table = pd.DataFrame(
        {"network": ["a"] * 10 + ["b"] * 2, "epoch": [*range(5, 55, 5), 5, 10], "acc": 0.5, "hms": 0.0}
    )
    found = stopping_summary(stop_when_converged(table, "hms", Outcome("acc"))).set_index("quantity")["value"]
    assert found["time saved"] == pytest.approx(1 - (30 + 10) / (50 + 10))


def test_thresholds_are_chosen_to_save_the_same(trajectories):
    by_hms = stop_when_converged(trajectories, "hms", MSE)
    saved = 1 - by_hms["cost"].sum() / by_hms["full_cost"].sum()
    sd = matching_threshold(trajectories, "loss", MSE, saved)
    by_loss = stop_when_converged(trajectories, "loss", MSE, sd=sd)
    assert 1 - by_loss["cost"].sum() / by_loss["full_cost"].sum() == pytest.approx(saved, abs=0.02)
    assert sd != 0.01


def test_a_looser_threshold_saves_more_and_loses_more(trajectories):
    found = saving_tradeoff(trajectories, "hms", MSE, count=6)
    assert (np.diff(found["saved"]) >= 0).all() and (np.diff(found["lost"]) >= 0).all()
    assert found["saved"].iloc[-1] == pytest.approx(0.8)  # the loosest stops at the first whole window
    assert (found["low"] <= found["lost"]).all() and (found["n"] == 40).all()


def test_a_signal_compared_with_itself_is_no_better(trajectories):
    same = compare_signals(trajectories.assign(again=trajectories["hms"]), "hms", "again", MSE, second_sd=0.01)
    assert (same["difference"] == 0).all() and (same["n"] == 40).all()


def test_the_difference_of_two_signals_is_paired(trajectories):
    found = compare_signals(trajectories, "hms", "loss", MSE).set_index("quantity")
    one = stop_when_converged(trajectories, "hms", MSE)
    other = stop_when_converged(trajectories, "loss", MSE, sd=found["second_sd"]["lost"])
    apart = one["lost"] - other["lost"]
    assert found["difference"]["lost"] == pytest.approx(apart.mean())
    half = 2.022691 * apart.std() / np.sqrt(40)  # Student's quantile of 39 degrees of freedom
    assert found["high"]["lost"] - found["difference"]["lost"] == pytest.approx(half, rel=1e-5)


def test_networks_below_mean_plus_sd_are_discarded(trajectories):
    found = discard_below_population(trajectories, "hms", MSE, epoch=30)
    then = trajectories[trajectories["epoch"] == 30].set_index("network")["hms"]
    threshold = then.mean() + then.std()
    assert (found.set_index("network")["kept"] == (then >= threshold)).all()
    assert np.allclose(found["threshold"], threshold)
    assert np.allclose(found["saved"], np.where(found["kept"], 0, 0.8))
    lower = discard_below_population(trajectories, "loss", MSE, epoch=30, better="lower")
    losses = trajectories[trajectories["epoch"] == 30].set_index("network")["loss"]
    assert (lower.set_index("network")["kept"] == (losses <= losses.mean() - losses.std())).all()


def test_networks_without_a_value_at_that_epoch_are_trained_on(trajectories):
    missing = trajectories["network"].eq("n00") & trajectories["epoch"].eq(30)
    for table in (trajectories.assign(hms=trajectories["hms"].mask(missing)), trajectories[~missing]):
        first = discard_below_population(table, "hms", MSE, epoch=30).iloc[0]
        assert first["kept"] and np.isnan(first["value"]) and first["stop_epoch"] == 150


def test_networks_that_are_called_by_numbers_are_discarded_by_their_values_too(trajectories):
    numbered = trajectories.assign(network=trajectories["network"].str.removeprefix("n").astype(int))
    found = discard_below_population(numbered, "hms", MSE, epoch=30)
    named = discard_below_population(trajectories, "hms", MSE, epoch=30)
    assert found.drop(columns="network").equals(named.drop(columns="network"))


def test_keeping_at_random_is_averaged_over_all_ways_to_keep_as_many():
    performance = np.array([0.9, 0.8, 0.5, 0.2, 0.1])
    table = pd.DataFrame(
        {"kept": [False, True, False, True, False], "cost": 1.0, "full_cost": 2.0, "full_performance": performance}
    )
    found = discard_summary(table, Outcome("accuracy"), draws=50).set_index("quantity")["value"]
    assert found["best lost"] == pytest.approx(0.1) and found["share kept"] == 0.4
    expected = np.mean([0.9 - max(kept) for kept in combinations(performance, 2)])
    assert found["best lost at random"] == pytest.approx(expected)


def test_what_is_wrong_is_said(trajectories):
    with pytest.raises(AssayError, match="better='more'"):
        Outcome("mse", better="more")
    with pytest.raises(AssayError, match="no column 'acc'"):
        stop_when_converged(trajectories, "hms", Outcome("acc"))
    with pytest.raises(AssayError, match="epoch=31"):
        discard_below_population(trajectories, "hms", MSE, epoch=31)
    with pytest.raises(AssayError, match="better='up'"):
        discard_below_population(trajectories, "hms", MSE, epoch=30, better="up")
    with pytest.raises(AssayError, match="no window of 500 epochs"):
        matching_threshold(trajectories, "hms", MSE, 0.5, window=500)
    with pytest.raises(AssayError, match="no network has a performance"):
        stopping_summary(stop_when_converged(trajectories.assign(mse=np.nan), "hms", MSE))
    with pytest.raises(AssayError, match="no network has 'mse' at the end"):
        discard_summary(discard_below_population(trajectories.assign(mse=np.nan), "hms", MSE, epoch=30), MSE)
