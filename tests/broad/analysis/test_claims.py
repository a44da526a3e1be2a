from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from assay.broad.analysis.claims import CLAIMS, DIAGNOSIS, judge, verdict_on

BY_NAME = {claim.name: claim for claim in CLAIMS}
TEAM = "Sparse autoencoder"


def contrast(difference, low, high, p_holm, **more):
    return {
        "task": "video", "status": "ok", "reason": "", "metric": "MAP", "difference": difference, "low": low,
        "high": high, "p": 0.04 if low > 0 or high < 0 else 0.4, "p_holm": p_holm, "n_family": 8, "margin": 0.02,
        "noninferior_p": 0.01 if low > -0.02 else 0.1, "mdd": 0.03,
        "plan_rule": "no difference suggested", "df": 31.4, "few_groups": False,
        "n_folds": 10, "n_labels": 12, "n_instances": 884, "n_distinct": 884, "n_groups": None, **more,
    }  # fmt: skip


BETTER = contrast(0.05, 0.03, 0.07, 0.001, plan_rule="6 is better")
WORSE = contrast(-0.05, -0.07, -0.03, 0.001, plan_rule="3 is better")
NO_BETTER = contrast(-0.005, -0.015, 0.005, 0.4)
UNCLEAR = contrast(0.01, -0.03, 0.05, 0.6)
BY_CHANCE = contrast(0.05, 0.001, 0.099, 0.2)  # significant alone, not among the planned contrasts
# The two committed results that Holm had called comparable: their own intervals exclude "no difference".
ATMOSPHERE = contrast(-0.0112, -0.0203, -0.0021, 0.22)
BEVERAGES = contrast(-0.0250, -0.0453, -0.0047, 0.24)
A_LITTLE_WORSE = contrast(-0.010, -0.018, -0.002, 0.3)
A_LITTLE_BETTER = contrast(0.010, 0.002, 0.018, 0.3, plan_rule="6 is better")


@pytest.mark.parametrize(
    ("name", "found", "verdict"),
    [
        ("central", BETTER, "supported"),
        ("central", WORSE, "not supported"),
        ("central", NO_BETTER, "not supported"),
        ("central", UNCLEAR, "undecided"),
        ("central", BY_CHANCE, "undecided"),
        ("central", A_LITTLE_BETTER, "undecided"),
        ("comparable in quality", BETTER, "supported"),
        ("comparable in quality", NO_BETTER, "supported"),
        ("comparable in quality", UNCLEAR, "undecided"),
        ("comparable in quality", WORSE, "not supported"),
        ("comparable in quality", ATMOSPHERE, "not supported"),
        ("comparable in quality", BEVERAGES, "not supported"),
        ("comparable in quality", A_LITTLE_WORSE, "not supported"),
        ("comparable in quality", A_LITTLE_BETTER, "supported"),
        ("non-inferior", BETTER, "supported"),
        ("non-inferior", NO_BETTER, "supported"),
        ("non-inferior", UNCLEAR, "undecided"),
        ("non-inferior", WORSE, "not supported"),
        ("non-inferior", A_LITTLE_WORSE, "supported"),
        ("better than extracted features", NO_BETTER, "not supported"),
    ],
)
@pytest.mark.requirement("I1", "I3")
def test_verdicts(name, found, verdict):
    assert judge(BY_NAME[name], found, TEAM).verdict == verdict


def test_with_few_groups_the_margin_must_be_excluded_at_half_the_level():
    close = {**NO_BETTER, "noninferior_p": 0.02}
    few = {**close, "few_groups": True}
    for rule in ("comparable", "non-inferior"):
        assert verdict_on(rule, close) == "supported" and verdict_on(rule, few) == "undecided"
        assert verdict_on(rule, {**few, "noninferior_p": 0.012}) == "supported"
    assert "With few groups it must be below 0.0125." in judge(BY_NAME["non-inferior"], few, TEAM).detail


