from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from assay import AssayError
from assay.stats.paired import (
    corrected_t_p,
    one_sided_p,
    paired_t_p,
    sign_p,
    standard_error,
    two_sided_p,
    wilcoxon_p,
)


@pytest.mark.requirement("H5")
def test_standard_error_has_n_minus_one():
    assert standard_error(np.array([1.0, 2.0, 3.0, 4.0])) == pytest.approx(np.sqrt(5 / 3) / 2)
    np.testing.assert_allclose(standard_error(np.array([[1.0, 3.0], [2.0, 2.0]]), axis=1), [1.0, 0.0])
    assert np.isnan(standard_error(np.array([3.0])))


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=20))
def test_standard_error_equals_that_of_scipy(values):
    assert standard_error(np.array(values)) == pytest.approx(stats.sem(values), rel=1e-12, abs=1e-15)


def test_the_paired_t_test_equals_that_of_scipy():
    a, b = np.random.default_rng(0).normal(size=(2, 10))
    assert paired_t_p(a - b) == pytest.approx(stats.ttest_rel(a, b).pvalue, abs=1e-12)


def test_corrected_t_by_hand():
    d = np.array([0.1, 0.2, 0.3])
    t = 0.2 / np.sqrt((1 / 3 + 0.5) * 0.01)
    assert corrected_t_p(d, n_test=50, n_train=100) == pytest.approx(2 * stats.t.sf(t, 2))
    assert corrected_t_p(d, n_test=0, n_train=100) == pytest.approx(stats.ttest_1samp(d, 0)[1])


def test_wilcoxon_over_ten_folds_cannot_fall_below_two_in_1024():
    assert wilcoxon_p(np.random.default_rng(0).random(10)) == 2 / 2**10 == pytest.approx(0.00195, abs=5e-6)
    assert sign_p(np.ones(10)) == pytest.approx(2 / 2**10)


@given(st.lists(st.integers(-50, 50).filter(bool), min_size=2, max_size=14, unique_by=abs))
def test_wilcoxon_equals_scipys_exact_test(d):
    assert wilcoxon_p(np.array(d)) == pytest.approx(stats.wilcoxon(d, method="exact").pvalue, abs=1e-12)


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=9))
def test_wilcoxon_with_ties_equals_counting_all_signs(d):
    kept = np.array([x for x in d if x])
    ranks = stats.rankdata(np.abs(kept))
    seen = ranks[kept > 0].sum()
    sums = [ranks[[bool(k >> i & 1) for i in range(len(kept))]].sum() for k in range(2 ** len(kept))]
    expected = min(1, 2 * min(np.mean(np.array(sums) <= seen), np.mean(np.array(sums) >= seen)))
    assert wilcoxon_p(np.array(d)) == pytest.approx(expected, abs=1e-12)


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=30).filter(any))
def test_the_sign_test_equals_that_of_statsmodels(d):
    descriptive = pytest.importorskip("statsmodels.stats.descriptivestats")
    assert sign_p(np.array(d)) == pytest.approx(descriptive.sign_test(d)[1], abs=1e-12)


def test_pairs_that_never_differ_are_equal():
    assert wilcoxon_p(np.zeros(10)) == 1 and sign_p(np.zeros(10)) == 1 and paired_t_p(np.zeros(10)) == 1


def test_p_of_a_mean_and_its_error():
    assert two_sided_p(1.5, 0.5) == pytest.approx(2 * stats.norm.sf(3)) == two_sided_p(-1.5, 0.5)
    assert one_sided_p(1.5, 0.5, df=4) == pytest.approx(stats.t.sf(3, 4))
    assert [one_sided_p(mean, 0.0) for mean in (1.0, 0.0, -1.0)] == [0, 0.5, 1]
    assert [two_sided_p(mean, 0.0) for mean in (1.0, 0.0, -1.0)] == [0, 1, 0]


@pytest.mark.parametrize("test", [paired_t_p, wilcoxon_p, sign_p, lambda d: corrected_t_p(d, 1, 1)])
@pytest.mark.parametrize("values", [[0.1], [0.1, np.nan], [[0.1, 0.2]]])
def test_what_cannot_be_tested_says_so(test, values):
    with pytest.raises(AssayError, match="two or more finite numbers"):
        test(np.array(values))
