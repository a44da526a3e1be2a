from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from assay import AssayError
from assay.studies import (
    STATISTICS,
    ConditionalMutualInformation,
    IncompleteGridWarning,
    SignError,
    chance_level,
    compare_measures,
    conditional_mutual_information,
    granulated_kendall,
    kendall_tau,
    pearson,
    score_measures,
    sign_error,
)
from assay.studies.statistics.grid import Grid
from corpora import full_grid, named

GRID = named(full_grid(3, 3, 2))
GAP, NOISE, OTHER = np.random.default_rng(3).normal(size=(3, 18))
MEASURES = {"good": GAP + 0.5 * NOISE, "weak": GAP + 3 * OTHER}
SINGLE = {
    "cmi": lambda m: conditional_mutual_information(m, GAP, GRID),
    "cmi_distinct": lambda m: conditional_mutual_information(m, GAP, GRID, self_pairs=False),
    "kendall_tau": lambda m: kendall_tau(m, GAP),
    "granulated_kendall": lambda m: granulated_kendall(m, GAP, GRID).value,
    "worst_sign_error": lambda m: sign_error(m, GAP, GRID).worst,
    "mean_sign_error": lambda m: sign_error(m, GAP, GRID).mean,
    "pearson": lambda m: pearson(m, GAP),
}


@pytest.mark.parametrize("statistic", STATISTICS)
def test_values_are_those_of_the_single_functions_and_intervals_lie_around_them(statistic):
    table = score_measures(MEASURES, GAP, GRID, statistic, draws=100).set_index("measure")
    low, high = STATISTICS[statistic].bounds
    for name, row in table.iterrows():
        assert row["value"] == pytest.approx(SINGLE[statistic](MEASURES[name]), rel=1e-13)
        reach = stats.norm.ppf(0.975) * row["se"]
        assert row["low"] == pytest.approx(max(low, row["value"] - reach))
        assert row["high"] == pytest.approx(min(high, row["value"] + reach))
    assert table["status"].eq("ok").all() and table["draws"].eq(100).all()


def test_draws_come_from_the_seed():
    first = score_measures(MEASURES, GAP, GRID, draws=50, seed=1)
    pd.testing.assert_frame_equal(first, score_measures(MEASURES, GAP, GRID, draws=50, seed=1))
    assert (first["se"] != score_measures(MEASURES, GAP, GRID, draws=50, seed=2)["se"]).all()


def test_standard_error_is_that_of_the_statistic_on_resampled_lists():
    """The bootstrap by hand, on lists of networks, for a statistic that needs no grid."""
    weights = np.random.default_rng(7).multinomial(18, np.full(18, 1 / 18), size=40)
    lists = [np.repeat(np.arange(18), w) for w in weights]
    by_hand = [stats.kendalltau(MEASURES["weak"][i], GAP[i]).statistic for i in lists]
    table = score_measures(MEASURES, GAP, statistic="kendall_tau", draws=40, seed=7).set_index("measure")
    assert table["se"]["weak"] == pytest.approx(np.std(by_hand, ddof=1), rel=1e-12)  # rounding


def test_the_negative_of_a_measure_has_the_opposite_correlation_and_error_in_every_resample():
    """Copies of one network tie in both, and no two of them are one hyper-parameter apart: they do not count."""
    measures, grid = np.stack(list(MEASURES.values())), Grid.of(GRID, 18)
    weights = np.random.default_rng(5).multinomial(18, np.full(18, 1 / 18), size=50)
    for name in ("kendall_tau", "granulated_kendall", "pearson"):
        rises, falls = (STATISTICS[name].resampled(m, GAP, grid, weights) for m in (measures, -measures))
        assert np.array_equal(falls, -rises)
    rises, falls = (STATISTICS["mean_sign_error"].resampled(m, GAP, grid, weights) for m in (measures, -measures))
    np.testing.assert_allclose(falls, 1 - rises, rtol=0, atol=1e-15)  # rounding of numbers up to 1


def test_a_comparison_is_the_difference_under_shared_resamples():
    table = compare_measures(MEASURES, GAP, GRID, "mean_sign_error", draws=60)
    (row,) = table.to_dict("records")
    single = score_measures(MEASURES, GAP, GRID, "mean_sign_error", draws=60).set_index("measure")
    assert row["difference"] == pytest.approx(single["value"]["good"] - single["value"]["weak"])
    assert row["p"] == pytest.approx(2 * stats.norm.sf(abs(row["difference"]) / row["se"]))
    assert (row["p"] < 0.05) == (row["high"] < 0 or row["low"] > 0)
    nearly = {"good": MEASURES["good"], "twin": MEASURES["good"] + 1e-3 * OTHER}
    (twin,) = compare_measures(nearly, GAP, statistic="pearson", draws=60).to_dict("records")
    assert twin["se"] < 0.01 * score_measures(nearly, GAP, statistic="pearson", draws=60)["se"].min()


@pytest.mark.parametrize(("statistic", "most"), [("cmi_distinct", 1), ("mean_sign_error", 1), ("kendall_tau", 2)])
def test_no_interval_of_a_difference_is_beyond_what_two_values_can_differ_by(statistic, most):
    codes = np.indices((3, 2)).reshape(2, -1)
    gap, *rows = np.random.default_rng(0).normal(size=(12, 6))
    measures = {"same": gap + 0.1 * rows[0], "turned": -gap - 0.1 * rows[1]} | {f"m{i}": m for i, m in enumerate(rows)}
    sizes = {"cmi_distinct": ConditionalMutualInformation(sizes=(1,), self_pairs=False)}
    grid = dict(zip("ab", codes, strict=True))
    table = compare_measures(measures, gap, grid, sizes.get(statistic, statistic), draws=60)
    assert table[["low", "high"]].abs().max(axis=None) == most


