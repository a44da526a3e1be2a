from __future__ import annotations

import importlib.util
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from assay import AssayError
from assay.broad.analysis.two_component import (
    resampled_scores,
    rmse_test_variance,
    standard_errors_apart,
    two_component,
    with_folds_redrawn,
)
from assay.broad.metrics import MAP, RMSE, average_precision_11pt, rmse
from assay.stats.bootstrap import counts
from assay.stats.equivalence import noninferiority_p


def ratings(n=400, folds=3, seed=0):
    """Truth (n) and predictions of two systems (each folds × n), as correlated as systems are."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(1, 6, size=n).astype(float)
    common = rng.normal(size=n)
    a, b = (np.clip(truth + 0.8 * common + 0.5 * rng.normal(size=(folds, n)), 1, 5) for _ in range(2))
    return truth, a, b


# -- the plan's rule -----------------------------------------------------------------------------------


def test_the_plans_rule_asks_whether_intervals_overlap():
    a = np.array([1.0, 2.0, 3.0])  # 2 ± 0.577
    assert not standard_errors_apart(a, a + 1.15) and standard_errors_apart(a, a + 1.16)
    assert standard_errors_apart(a, a - 1.16)


# -- the two-component interval -------------------------------------------------------------------------


def test_two_components_add_and_set_the_width():
    d = np.array([0.02, 0.05, 0.03, 0.06])
    found = two_component(d, v_test=0.0001)
    error = np.sqrt(d.var(ddof=1) / 4 + 0.0001)
    assert found.variance == pytest.approx(error**2) and found.v_test == 0.0001
    assert (found.low, found.high) == pytest.approx((0.04 - 1.959964 * error, 0.04 + 1.959964 * error), abs=1e-8)
    assert found.p == pytest.approx(2 * stats.norm.sf(0.04 / error))
    assert found.df == np.inf


def test_without_test_variance_t_is_the_paired_t_test():
    d = np.random.default_rng(0).normal(0.1, 0.2, size=10)
    found, scipy = two_component(d, 0.0, units=400), stats.ttest_1samp(d, 0)
    assert found.p == pytest.approx(scipy.pvalue, abs=1e-12)
    limits = scipy.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((limits.low, limits.high))


def test_folds_and_units_together_are_welchs_test():
    """Two samples whose squared errors are the two components: scipy's interval of the difference of their means."""
    rng = np.random.default_rng(4)
    folds, units = rng.normal(0.1, 0.2, size=10), rng.normal(0.0, 0.3, size=8)
    units -= units.mean()
    found = two_component(folds, units.var(ddof=1) / 8, units=8)
    welch = stats.ttest_ind(folds, units, equal_var=False)
    limits = welch.confidence_interval(0.95)
    assert (found.df, found.p) == pytest.approx((welch.df, welch.pvalue))
    assert (found.low, found.high) == pytest.approx((limits.low, limits.high))


def test_with_many_units_and_steady_folds_the_law_is_normal():
    d = 0.04 + 1e-4 * np.arange(10)
    few, many = (two_component(d, 0.0001, units=units) for units in (9, 10**6))
    assert many.high == pytest.approx(two_component(d, 0.0001).high, rel=1e-5)
    assert few.high - few.difference == pytest.approx(2.306 * np.sqrt(few.variance), rel=1e-3)  # t with 8


def test_groups_that_are_worth_one_have_one_degree_of_freedom():
    assert two_component(np.array([0.1, 0.1]), 0.01, units=1.02).df == pytest.approx(1)


def test_the_variance_over_groups_is_the_cluster_robust_one_of_statsmodels():
    """Mean of the influences with errors clustered by group, whose small-sample factor is G/(G − 1)."""
    api = pytest.importorskip("statsmodels.api")
    truth, a, b = ratings(120)
    groups = np.random.default_rng(6).integers(0, 9, size=120)

    def influence(predicted):
        squares = (predicted - truth) ** 2
        root = np.sqrt(squares.mean(axis=1, keepdims=True))
        return ((squares - root**2) / (2 * root)).mean(axis=0)

    fitted = api.OLS(influence(a) - influence(b), np.ones(120))
    robust = fitted.fit(cov_type="cluster", cov_kwds={"groups": groups}).cov_params()[0, 0]
    assert rmse_test_variance(truth, a, b, groups) * 9 / 8 == pytest.approx(robust, rel=1e-9)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=12), st.floats(0, 1), st.sampled_from([None, 3, 400]))
