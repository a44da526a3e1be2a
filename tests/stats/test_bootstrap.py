from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from assay import AssayError
from assay.stats.bootstrap import (
    bootstrap_interval,
    counts,
    crossed_picks,
    multinomial_counts,
    percentile_interval,
    picks,
    ranking_stability,
)

seeds = st.integers(0, 2**32 - 1)


def all_counts(*args, **options):
    return np.concatenate(list(counts(*args, **options)))


# -- picks ----------------------------------------------------------------------------------------------


@given(st.integers(1, 300), st.integers(1, 5), seeds)
def test_picks_are_the_rows_of_one_table_of_random_numbers(n, draws, seed):
    np.testing.assert_array_equal(list(picks(n, draws, seed)), np.random.default_rng(seed).integers(n, size=(draws, n)))


def test_a_generator_goes_on_where_it_stands():
    rng = np.random.default_rng(3)
    parts = [*picks(9, 2, rng), *picks(9, 3, rng)]
    np.testing.assert_array_equal(parts, list(picks(9, 5, 3)))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), seeds)
def test_with_strata_every_unit_is_replaced_by_one_of_its_own_stratum(strata, seed):
    strata = np.array(strata)
    members = [np.flatnonzero(strata == s) for s in strata]
    rng = np.random.default_rng(seed)
    for drawn in picks(len(strata), 4, seed, strata=strata):
        np.testing.assert_array_equal(strata[drawn], strata)
        places = rng.integers([len(m) for m in members])
        np.testing.assert_array_equal(drawn, [m[place] for m, place in zip(members, places, strict=True)])


def test_one_stratum_is_none():
    np.testing.assert_array_equal(list(picks(7, 5, 1, strata=np.zeros(7))), list(picks(7, 5, 1)))


def test_the_variance_of_a_stratified_mean_is_textbook():
    """Σ_s (n_s/n)²·σ_s²/n_s: what strata differ by does not count."""
    strata = np.repeat([0, 1], [30, 70])
    values = np.random.default_rng(0).normal(100.0 * strata, 1 + strata)
    expected = sum((len(x) / 100) ** 2 * x.var() / len(x) for x in (values[:30], values[30:]))
    drawn = [values[units].mean() for units in picks(100, 4000, strata=strata)]
    # A variance of 4000 draws has a relative error of √(2/4000) = 2.2 %; four of them.
    assert np.var(drawn, ddof=1) == pytest.approx(expected, rel=0.09)


def test_crossed_factors_are_drawn_in_turn_in_each_resample():
    rng = np.random.default_rng(5)
    resamples = list(crossed_picks((6, 3), 4, seed=5))
    assert len(resamples) == 4
    for inputs, noise in resamples:
        np.testing.assert_array_equal(inputs, rng.integers(6, size=6))
        np.testing.assert_array_equal(noise, rng.integers(3, size=3))


