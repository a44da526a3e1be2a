from __future__ import annotations

import pytest

from assay.broad.analysis.claims import CLAIMS, DIAGNOSIS, judge

BY_NAME = {claim.name: claim for claim in CLAIMS}


def contrast(difference, low, high, p_holm, **more):
    return {
        "status": "ok", "reason": "", "metric": "MAP", "difference": difference, "low": low, "high": high,
        "p_holm": p_holm, "margin": 0.02, "mdd": 0.03, "plan_rule": "6 is better",
        "n_folds": 10, "n_labels": 12, "n_instances": 884, **more,
    }  # fmt: skip


BETTER = contrast(0.05, 0.03, 0.07, 0.001)
WORSE = contrast(-0.05, -0.07, -0.03, 0.001)
NO_BETTER = contrast(-0.005, -0.015, 0.005, 0.4)
UNCLEAR = contrast(0.01, -0.03, 0.05, 0.6)
BY_CHANCE = contrast(0.05, 0.001, 0.099, 0.2)  # significant alone, not among the planned contrasts


@pytest.mark.parametrize(
    ("name", "found", "verdict"),
    [
        ("central", BETTER, "supported"),
        ("central", WORSE, "not supported"),
        ("central", NO_BETTER, "not supported"),
        ("central", UNCLEAR, "undecided"),
        ("central", BY_CHANCE, "undecided"),
        ("comparable in quality", BETTER, "supported"),
        ("comparable in quality", NO_BETTER, "supported"),
        ("comparable in quality", UNCLEAR, "supported"),
        ("comparable in quality", WORSE, "not supported"),
        ("non-inferior", BETTER, "supported"),
        ("non-inferior", NO_BETTER, "supported"),
        ("non-inferior", UNCLEAR, "undecided"),
        ("non-inferior", WORSE, "not supported"),
        ("better than extracted features", NO_BETTER, "not supported"),
    ],
)
@pytest.mark.requirement("I1", "I3")
def test_verdicts(name, found, verdict):
    assert judge(BY_NAME[name], found)[0] == verdict


@pytest.mark.requirement("I2")
def test_sentences_carry_the_numbers():
    assert judge(BY_NAME["central"], BETTER)[1] == (
        "Supported, condition 6 outperforms condition 3: advantage 0.0500 MAP, 95 % interval 0.0300 to 0.0700, "
        "Holm-adjusted p = 0.001 (10 folds, 12 labels, 884 test instances). "
        "The plan's own rule (standard errors over folds): 6 is better."
    )
    undecided = judge(BY_NAME["central"], UNCLEAR)[1]
    assert undecided.startswith("Undecided whether condition 6 outperforms condition 3: advantage 0.0100 MAP")
    assert "A single test at 5 % would find a true difference of 0.0300 four times in five." in undecided
    assert judge(BY_NAME["non-inferior"], WORSE)[1].startswith(
        "An extension of the plan: Not supported, condition 6 is inferior to condition 1 by 0.02 or more: "
    )
    assert judge(BY_NAME["better than extracted features"], BETTER)[1].startswith("Not claimed by the teams")


@pytest.mark.parametrize("name", ["deep learning helps", "depth helps"])
@pytest.mark.requirement("I5")
def test_the_plans_diagnosis_is_given_where_deep_learning_does_not_help(name):
    assert DIAGNOSIS == "either the task is unsuitable for this evaluation or the DL system is not performing well"
    assert f"By the plan, {DIAGNOSIS}." in judge(BY_NAME[name], NO_BETTER)[1]
    assert f"If it does not, by the plan {DIAGNOSIS}." in judge(BY_NAME[name], UNCLEAR)[1]
    assert DIAGNOSIS not in judge(BY_NAME[name], BETTER)[1]


def test_diagnoses_belong_to_the_contrasts_with_4_and_5():
    assert {claim.contrast for claim in CLAIMS if claim.diagnosis} == {"6 v 4", "6 v 5"}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_without_a_run_every_claim_is_undecided_and_says_why(claim):
    verdict, sentence = judge(claim, {"status": "undecided", "reason": "run 6n has no predictions to score: timeout"})
    assert verdict == "undecided" and sentence.endswith(": run 6n has no predictions to score: timeout.")
    assert "the DL system" not in sentence
