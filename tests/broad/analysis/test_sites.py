from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from assay import AssayError
from assay.broad.analysis.scores import RunResult, TaskTruth
from assay.broad.analysis.sites import Site, compare_sites
from assay.broad.metrics import MAP, mean_average_precision

RNG = np.random.default_rng(0)
TRUTH = TaskTruth("video", MAP, ("a", "b"), RNG.random((40, 2)) < 0.3)
SCORES = np.clip(0.4 * TRUTH.targets + 0.6 * RNG.random((3, 40, 2)), 0.05, 0.95)
PARTITION = {"video": "abc"}


def site(predictions, partitions=PARTITION, **more):
    return Site([RunResult("video", "6n", 6, "n", "done", predictions)], partitions, **more)


def compared(a, b, **more):
    (row,) = compare_sites(a, b, [TRUTH], **more).to_dict("records")
    return row


def test_equal_predictions_are_identical():
    row = compared(site(SCORES), site(SCORES.copy()))
    assert (row["agreement"], row["largest_difference"], row["metric_difference"]) == ("identical", 0, 0)
    assert row["rank_correlation"] == pytest.approx(1)
    assert row["mean_a"] == pytest.approx(np.mean([mean_average_precision(TRUTH.targets, s) for s in SCORES]))


def test_rounding_is_numerically_close():
    row = compared(site(SCORES), site(SCORES + 1e-7))
    assert row["agreement"] == "numerically close" and row["largest_difference"] == pytest.approx(1e-7)
    assert compared(site(SCORES), site(SCORES + 1e-7), tolerance=1e-8)["agreement"] == "same conclusion"


def test_a_monotone_change_keeps_ranks_metric_and_conclusion():
    row = compared(site(SCORES), site(SCORES**2))
    assert row["agreement"] == "same conclusion" and row["rank_correlation"] == pytest.approx(1)
    assert row["metric_difference"] == 0 and row["largest_difference"] == pytest.approx((SCORES - SCORES**2).max())


@pytest.mark.requirement("A6")
def test_other_scores_are_another_conclusion():
    row = compared(site(SCORES), site(1 - SCORES))
    assert row["agreement"] == "different conclusion" and row["rank_correlation"] == pytest.approx(-1)
    assert row["metric_difference"] < -0.02


def test_verdicts_decide_where_both_sites_have_them():
    key = ("video", "6n")
    yes, no = ({"verdicts": {key: (verdict,)}} for verdict in ("supported", "undecided"))
    assert compared(site(SCORES, **yes), site(1 - SCORES, **yes))["agreement"] == "same conclusion"
    assert compared(site(SCORES, **yes), site(SCORES**2, **no))["agreement"] == "different conclusion"


def test_rank_correlation_is_spearmans_mean_over_folds_and_labels():
    other = np.clip(SCORES + RNG.normal(0, 0.05, SCORES.shape), 0, 1)
    each = [stats.spearmanr(SCORES[f, :, c], other[f, :, c])[0] for f in range(3) for c in range(2)]
    assert compared(site(SCORES), site(other))["rank_correlation"] == pytest.approx(np.mean(each))
    assert np.isnan(compared(site(SCORES), site(np.full_like(SCORES, 0.5)))["rank_correlation"])
    flat = site(np.full_like(SCORES, 0.5))
    assert compared(flat, site(np.full_like(SCORES, 0.6)))["rank_correlation"] == 1


def test_the_first_stage_that_differs_is_named():
    key = ("video", "6n")
    a = site(SCORES, stages={key: {"preprocess": "p", "representation": "r", "chosen": "c"}})
    b = site(SCORES**2, stages={key: {"preprocess": "p", "representation": "x", "chosen": "y"}})
    assert compared(a, b)["first_differing_stage"] == "representation"
    assert compared(a, a)["first_differing_stage"] == ""


def test_what_cannot_be_compared_says_why():
    assert compared(site(SCORES), site(SCORES, {"video": "xyz"}))["agreement"] == "other partition"
    assert compared(site(SCORES), site(None))["agreement"] == "only at a"
    assert compared(site(None), site(SCORES))["agreement"] == "only at b"
    assert compared(site(None), site(None))["agreement"] == "nothing to compare"
    assert compared(site(SCORES), site(SCORES[:2]))["agreement"] == "other shape"
    more = replace(site(SCORES).results[0], run="5n")
    table = compare_sites(site(SCORES), Site([*site(SCORES).results, more], PARTITION), [TRUTH])
    assert table.agreement.tolist() == ["identical", "only at b"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compare_sites(site(SCORES), Site([], PARTITION), [TRUTH]), "the sites share no run"),
        (lambda: compare_sites(site(SCORES), site(SCORES), []), "task 'video' has no truth"),
        (lambda: compare_sites(site(SCORES), site(SCORES + 1), [TRUTH]), "site b: predictions reach"),
    ],
)
def test_wrong_calls_say_what_is_wrong(call, message):
    with pytest.raises(AssayError, match=message):
        call()
