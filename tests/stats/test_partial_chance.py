"""The p of many partial rank correlations against the largest of them by chance."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from assay import AssayError
from assay.stats.partial_chance import partial_spearman_p_max
from assay.stats.rank_correlation import partial_spearman


def data(seed: int = 0, groups: int = 14, members: int = 3):
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(groups), members)
    given = np.repeat(rng.integers(0, 3, size=(groups, 2)).astype(float), members, axis=0)
    y = given[:, 0] + rng.normal(size=len(group))
    rows = rng.normal(size=(6, len(group))) + given[:, 0]
    rows[0] += y
    return rows, y, given, group


def test_it_equals_the_formula_written_with_whole_matrices():
    rows, y, given, group = data()
    n = len(y)
    design = np.column_stack([np.ones(n), *(scipy.stats.rankdata(g) for g in given.T)])
    m = np.eye(n) - design @ np.linalg.pinv(design)
    e = m @ scipy.stats.rankdata(y)
    x = [m @ scipy.stats.rankdata(row) for row in rows]
    whole = np.concatenate(
        [scipy.linalg.fractional_matrix_power(m[np.ix_(group == g, group == g)], -0.5) @ e[group == g]
         for g in range(14)]
    )  # fmt: skip
    signs = np.random.default_rng(5).choice(np.array([-1.0, 1.0]), size=(14, 50))
    largest = [max(abs(np.corrcoef(one, m @ (s[group] * whole))[0, 1]) for one in x) for s in signs.T]
    expected = [(1 + sum(big >= abs(partial_spearman(row, y, given)) for big in largest)) / 51 for row in rows]
    found = partial_spearman_p_max(rows, y, given, group, flips=50, seed=5)
    assert found.tolist() == expected and found[0] < 0.1 < found[1:].min()


def test_a_row_that_is_the_other_has_the_least_p_and_the_sign_of_a_row_does_not_matter():
    rows, y, given, group = data(1)
    rows[1] = y
    found = partial_spearman_p_max(rows, y, given, group, flips=200)
    assert found[1] == 1 / 201  # no signs but all +1 and all −1 reach a correlation of 1
    np.testing.assert_array_equal(partial_spearman_p_max(-rows, y, given, group, flips=200), found)


def test_more_rows_of_noise_make_a_correlation_less_surprising():
    rows, y, given, group = data(2)
    noise = np.random.default_rng(0).normal(size=(60, len(y)))
    alone = partial_spearman_p_max(rows[1:2], y, given, group)[0]
    among = partial_spearman_p_max(np.vstack([rows[1:2], noise]), y, given, group)[0]
    assert alone < among


def test_what_the_controls_explain_has_no_p():
    rows, y, given, group = data(3)
    rows[2], rows[3] = given[:, 1], 1.0
    found = partial_spearman_p_max(rows, y, given, group, flips=20)
    assert np.isnan(found[2:4]).all() and np.isfinite(np.delete(found, [2, 3])).all()
    assert np.isnan(partial_spearman_p_max(rows, given[:, 0], given, group, flips=20)).all()
    own = np.column_stack([given, group == 0])  # a control that names a group leaves nothing of its mean
    assert np.isfinite(partial_spearman_p_max(rows[:2], y, own, group, flips=20)).all()


def test_shapes_that_do_not_fit_are_refused():
    rows, y, given, _ = data(4)
    with pytest.raises(AssayError, match="give rows × n, n and n × k"):
        partial_spearman_p_max(rows[:, 1:], y, given)
