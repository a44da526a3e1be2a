from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from assay import AssayError
from assay.stats.equivalence import (
    correlated_t,
    equivalence_p,
    minimum_detectable_difference,
    noninferiority_p,
    student_posterior,
)


def test_equivalence_is_the_worse_of_two_one_sided_tests():
    # (0.02 − 0.01)/0.005 = 2 and (0.02 + 0.01)/0.005 = 6
    assert equivalence_p(0.01, 0.005**2, 0.02) == pytest.approx(stats.norm.sf(2))
    assert equivalence_p(-0.01, 0.005**2, 0.02) == pytest.approx(stats.norm.sf(2))
    assert noninferiority_p(0.01, 0.005**2, 0.02) == pytest.approx(stats.norm.sf(6))


@pytest.mark.parametrize("margin", [0.05, 0.1, 0.3])
def test_equivalence_equals_that_of_statsmodels(margin):
    weightstats = pytest.importorskip("statsmodels.stats.weightstats")
    values = np.random.default_rng(1).normal(0.05, 0.2, size=25)
    p, (_, above), (_, below) = weightstats.ztost(values, -margin, margin)
    mean, variance = float(values.mean()), float(values.var(ddof=1) / 25)
    assert equivalence_p(mean, variance, margin) == pytest.approx(p, rel=1e-10)
    assert noninferiority_p(mean, variance, margin) == pytest.approx(above, rel=1e-10)
    assert noninferiority_p(-mean, variance, margin) == pytest.approx(below, rel=1e-10)


@pytest.mark.parametrize("margin", [0.05, 0.1, 0.3])
def test_equivalence_with_students_t_equals_that_of_statsmodels_and_scipy(margin):
    weightstats = pytest.importorskip("statsmodels.stats.weightstats")
    values = np.random.default_rng(2).normal(0.05, 0.2, size=8)
    mean, variance = float(values.mean()), float(values.var(ddof=1) / 8)
    p, (_, above, _), (_, below, _) = weightstats.ttost_paired(values, np.zeros(8), -margin, margin)
    assert equivalence_p(mean, variance, margin, df=7) == pytest.approx(p, rel=1e-10)
    assert noninferiority_p(mean, variance, margin, df=7) == pytest.approx(above, rel=1e-10)
    assert noninferiority_p(-mean, variance, margin, df=7) == pytest.approx(below, rel=1e-10)
    one_sided = stats.ttest_1samp(values, -margin, alternative="greater")
    assert noninferiority_p(mean, variance, margin, df=7) == pytest.approx(one_sided.pvalue, rel=1e-10)


def test_the_minimum_detectable_difference_of_students_t_has_its_power_by_the_noncentral_t():
    for df in (5, 11, 40):
        mdd = minimum_detectable_difference(1.0, df=df)
        assert stats.nct(df, mdd).sf(stats.t(df).ppf(0.975)) == pytest.approx(0.8, abs=0.02)


def test_the_minimum_detectable_difference_is_detected_four_times_in_five():
    mdd = minimum_detectable_difference(0.01)
    assert mdd == pytest.approx(0.28, abs=5e-4)
    assert stats.norm.sf(1.959964 - mdd / 0.1) == pytest.approx(0.8, abs=1e-6)


def test_the_minimum_detectable_difference_has_its_power_by_statsmodels():
    power = pytest.importorskip("statsmodels.stats.power")
    for level, wanted in ((0.05, 0.8), (0.01, 0.95)):
        mdd = minimum_detectable_difference(0.01, level, wanted)
        # Theirs counts a significant difference in the wrong direction too, which is rarer than 1 in 100,000.
        assert power.normal_power(mdd / 0.1, nobs=1, alpha=level) == pytest.approx(wanted, abs=1e-5)


def test_a_posterior_without_variance_is_certain():
    assert student_posterior(0.1, 0.0, 9, 0.02).better == 1
    assert student_posterior(0.01, 0.0, 9, 0.02).equal == 1
    assert student_posterior(-0.1, 0.0, 9, 0.02).worse == 1


def test_an_uncorrelated_posterior_without_a_region_is_the_one_sided_t_test():
    d = np.random.default_rng(0).normal(0.1, 0.2, size=10)
    assert correlated_t(d, rho=0.0, rope=0.0).worse == pytest.approx(stats.ttest_1samp(d, 0, alternative="greater")[1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: noninferiority_p(0.0, 1.0, -0.1), "margin=-0.1"),
        (lambda: equivalence_p(0.0, 1.0, float("nan")), "margin=nan"),
        (lambda: correlated_t(np.ones(3), 1.0, 0.1), "rho=1.0"),
        (lambda: correlated_t(np.ones(3), 0.1, -0.1), "rope=-0.1"),
        (lambda: correlated_t(np.ones(1), 0.1, 0.1), "two or more finite numbers"),
    ],
)
def test_wrong_calls_say_what_is_wrong(call, message):
    with pytest.raises(AssayError, match=message):
        call()
