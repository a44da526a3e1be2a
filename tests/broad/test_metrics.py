from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay import AssayError
from assay.broad.metrics import (
    MAP,
    METRICS,
    RMSE,
    average_precision_11pt,
    average_precisions,
    mean_average_precision,
    resampled_average_precision,
    resampled_rmse,
    rmse,
)


def obvious(truth, scores) -> Fraction:
    """The definition in exact fractions, one threshold at a time."""
    positives = sum(truth)
    points = []
    for threshold in set(scores):
        admitted = [t for t, s in zip(truth, scores, strict=True) if s >= threshold]
        points.append((Fraction(sum(admitted), positives), Fraction(sum(admitted), len(admitted))))
    return sum(max(p for r, p in points if r >= Fraction(k, 10)) for k in range(11)) / 11


# -- numbers of the plan, and of arithmetic -------------------------------------------------------------


@pytest.mark.requirement("G2")
def test_the_plans_worked_example():
    ap = average_precision_11pt(np.array([1, 0, 1, 1, 1]), np.array([0.9, 0.8, 0.6, 0.2, 0.2]))
    assert ap == pytest.approx(9.4 / 11, abs=1e-15) and ap == pytest.approx(0.854545, abs=5e-7)


def test_recall_of_three_tenths_is_three_tenths():
    """With recall in decimals 3/10 < 0.3 and so on, and this ranking comes out as 0.700535."""
    ranking = np.array([1] * 3 + [0] * 7 + [1] * 7)
    ap = average_precision_11pt(ranking, -np.arange(17.0))
    assert ap == pytest.approx(0.737968, abs=5e-7) and ap == pytest.approx(float(obvious(ranking, -np.arange(17))))


def test_constant_scores_give_the_prevalence_whatever_the_order_of_the_file():
    for truth in (np.arange(884) < 33, np.arange(884) >= 884 - 33):
        ap = average_precision_11pt(truth, np.full(884, 0.3))
        assert ap == pytest.approx(33 / 884, abs=1e-15) and ap == pytest.approx(0.037330, abs=5e-7)


def test_perfect_and_reversed_rankings():
    truth = np.array([1, 1, 0, 0, 0, 0, 0, 0])
    assert average_precision_11pt(truth, truth * 0.7) == 1
    # The first of two positives is found at rank 7 (1/7), the second at rank 8 (2/8): the latter is best throughout.
    assert average_precision_11pt(truth, np.arange(8) / 8) == pytest.approx(0.25)


@pytest.mark.requirement("G3")
def test_map_is_the_mean_over_classes():
    rng = np.random.default_rng(0)
    truth, scores = rng.random((60, 3)) < 0.3, rng.random((60, 3))
    each = [average_precision_11pt(truth[:, c], scores[:, c]) for c in range(3)]
    assert average_precisions(truth, scores).tolist() == each
    assert mean_average_precision(truth, scores) == pytest.approx(sum(each) / 3)
    assert MAP.values(truth, scores).tolist() == each


def test_rmse_of_perfect_and_constant_predictions():
    ratings = np.tile([1.0, 2.0, 3.0, 4.0, 5.0], 7)
    assert rmse(ratings, ratings) == 0
    assert rmse(ratings, np.full(35, 3.0)) == pytest.approx(np.sqrt(2), abs=1e-15)


@pytest.mark.requirement("G6")
def test_direction_belongs_to_the_metric():
    assert {name: (m.better, m.sign) for name, m in METRICS.items()} == {"MAP": ("higher", 1), "RMSE": ("lower", -1)}


# -- for all inputs -------------------------------------------------------------------------------------

rankings = st.lists(st.tuples(st.booleans(), st.integers(0, 12)), min_size=1, max_size=40).filter(
    lambda pairs: any(t for t, _ in pairs)
)