def test_intervals_of_tau_hold_its_known_value_about_95_times_in_100():
    """Bivariate normal numbers of correlation ½: τ = 2/π·asin ½ = ⅓."""
    rng = np.random.default_rng(0)
    held = 0
    for repetition in range(200):
        gap, noise = rng.normal(size=(2, 50))
        table = score_measures(
            {"m": gap / 2 + np.sqrt(3) / 2 * noise}, gap, statistic="kendall_tau", draws=200, seed=repetition
        )
        held += bool(table["low"][0] <= 1 / 3 <= table["high"][0])
    # Binomial(200, 0.95) is in 179…198 but for one time in a thousand; copies widen intervals of 50 networks a little.
    assert 179 <= held <= 199


def test_two_equally_good_measures_seldom_differ_significantly():
    rng = np.random.default_rng(1)
    alarms = 0
    for repetition in range(200):
        gap, a, b = rng.normal(size=(3, 50))
        table = compare_measures({"a": gap + a, "b": gap + b}, gap, statistic="kendall_tau", draws=200, seed=repetition)
        alarms += bool(table["p"][0] < 0.05)
    # Binomial(200, 0.05) is in 2…21 but for one time in a thousand.
    assert 1 <= alarms <= 21


def test_what_does_not_move_has_no_interval():
    table = score_measures({"constant": np.ones(18), "same": GAP}, GAP, GRID, draws=20).set_index("measure")
    assert table["status"].tolist() == ["no interval"] * 2 and table["value"].tolist() == [0, 1]
    assert table[["low", "high"]].isna().all(axis=None)
    (row,) = compare_measures({"a": GAP, "b": -GAP}, GAP, statistic="kendall_tau", draws=20).to_dict("records")
    assert row["difference"] == 2 and row["status"] == "no interval" and np.isnan(row["p"])


def test_what_is_undefined_for_one_measure_is_said_in_its_row():
    table = score_measures({"constant": np.ones(18), "good": MEASURES["good"]}, GAP, statistic="kendall_tau", draws=20)
    assert table["status"].tolist() == ["undefined", "ok"] and np.isnan(table["value"][0])


def test_settings_of_a_statistic_are_kept():
    ours = ConditionalMutualInformation(sizes=(1,), self_pairs=False)
    table = score_measures(MEASURES, GAP, GRID, ours, draws=20)
    assert table["value"][0] == conditional_mutual_information(MEASURES["good"], GAP, GRID, (1,), self_pairs=False)
    worst = score_measures(MEASURES, GAP, GRID, SignError("worst", "settings"), draws=20)
    assert worst["value"][0] == sign_error(MEASURES["good"], GAP, GRID, "settings").worst


def test_an_incomplete_grid_warns_once_and_counts_pairs_in_all_draws():
    grid = {name: column[:-2] for name, column in GRID.items()}
    measures = {name: values[:-2] for name, values in MEASURES.items()}
    with pytest.warns(IncompleteGridWarning) as told:
        table = score_measures(measures, GAP[:-2], grid, draws=20)
    assert len(told) == 1
    by_count = ConditionalMutualInformation(self_pairs=False, cell_weight="count")
    counted = score_measures(measures, GAP[:-2], grid, by_count, draws=20)
    pd.testing.assert_frame_equal(table, counted)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"statistic": "kendal_tau"}, "did you mean 'kendall_tau'"),
        ({"draws": 1}, "draws=1 show no spread"),
        ({"confidence": 95}, "confidence=95 is not between 0 and 1"),
        ({"measures": {}}, "one or more names"),
        ({"measures": pd.DataFrame([[1, 2]] * 18, columns=["a", "a"])}, "each once"),
        (
            {"measures": {"a": np.where(np.arange(18) == 2, np.inf, GAP)}},
            "measure 'a' is NaN or infinite for network 2 ",
        ),
        ({"hyperparameters": None}, "there are 0"),
        ({"hyperparameters": None, "statistic": "granulated_kendall"}, "hyperparameters is empty"),
        ({"hyperparameters": None, "statistic": "worst_sign_error"}, "no two networks differ in one alone"),
        ({"gap": np.zeros(18), "statistic": "pearson"}, "gap is 0 for all 18 networks"),
        ({"gap": np.zeros(18)}, "the order of no two gaps is open"),
    ],
)
def test_errors_name_the_argument_and_the_remedy(change, says):
    with pytest.raises(AssayError, match=says):
        score_measures(**({"measures": MEASURES, "gap": GAP, "hyperparameters": GRID} | change))


def test_comparing_takes_two():
    with pytest.raises(AssayError, match="measures has 1"):
        compare_measures({"a": GAP}, GAP, GRID)


def test_chance_level_is_what_random_orders_give():
    """Of many measures that know nothing, one in twenty is above it; of one that knows all, it is far below."""
    rng = np.random.default_rng(3)
    grid = pd.DataFrame([(a, b, c) for a in range(2) for b in range(3) for c in range(3)], columns=["a", "b", "c"])
    gap = rng.random(len(grid))
    level = chance_level(gap, grid, draws=400)
    noise = {f"m{i}": rng.random(len(grid)) for i in range(300)}
    above = score_measures(noise, gap, grid, draws=2)["value"] > level
    assert 0.02 < above.mean() < 0.1  # binomial of 300 at 0.05, and the level itself is one of 400 draws
    assert level < conditional_mutual_information(gap, gap, grid)