def test_the_interval_excludes_zero_just_when_p_is_small(d, v_test, units):
    found = two_component(np.array(d), v_test, units=units)
    if abs(found.p - 0.05) > 1e-9:
        assert (found.low > 0 or found.high < 0) == (found.p < 0.05)


def test_systems_that_never_differ_are_equal():
    found = two_component(np.zeros(10), 0.0)
    assert (found.difference, found.low, found.high, found.p) == (0, 0, 0, 1)


def test_noninferiority_is_the_lower_limit_above_minus_the_margin():
    d = np.random.default_rng(2).normal(-0.01, 0.01, size=10)
    found = two_component(d, 0.00002)
    for margin in (-found.low * 0.99, -found.low * 1.01):
        assert (noninferiority_p(found.difference, found.variance, margin) < 0.025) == (found.low > -margin)


# -- test sets drawn again ------------------------------------------------------------------------------


def test_draws_are_resampled_test_sets_and_the_same_for_all_systems():
    rng = np.random.default_rng(1)
    truth, scores = rng.random((50, 2)) < 0.4, rng.random((3, 50, 2))
    drawn = resampled_scores(MAP, truth, scores, draws=20, seed=7)
    assert drawn.shape == (3, 2, 20)
    np.testing.assert_array_equal(resampled_scores(MAP, truth, scores[1:2], draws=20, seed=7)[0], drawn[1])
    picks = np.random.default_rng(7).integers(50, size=(20, 50))
    for b, row in enumerate(picks):
        expected = average_precision_11pt(truth[row, 1], scores[2, row, 1])
        assert drawn[2, 1, b] == pytest.approx(expected, abs=1e-14)


def test_draws_do_not_depend_on_how_many_are_held_at_once(monkeypatch):
    truth, a, _ = ratings(60)
    whole = resampled_scores(RMSE, truth[:, None], a[..., None], draws=30)
    monkeypatch.setattr("assay.broad.analysis.two_component.counts", partial(counts, at_once=7 * 60))
    np.testing.assert_allclose(resampled_scores(RMSE, truth[:, None], a[..., None], draws=30), whole, atol=1e-12)


def test_whole_groups_are_drawn():
    truth, a, _ = ratings(40)
    groups = np.repeat([11, 5, 8, 3], 10)
    drawn = resampled_scores(RMSE, truth[:, None], a[..., None], draws=15, seed=3, groups=groups)
    names = np.array([3, 5, 8, 11])
    for b, row in enumerate(np.random.default_rng(3).integers(4, size=(15, 4))):
        members = np.concatenate([np.flatnonzero(groups == names[g]) for g in row])
        assert drawn[0, 0, b] == pytest.approx(rmse(truth[members], a[0, members]), abs=1e-12)


def test_groups_of_one_are_instances():
    truth, a, _ = ratings(40)
    plain = resampled_scores(RMSE, truth[:, None], a[..., None], draws=15)
    np.testing.assert_array_equal(resampled_scores(RMSE, truth[:, None], a[..., None], 15, groups=np.arange(40)), plain)


@pytest.mark.parametrize("grouped", [False, True])
def test_the_closed_form_for_rmse_equals_the_bootstrap(grouped):
    truth, a, b = ratings(2000, folds=4)
    groups = np.repeat(np.arange(400), 5) if grouped else None
    if grouped:  # what reviews of a restaurant share makes the groups matter
        a = np.clip(a + np.repeat(np.random.default_rng(5).exponential(1.0, 400), 5), 1, 5)
    drawn = resampled_scores(RMSE, truth[:, None], np.concatenate([a, b])[..., None], draws=4000, groups=groups)[:, 0]
    sampled = (drawn[:4].mean(axis=0) - drawn[4:].mean(axis=0)).var(ddof=1)
    exact = rmse_test_variance(truth, a, b, groups)
    # A variance of 4000 draws has a relative error of √(2/4000) = 2.2 %; four of them.
    assert sampled == pytest.approx(exact, rel=0.09)
    if grouped:
        assert exact > 1.5 * rmse_test_variance(truth, a, b)


def test_the_closed_form_is_zero_for_equal_or_faultless_systems():
    truth, a, _ = ratings()
    assert rmse_test_variance(truth, a, a) == 0
    assert rmse_test_variance(truth, np.stack([truth] * 3), np.stack([truth] * 3)) == 0