def test_the_variance_of_a_crossed_mean_is_the_sum_of_both_parts():
    """Var = σ_a²/n + σ_b²/m for a table of a_i + b_j."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=40), 2 * rng.normal(size=20)
    table = a[:, None] + b
    drawn = [table[np.ix_(i, j)].mean() for i, j in crossed_picks(table.shape, 4000)]
    assert np.var(drawn, ddof=1) == pytest.approx(a.var() / 40 + b.var() / 20, rel=0.09)


# -- counts ---------------------------------------------------------------------------------------------


@given(st.integers(1, 60), st.integers(1, 8), st.integers(1, 500), seeds)
def test_counts_are_those_of_the_picks_however_many_are_held_at_once(n, draws, at_once, seed):
    expected = [np.bincount(units, minlength=n) for units in picks(n, draws, seed)]
    chunks = list(counts(n, draws, seed, at_once=at_once))
    assert all(len(chunk) <= max(1, at_once // n) for chunk in chunks)
    np.testing.assert_array_equal(np.concatenate(chunks), expected)


def test_weights_give_what_the_list_gives():
    values = np.random.default_rng(1).normal(size=50)
    weighted = all_counts(50, 20, 7) @ values / 50
    np.testing.assert_allclose(weighted, [values[units].mean() for units in picks(50, 20, 7)], atol=1e-14)


def test_whole_groups_are_drawn():
    groups = np.repeat([11, 5, 8, 3], [4, 3, 2, 1])
    names = np.array([3, 5, 8, 11])
    drawn = all_counts(10, 15, 3, groups=groups)
    for row, units in zip(drawn, picks(4, 15, 3), strict=True):
        members = np.concatenate([np.flatnonzero(groups == names[g]) for g in units])
        np.testing.assert_array_equal(row, np.bincount(members, minlength=10))


def test_groups_of_one_are_instances():
    np.testing.assert_array_equal(all_counts(40, 15, groups=np.arange(40)), all_counts(40, 15))


def test_data_sets_that_draw_among_the_same_groups_share_draws():
    groups = np.array(["a", "a", "b", "c", "c", "d"])
    whole = all_counts(6, 12, 2, groups=groups)
    for part in (slice(0, 3), slice(2, 6), slice(5, 6)):
        some = groups[part]
        np.testing.assert_array_equal(all_counts(len(some), 12, 2, groups=some, among=groups), whole[:, part])


def test_groups_may_be_drawn_within_strata():
    groups, strata_of_groups = np.array([0, 0, 1, 2, 2, 3]), np.array(["x", "x", "y", "y"])
    drawn = all_counts(6, 50, groups=groups, strata=strata_of_groups)
    expected = [np.bincount(units, minlength=4)[groups] for units in picks(4, 50, strata=strata_of_groups)]
    np.testing.assert_array_equal(drawn, expected)
    times = drawn[:, [0, 2, 3, 5]]
    assert (times[:, :2].sum(axis=1) == 2).all() and (times[:, 2:].sum(axis=1) == 2).all()


def test_multinomial_counts_have_the_law_of_counts():
    n, draws = 12, 20_000
    drawn = multinomial_counts(n, draws, 4)
    np.testing.assert_array_equal(drawn, np.random.default_rng(4).multinomial(n, np.full(n, 1 / n), size=draws))
    for some in (drawn, all_counts(n, draws, 4)):
        assert (some.sum(axis=1) == n).all()
        # Binomial(12, 1/12): mean 1, variance 11/12; five standard errors of 240,000 counts.
        assert some.mean() == 1 and some.var() == pytest.approx(11 / 12, abs=5 * np.sqrt(2 / 240_000))
        assert (some == 0).mean() == pytest.approx((11 / 12) ** 12, abs=5 * np.sqrt(0.23 / 240_000))


# -- intervals ------------------------------------------------------------------------------------------


def test_the_interval_of_95_percent_ends_at_exactly_the_quantiles_0025_and_0975():
    drawn = np.random.default_rng(0).normal(size=(199, 2))
    np.testing.assert_array_equal(percentile_interval(drawn), np.quantile(drawn, (0.025, 0.975), axis=0))
    np.testing.assert_array_equal(percentile_interval(drawn, 0.9), np.quantile(drawn, (0.05, 0.95), axis=0))


def test_without_draws_there_is_no_interval():
    assert np.isnan(percentile_interval([])).all()
    assert np.isnan(percentile_interval(np.array([1.0, np.nan, 2.0]))).all()
    assert np.isnan(bootstrap_interval(np.arange(5.0), np.mean, 0)).all()
    assert np.isnan(bootstrap_interval(np.zeros(0), np.mean, 10)).all()


def test_an_interval_is_of_the_statistic_of_resampled_lists():
    values = np.random.default_rng(0).normal(size=(30, 2))
    rng = np.random.default_rng(9)
    drawn = [np.median(values[rng.integers(30, size=30)], axis=0) for _ in range(80)]
    expected = np.quantile(drawn, (0.025, 0.975), axis=0)
    np.testing.assert_array_equal(bootstrap_interval(values, lambda x: np.median(x, axis=0), 80, 9), expected)


def test_intervals_equal_those_of_scipy():
    """scipy draws in one table, as we do row by row."""
    values = np.random.default_rng(2).exponential(size=40)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=300, method="percentile", rng=np.random.default_rng(6))
    np.testing.assert_allclose(bootstrap_interval(values, np.mean, 300, 6), theirs.confidence_interval, rtol=1e-14)


def test_the_interval_of_a_mean_is_textbook():
    values = np.random.default_rng(0).normal(size=400)
    low, high = bootstrap_interval(values, np.mean, 4000)
    reach = 1.959964 * values.std() / 20
    # A quantile at 2.5 % of 4000 draws has a standard error of √(0.025·0.975/4000)/φ(1.96) = 0.042 SD; four of them.
    assert float(low) == pytest.approx(values.mean() - reach, abs=0.17 * reach / 1.96)
    assert float(high) == pytest.approx(values.mean() + reach, abs=0.17 * reach / 1.96)


def test_ranking_stability_counts_draws_in_order():
    draws = np.array([[3, 1, 3, 3], [2, 2, 1, 2], [1, 3, 2, 2.0]])
    assert ranking_stability(np.array([0.9, 0.8, 0.7]), draws) == 0.25
    assert ranking_stability(np.array([0.9, 0.7, 0.8]), draws) == 0.25
    assert ranking_stability(np.array([0.1, 0.2, 0.3]), draws) == 0.25


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: next(picks(4, 1, strata=np.zeros(3))), "strata has 3 entries for 4 units"),
        (lambda: next(counts(4, 2, groups=np.arange(4), among=np.arange(3))), "groups must name one"),
        (lambda: next(counts(4, 2, groups=np.arange(3))), "groups must name one .* each of 4"),
        (lambda: percentile_interval([1.0], confidence=95), "confidence=95 is not between 0 and 1"),
    ],
)
def test_wrong_calls_say_what_is_wrong(call, message):
    with pytest.raises(AssayError, match=message):
        call()


def test_draws_are_made_when_they_are_asked_for():
    assert len(list(islice(picks(1000, 10**12), 3))) == 3
