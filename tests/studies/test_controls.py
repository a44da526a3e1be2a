"""Controls: what predicts the gap without a measure, and what measures add to it in networks left out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from assay import AssayError
from assay.stats.residual_correlation import residual_spearman
from assay.studies import (
    Scoring,
    affordable_controls,
    combined,
    combined_prediction,
    control_columns,
    control_predictors,
    judge,
    partial_correlations,
)
from assay.studies.combined import left_out_prediction
from assay.studies.combined import predicted as ridge_predicted
from assay.studies.controls import DETAILS

CODES = np.indices((3, 3, 2, 3)).reshape(4, -1)


def corpus(seed: int = 0) -> tuple[pd.DataFrame, np.random.Generator]:
    rng = np.random.default_rng(seed)
    n = CODES.shape[1]
    table = pd.DataFrame(
        {
            "network": [f"n{i}" for i in range(n)],
            "depth": CODES[0] + 1,
            "augmentation": np.array(["none", "rotation partial", "rotation full"])[CODES[1]],
            "skips": np.array(["no", "yes"])[CODES[2]],
            "optimizer": np.array(["adam", "sgd", "lamb"])[CODES[3]],
            "train_accuracy": 0.97 + 0.03 * rng.random(n),
        }
    )
    noise = 0.02 * rng.normal(size=n)
    table["test_accuracy"] = 0.7 + 0.05 * CODES[1] - 0.02 * CODES[0] + noise
    return table.assign(gap=table["train_accuracy"] - table["test_accuracy"]), rng


HYPERPARAMETERS = ["depth", "augmentation", "skips", "optimizer"]


def test_each_hyperparameter_and_the_exact_training_accuracy_are_controls():
    table, _ = corpus()
    found = control_predictors(table, HYPERPARAMETERS)
    assert list(found) == [
        "control: training accuracy", "control: depth", "control: augmentation level", "control: skips is yes",
    ]  # fmt: skip
    assert set(found["control: augmentation level"]) == {0.0, 0.5, 1.0}
    assert control_columns(table, HYPERPARAMETERS).shape == (54, 6)  # two flags of three optimizers
    unknown = control_predictors(table.drop(columns="train_accuracy"), ["optimizer"])
    assert unknown.shape == (54, 0)


def test_partial_correlations_are_those_of_the_single_function():
    table, rng = corpus()
    columns = control_columns(table, HYPERPARAMETERS)
    measures = pd.DataFrame({"m": table["gap"] + 0.02 * rng.normal(size=54), "same": 1.0, "hole": np.nan})
    found = partial_correlations(measures, table["gap"], columns)
    expected = residual_spearman(measures[["m"]].to_numpy().T, table["gap"].to_numpy(), columns)[0]
    assert found.loc["m", "partial_rho"] == expected
    assert found.loc["m", "partial_rho_low"] < expected < found.loc["m", "partial_rho_high"]
    assert found.drop(index="m").isna().all(axis=None)


def test_controls_in_detail_have_a_flag_for_each_level_and_each_two():
    table, _ = corpus()
    table["rate"] = np.arange(54) / 10
    flags = control_columns(table, ["depth", "skips"], "factors")
    assert flags.shape == (54, 2 + 2 + 1)  # training accuracy and its square, two of three depths, one of two
    assert set(np.unique(flags[:, 2:])) == {0.0, 1.0}
    pairs = control_columns(table, ["depth", "skips"], "pairs")
    np.testing.assert_array_equal(pairs[:, 5:], flags[:, 2:4] * flags[:, 4:])
    many = control_columns(table, ["rate"], "factors")[:, 2:]
    np.testing.assert_allclose(many, np.stack([table["rate"], (table["rate"] - 2.65) ** 2], axis=1))


def test_controls_are_as_detailed_as_the_number_of_cells_allows():
    table, _ = corpus()
    assert affordable_controls(table, HYPERPARAMETERS)[1] == "pairs"  # 27 columns for 54 cells
    assert affordable_controls(table, HYPERPARAMETERS[:3])[1] == "factors"  # 7 for 18 cells, where pairs are 15
    assert affordable_controls(table, HYPERPARAMETERS[:2])[1] == "linear"  # nine cells with six networks each


@pytest.mark.parametrize("effect", ["curved", "of two together"])
def test_measures_that_repeat_any_effect_of_hyperparameters_add_nothing_to_the_controls(effect):
    """With controls as plain numbers, they were said to add in 25 of 25 such corpora."""
    codes = np.indices((3, 2, 2, 3, 2)).reshape(5, -1)
    centred = codes - codes.mean(axis=1, keepdims=True)
    follows = 1.5 * centred[0] ** 2 + centred[1] if effect == "curved" else 4 * centred[1] * centred[2] + centred[0]
    table, names = pd.DataFrame(codes.T, columns=list("abcde")), list("abcde")
    degrees = [control_columns(table, names, detail) for detail in DETAILS]
    rng = np.random.default_rng(0)
    gap = follows + 0.5 * rng.normal(size=72)
    measures = follows[:, None] + 0.5 * rng.normal(size=(72, 5))
    linear = combined_prediction(measures, degrees[0], gap, np.arange(72)).set_index("of")
    detailed = combined_prediction(measures, degrees, gap, np.arange(72)).set_index("of")
    assert linear.loc["difference", "low"] > 0 > detailed.loc["difference", "low"]
    columns, detail = affordable_controls(table, names)
    found = partial_correlations(pd.DataFrame({"m": measures[:, 0]}), pd.Series(gap), columns).loc["m"]
    assert detail == "pairs" and found["partial_rho_low"] < 0 < found["partial_rho_high"]


def test_all_hyperparameters_together_are_predicted_from_other_cells_alone():
    """Recomputed with scikit-learn's ridge for one division; and what one cell's gaps are never enters its own."""
    table, _ = corpus()
    columns, gap = control_columns(table, HYPERPARAMETERS), table["gap"].to_numpy()
    cells = np.repeat(np.arange(27), 2)
    found = left_out_prediction(columns, gap, cells, seed=3)
    draws = np.random.default_rng(3)
    expected = np.zeros(54)
    for division in [draws.permutation(27) % 5 for _ in range(5)]:
        fold = division[cells]
        for out in range(5):
            rest, test = fold != out, fold == out
            _, penalty = combined._chosen([columns], gap, fold, rest)
            scaler = StandardScaler().fit(columns[rest])
            model = Ridge(alpha=rest.sum() * penalty[0]).fit(scaler.transform(columns[rest]), gap[rest])
            expected[test] += (model.predict(scaler.transform(columns[test])) - gap[rest].mean()) / 5
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert np.corrcoef(found, gap)[0, 1] > 0.5
    other = left_out_prediction(columns, gap + (cells == 4), cells, seed=3)
    np.testing.assert_array_equal(other[cells == 4], found[cells == 4])
    assert (other[cells != 4] != found[cells != 4]).all()


def test_a_constant_target_is_refused():
    with pytest.raises(AssayError, match=r"the target is 0\.5 in all networks"):
        combined_prediction(np.zeros((20, 1)), np.zeros((20, 0)), np.full(20, 0.5), np.arange(20))


@pytest.mark.parametrize("penalty", [1e-3, 0.1, 10.0])
def test_ridge_is_that_of_scikit_learn(penalty):
    rng = np.random.default_rng(1)
    x, y, new = rng.normal(size=(30, 5)), rng.normal(size=30), rng.normal(size=(7, 5))
    scaler = StandardScaler().fit(x)
    expected = Ridge(alpha=30 * penalty).fit(scaler.transform(x), y).predict(scaler.transform(new))
    assert ridge_predicted(x, y, new, np.array([penalty]))[0] == pytest.approx(expected)


def test_combined_measures_add_what_the_controls_do_not_say():
    table, rng = corpus()
    columns, gap = control_columns(table, HYPERPARAMETERS), table["gap"].to_numpy()
    cells = np.arange(54)
    told = gap[:, None] + 0.01 * rng.normal(size=(54, 2))
    found = combined_prediction(told, columns, gap, cells).set_index("of")
    assert found.loc["controls", "r2"] < found.loc["measures", "r2"] and found.loc["difference", "low"] > 0
    r2 = found["r2"]
    assert r2["difference"] == pytest.approx(r2["controls and measures"] - r2["controls"])


def test_the_interval_is_that_of_the_grouped_jackknife():
    """Recomputed: everything again without each of ten groups of cells, the folds of the others as they were."""
    rng = np.random.default_rng(5)
    measures, gap, cells = rng.normal(size=(40, 3)), rng.normal(size=40), np.arange(40) // 2
    gap = gap + measures[:, 0]
    found = combined_prediction(measures, np.empty((40, 0)), gap, cells, seed=7).set_index("of").loc["measures"]
    draws = np.random.default_rng(7)
    folds = [draws.permutation(20) % 5 for _ in range(5)]
    group = (draws.permutation(20) % 10)[cells]

    def r2(kept):
        x, y, c = measures[kept], gap[kept], cells[kept]
        model, mean = (combined._errors([values], y, c, folds).sum() for values in (x, x[:, :0]))
        return 1 - model / mean

    parts = np.array([r2(group != j) for j in range(10)])
    se = np.sqrt(9 / 10 * ((parts - parts.mean()) ** 2).sum())
    assert found["r2"] == pytest.approx(r2(group >= 0))
    assert found["low"] == pytest.approx(found["r2"] - 2.2621571628 * se)  # t with 9 degrees of freedom


def test_networks_of_one_cell_do_not_predict_each_other():
    """With three seeds of each cell, a measure that names the cell predicts nothing where whole cells are left out."""
    rng = np.random.default_rng(2)
    cells = np.repeat(np.arange(30), 3)
    gap = rng.normal(size=30)[cells] + 0.01 * rng.normal(size=90)
    names = np.eye(30)[cells]
    nothing = np.empty((90, 0))
    together, apart = (
        combined_prediction(names, nothing, gap, c).set_index("of").r2["measures"] for c in (cells, np.arange(90))
    )
    assert together < 0.05 and apart > 0.8
    with pytest.raises(AssayError, match="of 4 cells"):
        combined_prediction(names[:12], nothing[:12], gap[:12], cells[:12])


def test_measures_of_noise_are_not_said_to_add_to_the_controls():
    """At most 5 % of corpora (`benchmarks/combined_coverage.py`); of 4 here at most 1."""
    alarms = 0
    for seed in range(4):
        table, rng = corpus(seed)
        columns, gap = control_columns(table, HYPERPARAMETERS), table["gap"].to_numpy()
        found = combined_prediction(rng.normal(size=(54, 20)), columns, gap, np.arange(54), seed=seed)
        alarms += int(found.set_index("of").low["difference"] > 0)
    assert alarms <= 1


def test_all_hyperparameters_together_predict_the_same_of_networks_that_differ_in_their_seed():
    """To the last bit: what differs by rounding would be ordered by it, and otherwise on another processor."""
    names = list("abcdef")
    cells = pd.DataFrame(np.tile(np.indices((2,) * 6).reshape(6, -1).T, (3, 1)), columns=names)
    for seed in range(6):  # one of them differed by rounding on x86
        rng = np.random.default_rng(seed)
        gap = pd.Series(cells.to_numpy() @ rng.random(6) + rng.random(192))
        found = control_predictors(cells, names, gap)["control: all hyper-parameters together"]
        assert (found.groupby(np.arange(192) % 64).nunique() == 1).all() and found.nunique() == 64


def test_a_study_has_its_controls_and_the_test_error_as_a_second_target():
    table, rng = corpus()
    predictors = pd.DataFrame(rng.normal(size=(54, 3)), columns=list("abc"), index=table["network"])
    study = judge(table, predictors, HYPERPARAMETERS, Scoring(draws=20, permutations=19))
    kinds = study.ranking.groupby("kind")["measure"].apply(set)
    assert kinds["measure"] == {"a", "b", "c"} and "control: training accuracy" in kinds["control"]
    assert study.predictors == ["a", "b", "c"] and not any(c.startswith("control") for c in study.networks)
    assert set(study.test_error["measure"]) == set(study.ranking["measure"])
    level = study.test_error.set_index("measure")["tau"]["control: augmentation level"]
    assert level < -0.4  # more augmentation, less test error
    assert "control: all hyper-parameters together" in kinds["control"]
    assert study.ranking["partial_p_max"].notna().sum() == 3  # of measures, not of controls
    assert set(study.combined["of"]) == {"controls", "measures", "controls and measures", "difference"}
    assert study.ranking.set_index("measure")["partial_rho"][["a", "b", "c"]].notna().all()
    numbers_only = judge(
        table.drop(columns=["train_accuracy", "test_accuracy"]), predictors, HYPERPARAMETERS, Scoring(draws=20)
    )
    assert not len(numbers_only.test_error)
