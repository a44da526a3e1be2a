from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from assay import AssayError
from assay.stats.multiplicity import benjamini_hochberg, holm


def test_adjusted_p_values_by_hand():
    p = np.array([0.01, 0.04, np.nan, 0.03, 0.005])
    np.testing.assert_allclose(holm(p), [0.03, 0.06, np.nan, 0.06, 0.02])
    np.testing.assert_allclose(benjamini_hochberg(p), [0.02, 0.04, np.nan, 0.04, 0.02])
    np.testing.assert_allclose(holm(np.array([0.6, 0.9])), [1, 1])


@pytest.mark.slow
def test_adjusted_p_values_equal_those_of_statsmodels():
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    rng = np.random.default_rng(0)
    for n in range(1, 20):
        p = np.round(rng.random(n) ** 3, 2)  # rounded: some are equal
        np.testing.assert_allclose(holm(p), multitest.multipletests(p, method="holm")[1], atol=1e-12)
        np.testing.assert_allclose(benjamini_hochberg(p), multitest.multipletests(p, method="fdr_bh")[1], atol=1e-12)


def test_tests_that_could_not_be_made_count_in_the_family_as_if_their_p_were_1():
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    p = np.array([0.01, np.nan, 0.004, np.nan, 0.03])
    expected = multitest.multipletests(np.where(np.isnan(p), 1.0, p), method="holm")[1]
    np.testing.assert_allclose(holm(p, family=5), np.where(np.isnan(p), np.nan, expected))
    assert (holm(p, family=5) >= holm(p))[~np.isnan(p)].all()
    np.testing.assert_array_equal(holm(p, family=3), holm(p))
    with pytest.raises(AssayError, match="family=2 is fewer than the 3 tests"):
        holm(p, family=2)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_benjamini_and_hochberg_equal_scipy(p):
    np.testing.assert_allclose(benjamini_hochberg(np.array(p)), stats.false_discovery_control(p), atol=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_corrections_grow_from_the_false_discovery_rate_to_holm_to_bonferroni(p):
    values = np.array(p)
    rising = [values, benjamini_hochberg(values), holm(values), np.minimum(len(values) * values, 1)]
    assert (np.diff(rising, axis=0) >= -1e-15).all()  # rounding


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
def test_no_p_no_adjustment(adjust):
    assert adjust(np.zeros(0)).shape == (0,) and np.isnan(adjust(np.array([np.nan]))).all()
    with pytest.raises(AssayError, match=r"p=1\.5 is not a probability"):
        adjust(np.array([0.5, 1.5]))
