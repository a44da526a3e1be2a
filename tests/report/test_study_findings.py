"""What the page of a study says first: nothing is called good by chance."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from assay.report.study_findings import study_findings
from assay.studies import judge
from assay.studies.ranking import Scoring

LEVELS = np.indices((2, 3, 2, 3)).reshape(4, -1)
GRID = {f"h{k}": codes for k, codes in enumerate(LEVELS)}


def found(measures: dict[str, np.ndarray], gap: np.ndarray, directions: dict[str, int] | None = None):
    table = pd.DataFrame({"network": [f"n{i}" for i in range(len(gap))], **GRID, "gap": gap})
    predictors = pd.DataFrame(measures, index=table["network"])
    study = judge(table, predictors, list(GRID), Scoring(draws=60, permutations=99), directions=directions)
    items = study_findings(study.ranking, study.comparisons, study.about).items
    return {question: (tone, answer) for tone, question, answer in items}


def test_the_best_of_many_measures_of_noise_is_not_called_good():
    rng = np.random.default_rng(0)
    gap = LEVELS[1] + rng.normal(size=36)
    said = found({f"noise {i}": rng.normal(size=36) for i in range(25)}, gap)
    assert said["Which measure predicts the gap best?"][0] == "open"
    tone, chance = said["Is that more than chance?"]
    assert tone == "open" and "0 of 25 measures" in chance and "36 networks" in chance
    tone, better = said["Is it better than the others?"]
    assert tone == "open" and better.startswith("Not asked: noise ") and "cannot be told from chance" in better
    assert "is better than" not in said["Is it more than training accuracy or a hyper-parameter says?"][1]


@pytest.mark.parametrize(("p", "asked"), [(0.088, False), (0.05, True)])
def test_a_measure_that_is_not_good_is_called_better_than_nothing(p, asked):
    """Of 40 networks the best measure was said to be better than 3 of 14 at p = 0.088 for all of these at once."""
    columns = {"n": 40, "status": "ok", "cmi": 0.3, "cmi_distinct": 0.3, "tau": 0.5, "p_max": p, "chance": 0.3}
    ends = {"cmi_distinct_low": 0.1, "cmi_distinct_high": 0.5}
    ranking = pd.DataFrame({"measure": ["sharp", "dull", "control: depth"], **columns, **ends})
    ranking["kind"] = ["measure", "measure", "control"]
    comparisons = pd.DataFrame({"other": ["dull", "control: depth"], "difference": 0.2, "p_max": 0.01})
    about = {"sizes": [2], "left_out": [], "incomplete": None, "permutations": 99}
    said = {question: answer for _, question, answer in study_findings(ranking, comparisons, about).items}
    better = said["Is it better than the others?"]
    assert better.startswith("sharp is better than 2 of 2 others" if asked else "Not asked: sharp cannot be told from")
    control = said["Is it more than training accuracy or a hyper-parameter says?"]
    assert ("sharp is better than it" in control) == asked == ("is not asked" not in control)


def test_a_measure_that_follows_the_gap_is_good_and_said_to_go_against_expectation():
    rng = np.random.default_rng(1)
    gap = LEVELS[1] + rng.normal(size=36)
    measures = {"good": -gap + 0.2 * rng.normal(size=36)} | {f"noise {i}": rng.normal(size=36) for i in range(5)}
    said = found(measures, gap, {"good": 1})
    tone, answer = said["Which measure predicts the gap best?"]
    assert tone == "good" and answer.startswith("good: CMI") and "as PGDL scores it" in answer
    assert "1 of 6 measures" in said["Is that more than chance?"][1]
    assert said["In the direction that is expected?"] == (
        "bad",
        "Against it: good (falls with the gap, expected: rises).",
    )


def test_of_few_networks_nothing_is_good_where_the_best_is_not_better_than_chance():
    """A hyper-parameter alone has no CMI at all in any resample, so that noise was called better than it."""
    codes = np.indices((3, 2, 2)).reshape(3, -1)
    rng = np.random.default_rng(2)
    for _ in range(6):
        table = pd.DataFrame({"network": [f"n{i}" for i in range(12)], **dict(zip("abc", codes, strict=True))})
        table["gap"] = rng.normal(size=12)
        noise = pd.DataFrame(rng.normal(size=(12, 5)), index=table["network"]).rename(columns="m{}".format)
        study = judge(table, noise, list("abc"), Scoring(draws=60, permutations=99))
        items = study_findings(study.ranking, study.comparisons, study.about).items
        if study.ranking["p_max"].min() > 0.05:
            assert "good" not in {tone for tone, question, _ in items if "together" not in question}


def test_of_six_networks_no_p_at_equal_controls_is_given():
    """Two degrees of freedom are left: some of 20 measures of noise would be called correlated in most corpora."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"network": list("abcdef"), "width": [1, 1, 1, 2, 2, 2], "decay": [0, 1, 2, 0, 1, 2]})
    table = table.assign(gap=rng.normal(size=6), train_accuracy=0.9 + 0.1 * rng.random(6))
    noise = pd.DataFrame(rng.normal(size=(6, 20)), index=table["network"]).rename(columns="m{}".format)
    study = judge(table, noise, ["width", "decay"], Scoring(sizes=(1,), draws=60, permutations=99))
    assert study.ranking["partial_p_max"].isna().all() and study.about["controls"].endswith("and training accuracy")
    said = " ".join(answer for _, _, answer in study_findings(study.ranking, study.comparisons, study.about).items)
    assert "too few to say whether that is more than chance" in said and "nan" not in said
    assert "given any 1 hyper-parameter," in said and "more than some 1 hyper-parameter would" in said
    alone = judge(table, noise, ["width", "decay"], Scoring(sizes=(0,), draws=60, permutations=99))
    said = " ".join(answer for _, _, answer in study_findings(alone.ranking, alone.comparisons, alone.about).items)
    assert "given no hyper-parameter," in said and "that say nothing would reach" in said
    without = judge(table.drop(columns="train_accuracy"), noise, ["width", "decay"], Scoring(sizes=(1,), draws=0))
    assert without.about["controls"] == "each level of every hyper-parameter"


