"""Rank correlations of what controls leave: formula, strong shared effects, intervals, and p of the largest of many."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy

from assay import AssayError
from assay.stats.correlation import spearman
from assay.stats.rank_correlation import partial_spearman, spearman_intervals
from assay.stats.residual_correlation import (
    residual_spearman,
    residual_spearman_intervals,
    residual_spearman_p_max,
)


def data(seed: int = 0, groups: int = 14, members: int = 3):
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(groups), members)
    given = np.repeat(rng.integers(0, 3, size=(groups, 2)).astype(float), members, axis=0)
    y = given[:, 0] + rng.normal(size=len(group))
    rows = rng.normal(size=(6, len(group))) + given[:, 0]
    rows[0] += y
    return rows, y, given, group


def test_without_controls_it_is_spearmans_with_its_interval():
    rows, y, _, group = data()
    nothing = np.empty((len(y), 0))
    np.testing.assert_allclose(residual_spearman(rows, y, nothing), [spearman(row, y) for row in rows], atol=1e-12)
    found = residual_spearman_intervals(rows, y, nothing, group)
    np.testing.assert_allclose(found, spearman_intervals(rows, y, groups=group), atol=1e-12)


def test_two_variables_that_follow_the_same_controls_and_nothing_else_in_common_are_not_correlated():
    """Taking ranks first, as partial Spearman correlation does, they are."""
    effects = np.array(list(product((0.0, 1.0), repeat=6)))
    controls = np.column_stack([effects, *(effects[:, i] * effects[:, j] for i in range(6) for j in range(i))])
    follows = effects @ [3, 2, 1.5, 1, 0.7, 0.4]
    rng = np.random.default_rng(0)
    found = np.array(
        [
            (residual_spearman(x[None], y, controls)[0], partial_spearman(x, y, controls))
            for x, y in (follows + 0.2 * rng.normal(size=(2, 64)) for _ in range(100))
        ]
    )
    # The standard deviation over samples is about 0.15 with 42 free networks, that of a mean of 100 a tenth of it.
    assert abs(found[:, 0].mean()) < 0.05 and found[:, 1].mean() > 0.3


def test_it_equals_the_formula_written_with_whole_matrices():
    rows, y, given, group = data()
    n = len(y)
    design = np.column_stack([np.ones(n), given])
    m = np.eye(n) - design @ np.linalg.pinv(design)
    e = m @ scipy.stats.rankdata(m @ y)
    x = [m @ scipy.stats.rankdata(m @ row) for row in rows]
    rho = [np.corrcoef(one, e)[0, 1] for one in x]
    np.testing.assert_allclose(residual_spearman(rows, y, given), rho, atol=1e-12)
    whole = np.concatenate(
        [scipy.linalg.fractional_matrix_power(m[np.ix_(group == g, group == g)], -0.5) @ e[group == g]
         for g in range(14)]
    )  # fmt: skip
    signs = np.random.default_rng(5).choice(np.array([-1.0, 1.0]), size=(14, 50))
    largest = [max(abs(np.corrcoef(one, m @ (s[group] * whole))[0, 1]) for one in x) for s in signs.T]
    expected = [(1 + sum(big >= abs(one) for big in largest)) / 51 for one in rho]
    found = residual_spearman_p_max(rows, y, given, group, flips=50, seed=5)
    assert found.tolist() == expected and found[0] < 0.1 < found[1:].min()


def test_what_is_left_does_not_depend_on_scale_or_rounding():
    rows, y, given, group = data()
    found = residual_spearman(rows, y, given)
    np.testing.assert_allclose(residual_spearman(1e-8 * rows + 3, 1e12 * y, 5 - 1e-3 * given), found, atol=1e-9)
    flag = np.stack([(group == 2).astype(float), (group == 2) / 3])  # what is left has ties, but for rounding
    np.testing.assert_allclose(*residual_spearman(flag, y, given))


def test_a_row_that_is_the_other_has_the_least_p_and_the_sign_of_a_row_does_not_matter():
    rows, y, given, group = data(1)
    rows[1] = y
    found = residual_spearman_p_max(rows, y, given, group, flips=200)
    assert found[1] == 1 / 201  # no signs but all +1 and all −1 reach a correlation of 1
    np.testing.assert_array_equal(residual_spearman_p_max(-rows, y, given, group, flips=200), found)


def test_more_rows_of_noise_make_a_correlation_less_surprising():
    rows, y, given, group = data(2)
    noise = np.random.default_rng(0).normal(size=(60, len(y)))
    alone = residual_spearman_p_max(rows[1:2], y, given, group)[0]
    among = residual_spearman_p_max(np.vstack([rows[1:2], noise]), y, given, group)[0]
    assert alone < among


def test_what_the_controls_explain_has_no_p():
    rows, y, given, group = data(3)
    rows[2], rows[3] = given[:, 1], 1.0
    found = residual_spearman_p_max(rows, y, given, group, flips=20)
    assert np.isnan(found[2:4]).all() and np.isfinite(np.delete(found, [2, 3])).all()
    assert np.isnan(residual_spearman_p_max(rows, given[:, 0], given, group, flips=20)).all()
    own = np.column_stack([given, group == 0])  # a control that names a group leaves nothing of its mean
    assert np.isfinite(residual_spearman_p_max(rows[:2], y, own, group, flips=20)).all()


@pytest.mark.parametrize(("n", "told"), [(12, False), (13, True)])
def test_of_fewer_than_ten_degrees_of_freedom_there_is_no_p(n, told):
    """With two controls and a constant: of six samples of noise most would have a significant one."""
    rng = np.random.default_rng(3)
    p = residual_spearman_p_max(rng.normal(size=(20, n)), rng.normal(size=n), rng.normal(size=(n, 2)), flips=99)
    assert np.isfinite(p).all() == told and np.isnan(p).all() == (not told)


def test_shapes_that_do_not_fit_are_refused():
    rows, y, given, _ = data(4)
    with pytest.raises(AssayError, match="give rows × n, n and n × k"):
        residual_spearman_p_max(rows[:, 1:], y, given)
    for bad in (np.nan, np.inf):
        for i in range(3):
            values = [rows.copy(), y.copy(), given.copy()]
            values[i].flat[4] = bad
            with pytest.raises(AssayError, match="must be finite"):
                residual_spearman_p_max(*values)