@given(rankings)
def test_average_precision_equals_the_definition_in_fractions(pairs):
    truth, scores = [t for t, _ in pairs], [s / 12 for _, s in pairs]
    # 11 roundings of numbers up to 1.
    assert average_precision_11pt(np.array(truth), np.array(scores)) == pytest.approx(
        float(obvious(truth, scores)), abs=1e-14
    )


@given(rankings, st.randoms(use_true_random=False))
def test_average_precision_knows_only_the_order_of_scores(pairs, chance):
    truth, scores = np.array([t for t, _ in pairs]), np.array([float(s) for _, s in pairs])
    order = list(range(len(pairs)))
    chance.shuffle(order)
    plain = average_precision_11pt(truth, scores)
    assert average_precision_11pt(truth[order], scores[order]) == plain
    assert average_precision_11pt(truth, np.exp(scores / 3) - 7) == plain


@given(rankings, st.integers(0, 2**32 - 1))
def test_a_draw_is_the_test_set_with_its_instances_repeated(pairs, seed):
    truth, scores = np.array([t for t, _ in pairs]), np.array([s / 12 for _, s in pairs])
    counts = np.random.default_rng(seed).integers(0, 4, size=(len(pairs), 5))
    drawn = resampled_average_precision(truth, scores[None], counts)[0]
    errors = resampled_rmse(truth, scores[None], counts)[0]
    for b, times in enumerate(counts.T):
        again, s = np.repeat(truth, times), np.repeat(scores, times)
        if again.any():
            assert drawn[b] == pytest.approx(average_precision_11pt(again, s), abs=1e-14)
        else:
            assert np.isnan(drawn[b])
        if again.size:
            assert errors[b] == pytest.approx(rmse(again, s), abs=1e-12)
        else:
            assert np.isnan(errors[b])


# -- what cannot be scored ------------------------------------------------------------------------------


def test_a_class_without_positives_is_skipped_only_when_asked():
    truth, scores = np.zeros(10), np.linspace(0, 1, 10)
    with pytest.raises(AssayError, match="truth has no positive among 10 instances"):
        average_precision_11pt(truth, scores)
    assert np.isnan(average_precision_11pt(truth, scores, missing="skip"))
    both = np.stack([truth, np.arange(10) > 7], 1)
    assert mean_average_precision(both, np.stack([scores, scores], 1), missing="skip") == 1
    with pytest.raises(AssayError, match="no positive in any of its 1 classes"):
        mean_average_precision(truth[:, None], scores[:, None], missing="skip")


def test_faults_of_predictions_are_named():
    assert MAP.fault(np.array([0.0, 1.0])) == "" and RMSE.fault(np.array([1.0, 5.0])) == ""
    assert MAP.fault(np.array([np.nan, 1.0])) == "1 of 2 predictions are not finite"
    assert MAP.fault(np.array([0.2, 1.5])) == "predictions reach from 0.2 to 1.5, MAP wants them in [0, 1]"
    assert "RMSE wants them in [1, 5]" in RMSE.fault(np.array([0.5]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: average_precision_11pt(np.ones(3), np.array([1, np.nan, 0])), "predictions has 1 values"),
        (lambda: average_precision_11pt(np.array([0, 2, 1]), np.ones(3)), "membership of a class is 0 or 1"),
        (lambda: average_precision_11pt(np.ones(3), np.ones(4)), r"truth is \(3,\) and predictions are \(4,\)"),
        (lambda: average_precision_11pt(np.ones(0), np.ones(0)), "not empty"),
        (lambda: average_precisions(np.ones(3), np.ones(3)), "give instances × labels"),
        (lambda: rmse(np.array([1, np.nan]), np.ones(2)), "truth has 1 values that are NaN or infinite"),
        (lambda: rmse(np.ones(2), np.array([1, np.inf])), "predictions has 1 values"),
    ],
)
def test_wrong_calls_say_what_is_wrong(call, message):
    with pytest.raises(AssayError, match=message):
        call()