def test_the_closed_form_for_one_system_is_textbook():
    """Var(√m) ≈ Var(m)/4m, m the mean squared error."""
    truth, a, _ = ratings(300, folds=1)
    squares = (a[0] - truth) ** 2
    expected = squares.var() / 300 / (4 * squares.mean())
    assert rmse_test_variance(truth, a, truth[None]) == pytest.approx(expected, rel=1e-12)


def test_folds_are_redrawn_alike_for_all_systems():
    draws = np.zeros((2, 5, 400)) + np.arange(5.0)[None, :, None]
    draws[1] += 10
    means = with_folds_redrawn(draws)
    np.testing.assert_allclose(means[1] - means[0], 10)
    np.testing.assert_allclose(means[0], np.random.default_rng(0).integers(5, size=(5, 400)).mean(axis=0))
    # Means of 5 draws from 0…4: mean 2, variance 2/5; 400 of them.
    assert means[0].mean() == pytest.approx(2, abs=5 * np.sqrt(0.4 / 400))
    assert means[0].var() == pytest.approx(0.4, rel=0.35)


# -- false alarms ---------------------------------------------------------------------------------------


def benchmark():
    path = Path(__file__).parents[3] / "benchmarks" / "false_alarms.py"
    spec = importlib.util.spec_from_file_location("false_alarms", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["false_alarms"] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("groups", [(), (1,) * 9], ids=["instances", "few groups"])
def test_only_two_components_keep_their_level_under_the_plans_design(groups):
    false_alarms = benchmark()
    n = 100
    rates = false_alarms.simulate(false_alarms.Design(RMSE, 60, 300, groups=groups, dimensions=5), n)
    # Eight contrasts of an evaluation share runs and a test set; as if they were two, a true rate of 7 % leaves these
    # bounds less than one time in 1,000. The family and the support are of n and 2·n.
    assert rates.contrast <= stats.binom.ppf(0.999, 2 * n, 0.07) / (2 * n)
    assert rates.family <= stats.binom.ppf(0.999, n, 0.07) / n
    assert max(rates.support.values()) <= stats.binom.ppf(0.999, 2 * n, 0.05) / (2 * n)
    assert rates.rules["plan: standard errors apart"] > 2 * rates.contrast
    assert rates.rules["paired t over folds"] > 2 * rates.contrast
    # An SD from 100 repetitions of eight contrasts has a standard error of about 5 %; three of them.
    assert rates.estimated_sd == pytest.approx(rates.true_sd, rel=0.15)


def test_equal_systems_are_equal_and_worse_ones_worse_in_the_simulation():
    false_alarms = benchmark()
    design = false_alarms.Design(RMSE, 60, 300, groups=(1,) * 9, dimensions=5)
    null = design.contrasts(0, false_alarms.ALL, draws=20)
    assert len(null) == 8 and {row["n_family"] for row in null} == {8} and {row["n_groups"] for row in null} == {9}
    assert all(row["difference"] < -0.05 for row in design.contrasts(0, false_alarms.EDGE, more_noise=2.0, draws=20))


# -- what cannot be tested ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: two_component(np.array([0.1]), 0.0), "two or more finite numbers"),
        (lambda: two_component(np.array([0.1, np.nan]), 0.0), "two or more finite numbers"),
        (lambda: two_component(np.ones(3), -1.0), "v_test=-1.0 is not a variance"),
        (lambda: two_component(np.ones(3), float("nan")), "v_test=nan is not a variance"),
        (lambda: two_component(np.ones(3), 0.0, confidence=95), "confidence=95 is not between 0 and 1"),
        (lambda: resampled_scores(RMSE, np.ones((4, 1)), np.ones((2, 5, 1))), r"truth is \(4, 1\)"),
        (lambda: resampled_scores(RMSE, np.ones((4, 1)), np.ones((2, 4, 1)), draws=1), "draws=1"),
        (
            lambda: resampled_scores(
                RMSE, np.ones((4, 1)), np.ones((2, 4, 1)), groups=np.arange(4), among=np.arange(3)
            ),
            "groups must name one",
        ),
    ],
)
def test_wrong_calls_say_what_is_wrong(call, message):
    with pytest.raises(AssayError, match=message):
        call()
