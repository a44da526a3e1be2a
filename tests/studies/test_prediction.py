"""Predictors of networks into a ranking: names, combinations, what is missing, what is constant."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch

from assay import (
    AssayError,
    ClusterSeparation,
    Margins,
    Measure,
    Norms,
    Sharpness,
    Subject,
    conditional_mutual_information,
)
from assay.measures.table import Predictor
from assay.stimuli.labelled import Labelled
from assay.studies import Scoring, kendall_tau, load_study_plan, rank, sign_error, study
from assay.studies.prediction import judge, with_combinations


@pytest.fixture
def grid():
    rng = np.random.default_rng(0)
    rows = [(a, b, c) for a in (0, 1) for b in (0, 1, 2) for c in ("x", "y")]
    table = pd.DataFrame(rows, columns=["a", "b", "c"])
    return table, pd.Series(rng.random(len(table)))


def test_ranks_by_information_with_every_statistic(grid):
    table, gap = grid
    rng = np.random.default_rng(1)
    found = rank(
        pd.DataFrame({"noise": rng.random(len(gap)), "gap itself": gap, "reversed": -gap}),
        gap,
        table,
        Scoring(draws=50),
    )
    assert set(found["measure"][:2]) == {"gap itself", "reversed"} and found["measure"][2] == "noise"
    best = found.set_index("measure")
    assert best.loc["gap itself", "cmi"] == pytest.approx(conditional_mutual_information(gap, gap, table))
    assert best.loc["reversed", "tau"] == pytest.approx(kendall_tau(-gap, gap)) == -1
    assert (best["status"] == "ok").all() and (best["n"] == 12).all()
    assert np.isnan(
        best.loc["gap itself", "cmi_low"]
    )  # the same in every resample: there is nothing to tell its spread
    others = best.drop(index="gap itself")
    assert (others["cmi_low"] <= others["cmi"]).all() and (others["cmi"] <= others["cmi_high"]).all()


def test_a_mirror_image_ranks_as_high_and_directions_are_told_in_words():
    table = pd.DataFrame(np.indices((3, 3, 2, 2)).reshape(4, -1).T, columns=list("abcd"))
    rng = np.random.default_rng(2)
    gap = pd.Series(rng.random(len(table)))
    measure = gap + 0.1 * rng.random(len(gap))
    predictors = pd.DataFrame({"rises": measure, "falls": -measure, "odd": -measure, "new": measure})
    directions = {"rises": 1, "falls": -1, "odd": 1}
    found = rank(predictors, gap, table, Scoring(draws=50, permutations=19), directions).set_index("measure")
    assert found["cmi_distinct"].nunique() == 1 and found["cmi"].nunique() == 2
    assert found["direction"].to_dict() == {
        "rises": "as expected", "falls": "as expected", "odd": "against expectation", "new": "none declared",
    }  # fmt: skip
    assert found.loc["odd", "expected"] == "rises" and found.loc["new", "expected"] == ""
    errors = found["worst_sign_error"]
    assert errors["rises"] == errors["falls"] == errors["new"] == sign_error(measure, gap, table).worst
    assert errors["odd"] == sign_error(-measure, gap, table).worst


@pytest.mark.parametrize("permutations", [0, 19])
def test_no_direction_is_told_of_a_measure_that_cannot_be_told_from_chance(permutations):
    """Of six networks and a dozen measures of noise some had an interval of τ without 0, and so a verdict."""
    table = pd.DataFrame(np.indices((3, 2)).reshape(2, -1).T, columns=["a", "b"])
    rng = np.random.default_rng(2)
    gap = pd.Series(rng.normal(size=6))
    noise = pd.DataFrame(rng.normal(size=(6, 12))).rename(columns="m{}".format)
    scoring = Scoring(sizes=(1,), draws=100, permutations=permutations)
    found = rank(noise, gap, table, scoring, dict.fromkeys(noise, 1))
    assert ((found["granulated_tau_low"] > 0) | (found["granulated_tau_high"] < 0)).any()
    assert set(found["direction"]) == {"not clear"}


def test_the_sign_error_leaves_out_pairs_that_the_test_set_cannot_tell_apart(grid):
    table, gap = grid
    errors = [
        rank(pd.DataFrame({"m": -gap}), gap, table, Scoring(draws=20, permutations=0, test_size=n)).iloc[0]
        for n in (None, 400, 2)
    ]
    assert errors[1]["worst_sign_error"] == sign_error(-gap, gap, table, test_size=400).worst
    assert "surely differ in their gap" in errors[2]["worst_sign_error_status"] and "p_max" not in errors[0]


def test_directions_travel_with_predictors():
    key = Predictor("gi", "intra", "0", direction=1)
    assert key == Predictor("gi", "intra", "0") and pickle.loads(pickle.dumps(key)).direction == 1
    with pytest.raises(AssayError, match=r"direction=2 of 'gi' must be 1"):
        Predictor("gi", direction=2)


def test_what_is_missing_or_constant_says_so(grid):
    table, gap = grid
    holes = gap.where(gap.index != 3)
    wild = gap.where(gap.index > 1, np.inf)
    found = rank(
        pd.DataFrame(
            {"holes": holes, "wild": wild, "both": holes.where(gap.index > 1, -np.inf), "same": 1.0, "gap": gap}
        ),
        gap,
        table,
        Scoring(draws=20),
    )
    told = found.set_index("measure")
    assert told.loc["holes", "status"] == "missing in 1 network: 3" and np.isnan(told.loc["holes", "cmi"])
    assert told.loc[["wild", "both"], "status"].tolist() == [
        "infinite in 2 networks: 0, …",
        "missing or infinite in 3 networks: 0, …",
    ]
    assert told.loc["same", "status"] == "constant" and told.loc["same", "cmi"] == 0


def test_one_hyperparameter_gives_no_information_but_a_rank_correlation(grid):
    table, gap = grid
    found = rank(pd.DataFrame({"gap": gap}), gap, table[["b"]], Scoring(draws=20)).iloc[0]
    assert "cmi" not in found and "hyper" in found["cmi_status"] and found["tau"] == pytest.approx(1)


def test_a_hyperparameter_with_one_value_is_named(grid):
    table, gap = grid
    found = rank(pd.DataFrame({"gap": gap}), gap, table.assign(b=0), Scoring(draws=20)).iloc[0]
    assert "'b'" in found["cmi_status"]


@pytest.mark.parametrize("text", ["measures: []\n", "pgdl: nowhere\nmeasures: [{measure: perturbation}]\n"])
def test_study_plans_that_cannot_be(tmp_path, text):
    (tmp_path / "plan.yaml").write_text(text)
    with pytest.raises(AssayError, match=r"plan\.yaml|nowhere"):
        load_study_plan(tmp_path / "plan.yaml")


@pytest.mark.slow
def test_the_toy_task_of_the_competition(shared_data, tmp_path):
    (tmp_path / "plan.yaml").write_text(
        f"pgdl: {shared_data / 'pgdl' / 'toy_task' / 'toy_data'}\n"
        "measures:\n  - {measure: perturbation, perturbation: [intra, inter], layer: [0, 1], bootstrap: 10}\n"
        "scoring: {draws: 20}\nrun: done\n"
    )
    plan = load_study_plan(tmp_path / "plan.yaml")
    run, found = study(plan.corpus, plan.measures, plan.run, plan.scoring)
    assert not run.failures and len(found.networks) == 18
    assert found.ranking["cmi"].notna().all()
    again, same = study(plan.corpus, plan.measures, plan.run, plan.scoring)
    assert same.ranking.equals(found.ranking) and len(again.cells) == 18


def test_a_relabelled_measure_stays_in_its_combinations():
    """Parts of a combination are found by what they are, not by what a plan calls their measure."""
    gi, mixup = Predictor("gi", "intra", "0"), Predictor("end accuracy", "intra", "0")
    frame = pd.DataFrame({"mine: gi intra ℓ=0": [1.0, 2.0, 4.0], "mine: mixup": [0.9, 0.8, 0.5]})
    combined = with_combinations(frame, {"mine: gi intra ℓ=0": gi, "mine: mixup": mixup})
    plain = with_combinations(frame.rename(columns=lambda name: name.removeprefix("mine: ")))
    name = "PCA of gi intra ℓ=0 and mixup"
    assert combined[name].tolist() == plain[name].tolist()


def test_a_measure_of_several_quantities_must_say_what_a_study_takes_from_it():
    @dataclass(frozen=True)
    class Several(Measure):
        value: ClassVar[str] = "value"

        def __call__(self, subject: Subject) -> pd.DataFrame:
            return pd.DataFrame({"quantity": ["a", "b"], "value": [1.0, 2.0]})

    with pytest.raises(AssayError, match=r"'Several' does not say what a study takes .* define predictors"):
        Several().predictors(Several()(Subject(torch.nn.Flatten())))


def test_what_a_number_rests_on_is_said_in_words():
    digits = Labelled(np.random.default_rng(0).random((60, 4), dtype=np.float32), np.arange(60) % 3)
    table = pd.DataFrame({"n": [200]})
    assert Sharpness(digits, draws=3, kinds=("sigma",)).budget(table) == "200 inputs × 3 draws"
    assert Margins(digits).budget(table) == "200 inputs"
    assert ClusterSeparation(digits, rounds=4, images=30).budget(table) == "30 inputs × 4 rounds"
    assert Norms().budget(table) == ""


def test_a_hyper_parameter_may_be_called_as_a_measure_is():
    """Networks trained with mixup or without, measured by mixup."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"network": [f"n{i}" for i in range(16)], "mixup": np.arange(16) % 2, "gap": rng.random(16)})
    measured = pd.DataFrame({"mixup": rng.random(16)}, index=table["network"])
    with_depth = table.assign(depth=np.arange(16) // 2 % 2)
    found = judge(
        with_depth, measured, ["mixup", "depth"], Scoring(draws=20), directions={"mixup": -1}, budgets={"mixup": "all"}
    )
    assert found.networks["mixup"].tolist() == table["mixup"].tolist()
    assert found.networks["mixup (measured)"].tolist() == measured["mixup"].tolist()
    row = found.ranking.set_index("measure").loc["mixup (measured)"]
    assert row["expected"] == "falls" and row["budget"] == "all"
