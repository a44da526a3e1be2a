from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from assay import AssayError
from assay.stats.degrees_of_freedom import effective_groups, welch_satterthwaite


def test_degrees_of_freedom_are_those_of_welchs_test_by_scipy():
    rng = np.random.default_rng(0)
    for n, m in ((4, 30), (10, 8), (50, 3)):
        a, b = rng.normal(size=n), 3 * rng.normal(size=m)
        parts = [a.var(ddof=1) / n, b.var(ddof=1) / m]
        expected = stats.ttest_ind(a, b, equal_var=False).df
        assert welch_satterthwaite(parts, [n - 1, m - 1]) == pytest.approx(expected)


@given(st.floats(1e-12, 1e3), st.floats(1e-12, 1e3), st.floats(1, 50), st.floats(1, 50))
def test_the_sum_has_at_least_the_fewer_and_at_most_all_degrees(v, w, df_v, df_w):
    found = welch_satterthwaite([v, w], [df_v, df_w])
    assert min(df_v, df_w) * (1 - 1e-9) <= found <= (df_v + df_w) * (1 + 1e-9)


def test_a_known_variance_adds_no_doubt():
    assert welch_satterthwaite([1.0, 1.0], [9, np.inf]) == 36
    assert welch_satterthwaite([0.0, 1.0], [9, np.inf]) == np.inf == welch_satterthwaite([0.0, 0.0], [9, 4])


def test_equal_groups_count_in_full_and_unequal_ones_for_fewer():
    assert effective_groups(np.repeat(np.arange(12), 7)) == 12
    sizes = [400, 200, 100, 100, 50, 50, 50, 50, 25, 25, 25, 25]
    groups = np.repeat(np.arange(12), sizes)
    assert effective_groups(groups) == pytest.approx(1100**2 / np.square(sizes).sum())
    assert effective_groups(np.zeros(5)) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: welch_satterthwaite([1.0], [0]), "degrees of freedom above 0"),
        (lambda: welch_satterthwaite([-1.0], [3]), "each variance is 0 or more"),
        (lambda: welch_satterthwaite([1.0], [3, 4]), "each variance"),
        (lambda: effective_groups(np.zeros(0)), "groups is empty"),
    ],
)
def test_wrong_calls_say_what_is_wrong(call, message):
    with pytest.raises(AssayError, match=message):
        call()
