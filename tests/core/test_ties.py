"""Values that differ by no more than rounding become one value; all others stay as they are."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.core.ties import mean_with_ties, restore_ties, sums_with_ties


@given(
    st.lists(st.integers(-20, 20), min_size=2, max_size=40),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["one error", "an error for each"]),
)
def test_values_moved_by_rounding_have_the_ties_that_they_had(values, seed, kind):
    moved = np.array(values) + np.random.default_rng(seed).uniform(-1e-3, 1e-3, len(values))
    error = 1e-3 if kind == "one error" else torch.from_numpy(1e-3 + 0.1 * (np.array(values) == 20) / 3)
    found = restore_ties(torch.from_numpy(moved), error).numpy()
    assert np.unique(found, return_inverse=True)[1].tolist() == np.unique(values, return_inverse=True)[1].tolist()
    assert np.abs(found - values).max() <= 1e-3


@pytest.mark.parametrize("error", [0.05, torch.full((1000,), 0.05)])
def test_values_in_a_run_that_is_longer_than_the_error_stay(error):
    values = torch.linspace(0, 1, 1000)
    assert restore_ties(values, error) is values or torch.equal(restore_ties(values, error), values)


def test_values_without_neighbours_and_rows_of_one_stay_to_the_bit():
    values = torch.tensor([3.0, 0.1, 0.2], dtype=torch.float64)
    assert torch.equal(restore_ties(values, 1e-3), values)
    assert restore_ties(values[:1], 1.0).tolist() == [3.0]
    assert restore_ties(torch.tensor([1e-9, 0.0, 3e-9, 1.0]), 1e-8).tolist() == [0.0, 0.0, 0.0, 1.0]


@given(st.lists(st.tuples(*[st.integers(1, 70)] * 3), min_size=2, max_size=60))
def test_means_and_sums_of_decimals_have_the_ties_of_exact_arithmetic(ratings):
    rows = np.array(ratings).T / 10
    exact = [sum(Fraction(rating, 10) for rating in triple) for triple in ratings]
    groups = np.unique([exact.index(value) for value in exact], return_inverse=True)[1]
    for found in (mean_with_ties(rows), sums_with_ties(np.ones((1, 3)), rows)[0]):
        same = found == found[:, None]
        np.testing.assert_array_equal(same, groups == groups[:, None])