@given(st.floats(-0.1, 0.1), st.floats(0, 0.1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 0.05))
def test_where_lack_of_difference_supports_a_claim_adjusting_for_many_tests_changes_nothing(d, half, p, q, margin):
    shown = {"margin": margin, "noninferior_p": 0.01 if d - half > -margin else 0.1}
    rows = [contrast(d, d - half, d + half, p_holm, **shown) for p_holm in (p, q)]
    for rule in ("comparable", "non-inferior"):
        one, two = (verdict_on(rule, row) for row in rows)
        assert one == two
        if one == "supported":
            assert d - half > -margin and (rule == "non-inferior" or d + half >= 0)


@given(st.floats(-0.1, 0.1), st.floats(0, 0.1), st.floats(0, 1), st.sampled_from(["6 is better", "4 is better", "no"]))
def test_no_diagnosis_contradicts_its_interval_or_the_plans_rule_beside_it(d, half, p, plan_rule):
    assume(p >= 0.05 or abs(d) > half)  # an adjusted p is no smaller than its own
    row = contrast(d, d - half, d + half, p, plan_rule=plan_rule)
    for name in ("deep learning helps", "depth helps"):
        judged = judge(BY_NAME[name], row, TEAM)
        if DIAGNOSIS in judged.detail:
            assert d - half <= 0 and plan_rule != "6 is better" and judged.verdict != "supported"
        assert judged.verdict != "not supported" or d - half <= 0
    if judge(BY_NAME["central"], row, TEAM).verdict == "supported":
        assert d - half > 0


@pytest.mark.requirement("I2")
def test_sentences_name_the_team_then_say_it_then_give_the_numbers():
    assert judge(BY_NAME["central"], BETTER, TEAM).sentence == (
        "Sparse autoencoder outperforms the shallow baseline on video: +0.0500 MAP (95 %: +0.0300 to +0.0700)."
    )
    food = {**UNCLEAR, "task": "text:Food", "metric": "RMSE"}
    assert judge(BY_NAME["comparable in quality"], food, TEAM).sentence == (
        "Sparse autoencoder is not shown to be comparable with hand-engineered features on text (Food): "
        "+0.0100 RMSE (95 %: −0.0300 to +0.0500)."
    )
    assert "Not claimed by the teams." in judge(BY_NAME["better than extracted features"], BETTER, TEAM).detail


# At each side of every boundary: difference, low, high, adjusted p, and the clause that follows from them.
OTHER = "hand-engineered features"
CLAUSES = [
    ("better than extracted features", (0.03, 0.001, 0.06, 0.049), f"outperforms {OTHER}"),
    ("better than extracted features", (0.03, 0.001, 0.06, 0.05), f"is not shown to outperform {OTHER}"),
    ("better than extracted features", (0.01, 0.0, 0.0199, 0.06), f"does not outperform {OTHER} by 0.02 or more"),
    ("better than extracted features", (0.01, 0.0, 0.02, 0.06), f"is not shown to outperform {OTHER}"),
    ("better than extracted features", (-0.01, -0.02, 0.0, 0.06), f"does not outperform {OTHER} by 0.02 or more"),
    (
        "better than extracted features",
        (-0.01, -0.02, -0.001, 0.05),
        f"does worse than {OTHER} before Holm's adjustment",
    ),
    ("better than extracted features", (-0.01, -0.02, -0.001, 0.049), f"is outperformed by {OTHER}"),
    ("comparable in quality", (0.01, 0.001, 0.02, 0.06), f"is at least comparable with {OTHER}"),
    ("comparable in quality", (0.01, 0.0, 0.02, 0.06), f"is comparable with {OTHER}"),
    ("comparable in quality", (-0.01, -0.0199, 0.0, 0.06), f"is comparable with {OTHER}"),
    ("comparable in quality", (-0.01, -0.02, 0.0, 0.06), f"is not shown to be comparable with {OTHER}"),
    ("comparable in quality", (-0.01, -0.0199, -0.001, 0.05), f"does worse than {OTHER} before Holm's adjustment"),
    ("comparable in quality", (-0.01, -0.0199, -0.001, 0.049), f"is outperformed by {OTHER}"),
    ("non-inferior", (-0.01, -0.0199, -0.001, 0.049), f"does not lose 0.02 or more to {OTHER}"),
    ("non-inferior", (-0.01, -0.02, -0.001, 0.049), f"is not shown to lose less than 0.02 to {OTHER}"),
    ("non-inferior", (-0.03, -0.04, -0.02, 0.001), f"is not shown to lose less than 0.02 to {OTHER}"),
    ("non-inferior", (-0.03, -0.04, -0.0201, 0.001), f"loses more than 0.02 to {OTHER}"),
]


