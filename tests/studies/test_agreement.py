"""Which metrics agree over networks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from assay import AssayError
from assay.studies import correlation_matrix, metric_agreement, overview


@pytest.fixture
def networks():
    rng = np.random.default_rng(0)
    quality, rate = rng.normal(size=(2, 60))
    noise = rng.normal(size=(3, 60))
    return pd.DataFrame(
        {
            "mse": -quality + 0.5 * noise[0],
            "accuracy": quality + 0.5 * noise[1],
            "hms": rate + 0.3 * noise[2],
            "size": rate,
            "learning_rate": rate + 0.05 * noise[0],
        }
    )


def test_correlations_and_their_p_are_those_of_scipy_adjusted_for_the_number_of_pairs(networks):
    table = metric_agreement(networks, ["mse", "accuracy", "hms"])
    assert table[["first", "second"]].to_numpy().tolist() == [["mse", "accuracy"], ["mse", "hms"], ["accuracy", "hms"]]
    for row in table.itertuples():
        rho, p = stats.spearmanr(networks[row.first], networks[row.second])
        assert row.rho == pytest.approx(rho, abs=1e-12) and row.p == pytest.approx(p, rel=1e-9)
        assert row.p_bonferroni == pytest.approx(min(1, 3 * p)) and row.low < row.rho < row.high
        assert row.p <= row.p_holm <= row.p_bonferroni and row.n == 60
    assert table["reading"].tolist()[0] == "clear"
    assert set(table["reading"][1:]) <= {"small", "not clear"}


def test_what_the_learning_rate_explains_is_gone_when_it_is_given(networks):
    whole, partial = (
        metric_agreement(networks, ["hms", "size"], given=given).iloc[0] for given in ((), "learning_rate")
    )
    assert whole.rho > 0.9 and abs(partial.rho) < 0.35
    assert partial.given == "learning_rate" and whole.given == ""


def test_a_small_correlation_is_not_interpreted_however_sure_it_is():
    rng = np.random.default_rng(0)
    x = rng.normal(size=4000)
    table = metric_agreement(pd.DataFrame({"a": x, "b": 0.15 * x + rng.normal(size=4000)})[:1500], ["a", "b"])
    assert table["p_bonferroni"].item() < 0.01 and table["reading"].item() == "small"


def test_networks_without_a_value_are_left_out_and_counted(networks):
    networks.loc[:9, "mse"] = np.nan
    networks.loc[5:14, "accuracy"] = np.inf
    table = metric_agreement(networks, ["mse", "accuracy", "hms"])
    assert table["n"].tolist() == [45, 50, 50]
    constant = metric_agreement(networks.assign(hms=1.0), ["mse", "hms"]).iloc[0]
    assert constant.reading == "undefined" and np.isnan([constant.rho, constant.p, constant.low]).all()


def test_a_family_of_few_networks_raises_no_more_false_alarms_than_it_says():
    rng = np.random.default_rng(0)
    four = pd.DataFrame(rng.random((4, 2)), columns=["a", "b"]).assign(c=lambda table: table["a"])
    row = metric_agreement(four, ["a", "c"]).iloc[0]
    assert (row.rho, row.p, row.reading) == (1, 2 / 24, "not clear") and row.low < 0
    alarms = 0
    for _ in range(15):
        table = metric_agreement(pd.DataFrame(rng.random((5, 4)), columns=list("abcd")), list("abcd"))
        alarms += bool((table["reading"] == "clear").any())
    assert alarms <= 15 * 0.05 + 3 * np.sqrt(15 * 0.05)  # three standard errors of the simulation


def test_the_matrix_is_symmetric(networks):
    matrix = correlation_matrix(metric_agreement(networks, ["mse", "accuracy", "hms"]))
    assert np.array_equal(matrix.to_numpy(), matrix.to_numpy().T) and (np.diag(matrix) == 1).all()


def test_the_ten_highest_and_lowest_networks(networks):
    table = overview(networks, ["hms", "mse"], by="hms").set_index(["group", "metric"])
    ordered = networks.sort_values("hms")
    assert table["mean"]["highest 10 by hms", "mse"] == pytest.approx(ordered["mse"][-10:].mean())
    assert table["sd"]["lowest 10 by hms", "hms"] == pytest.approx(ordered["hms"][:10].std())
    assert table["n"]["all", "mse"] == 60


def test_what_is_wrong_is_said(networks):
    with pytest.raises(AssayError, match=r"no column 'accurcy'.*accuracy"):
        metric_agreement(networks, ["mse", "accurcy"])
    with pytest.raises(AssayError, match="two columns or more"):
        metric_agreement(networks, ["mse"])
    with pytest.raises(AssayError, match="one of the metrics too"):
        metric_agreement(networks, ["mse", "hms"], given="hms")
    with pytest.raises(AssayError, match="not numbers"):
        metric_agreement(networks.assign(mse="low"), ["mse", "hms"])
    with pytest.raises(AssayError, match="give 1 to 30"):
        overview(networks, ["mse"], by="hms", count=31)