def test_counts_of_measures_agree_and_what_differs_is_said():
    """Of nine measures one is missing in a network and one is the same in all: eight are scored, seven compared."""
    rng = np.random.default_rng(3)
    gap = LEVELS[1] + rng.normal(size=36)
    measures = {f"noise {i}": rng.normal(size=36) for i in range(6)} | {"good": gap + 0.1 * rng.normal(size=36)}
    measures |= {"same": np.ones(36), "lacking": gap.copy()}
    measures["lacking"][5] = np.nan
    said = {question: answer for question, (_, answer) in found(measures, gap).items()}
    assert said["Is that more than chance?"].startswith(
        "1 of 8 scored measures are: the best of 8 measures and 5 controls"
    )
    assert "for all of these at once" in said["Is that more than chance?"]
    others = " of 11 others (6 measures and 5 controls; left out: 1 that no network differs in): "
    assert others in said["Is it better than the others?"]
    assert "of 8 scored measures have more CMI" in said["Is it more than training accuracy or a hyper-parameter says?"]
    assert said["What could not be scored?"] == "lacking (missing in 1 network: n5)"


def test_a_study_of_an_earlier_version_is_not_judged():
    ranking = pd.DataFrame(
        {"measure": ["m"], "n": 9, "status": "ok", "cmi": 0.3, "cmi_distinct": 0.3, "tau": 0.5}
        | {f"cmi_distinct_{end}": [0.3] for end in ("low", "high")}
    )
    items = study_findings(ranking, pd.DataFrame(), {"sizes": [2], "left_out": [], "incomplete": None}).items
    assert all(tone == "open" for tone, _, _ in items) and "study the corpus again" in items[1][2]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_of_measures_that_cannot_be_scored_the_page_says_so(bad):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"network": [f"n{i}" for i in range(16)], "width": np.arange(16) % 2, "gap": rng.random(16)})
    values = pd.DataFrame({"some": rng.random(16)}, index=table["network"])
    values.loc["n3", "some"] = bad
    result = judge(table.assign(depth=np.arange(16) // 2 % 2), values, ["width", "depth"], Scoring(draws=20))
    findings = study_findings(result.ranking, result.comparisons, result.about)
    items = {question: answer for _, question, answer in findings.items}
    answer = items["Which measure predicts the gap best?"]
    assert answer == "Not to be said: no measure is there, and finite, in all networks."
    assert "some (" in items["What could not be scored?"]