@pytest.mark.requirement("I3")
@pytest.mark.parametrize(("name", "numbers", "clause"), CLAUSES)
def test_a_clause_says_what_its_interval_and_rule_say_and_no_more(name, numbers, clause):
    assert judge(BY_NAME[name], contrast(*numbers), TEAM).sentence.startswith(f"{TEAM} {clause} on video: ")


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_a_sentence_has_at_most_25_words(claim):
    for row in (BETTER, WORSE, NO_BETTER, UNCLEAR, BY_CHANCE, A_LITTLE_WORSE, A_LITTLE_BETTER):
        sentence = judge(claim, {**row, "task": "text:Food"}, "Rectifier denoising autoencoder").sentence
        assert len(sentence.split()) <= 25, sentence


def test_the_detail_holds_what_the_sentence_leaves_out():
    assert judge(BY_NAME["central"], BETTER, TEAM).detail == (
        "p = 0.001, adjusted for 8 planned contrasts (Holm). 10 folds, 12 labels, 884 test instances; 31 degrees of "
        "freedom. The plan's own rule (standard errors over folds): 6 is better."
    )
    assert "but among so many contrasts that may be chance" in judge(BY_NAME["central"], BY_CHANCE, TEAM).detail
    undecided = judge(BY_NAME["central"], UNCLEAR, TEAM).detail
    assert "A single test at 5 % would find a true difference of 0.0300 four times in five." in undecided
    close = judge(BY_NAME["comparable in quality"], A_LITTLE_WORSE, TEAM).detail
    assert "margin of 0.02 MAP declared before the run, not adjusted for other contrasts" in close
    assert "The interval lies wholly between a loss of the margin and no loss." in close
    assert (
        "Against no difference, p = 0.3, adjusted for 8 planned contrasts (Holm). Its own interval excludes 0" in close
    )
    assert "between a loss" not in judge(BY_NAME["comparable in quality"], ATMOSPHERE, TEAM).detail
    assert "real" not in close


def test_instances_that_are_not_distinct_say_so():
    shared = {**BETTER, "n_instances": 900, "n_distinct": 518, "n_groups": 12, "few_groups": True}
    detail = judge(BY_NAME["central"], shared, TEAM).detail
    assert "900 test instances of 518 distinct ones in 12 groups;" in detail
    assert "Few or very unequal groups" in detail


@pytest.mark.requirement("I5")
@pytest.mark.parametrize("name", ["deep learning helps", "depth helps"])
def test_the_plans_diagnosis_is_given_where_deep_learning_does_not_help(name):
    assert DIAGNOSIS == "either the task is unsuitable for this evaluation or the DL system is not performing well"
    assert f"By the plan, {DIAGNOSIS}." in judge(BY_NAME[name], NO_BETTER, TEAM).detail
    assert f"by the plan {DIAGNOSIS}." in judge(BY_NAME[name], UNCLEAR, TEAM).detail
    for row in (BETTER, A_LITTLE_BETTER, {**NO_BETTER, "plan_rule": "6 is better"}):
        assert DIAGNOSIS not in judge(BY_NAME[name], row, TEAM).detail


def test_diagnoses_belong_to_the_contrasts_with_4_and_5():
    assert {claim.contrast for claim in CLAIMS if claim.diagnosis} == {"6 v 4", "6 v 5"}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_without_a_run_every_claim_is_undecided_and_says_why(claim):
    reason = "run 6n has no predictions to score: timeout"
    judged = judge(claim, {"task": "video", "status": "undecided", "reason": reason}, TEAM)
    assert judged.verdict == "undecided" and judged.sentence.endswith(f": {reason}.")
    assert judged.sentence.startswith("Sparse autoencoder cannot be compared with")
    assert "the DL system" not in judged.sentence + judged.detail
