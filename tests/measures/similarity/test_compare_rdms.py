"""Similarities of RDMs have the values of the specification, and bad RDMs are named."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from assay import AssayError, compare_rdms
from assay.measures.similarity.compare import METHODS
from assay.stimuli import RdmSet

A = np.arange(1, 11)
B = [2, 1, 4, 3, 6, 5, 8, 7, 10, 9]
T = (1, 1, 1, 2, 2, 2, 3, 3, 3, 3)


@pytest.mark.parametrize(
    ("other", "method", "value"),
    [
        (B, "spearman", 0.9393939394),
        (B, "tau-a", 0.7777777778),
        (B, "cosine", 0.9870129870),
        (B, "whitened-correlation", 0.8843536023),
        (T, "spearman", 0.9438798074),
        (T, "rho-a", 0.8909090909),
        (T, "tau-b", 0.8563488386),
    ],
)
def test_golden_values(other, method, value):
    assert compare_rdms(A, other, method) == pytest.approx(value, abs=5e-11)


@pytest.mark.parametrize("method", METHODS)
def test_an_rdm_is_like_itself_and_similarity_is_symmetric(method):
    a, b = np.random.default_rng(0).random((2, 15))
    assert compare_rdms(a, a, method) == pytest.approx(1, abs=1e-12)
    assert compare_rdms(a, b, method) == pytest.approx(compare_rdms(b, a, method), abs=1e-12)


def test_rho_a_is_the_mean_over_ways_of_breaking_ties():
    rng = np.random.default_rng(0)
    broken = [compare_rdms(A, np.array(T) + 0.1 * rng.permutation(10) / 10) for _ in range(4000)]
    # One draw has a standard deviation of about 0.02.
    assert compare_rdms(A, T, "rho-a") == pytest.approx(np.mean(broken), abs=2e-3)


def test_a_whitened_cosine_is_the_one_of_the_covariance_of_entries():
    """V = (CCᵀ)∘(CCᵀ) with C the contrasts of all pairs, for independent patterns of equal variance."""
    m = 5
    contrasts = np.array([np.eye(m)[i] - np.eye(m)[j] for i in range(m) for j in range(i + 1, m)])
    inverse = np.linalg.inv((contrasts @ contrasts.T) ** 2)
    a, b = np.random.default_rng(1).random((2, 10))
    expected = a @ inverse @ b / np.sqrt((a @ inverse @ a) * (b @ inverse @ b))
    assert compare_rdms(a, b, "whitened-cosine") == pytest.approx(expected, abs=1e-12)
    a, b = a - a.mean(), b - b.mean()
    expected = a @ inverse @ b / np.sqrt((a @ inverse @ a) * (b @ inverse @ b))
    assert compare_rdms(a, b, "whitened-correlation") == pytest.approx(expected, abs=1e-12)


def test_stacks_matrices_lists_and_tensors_are_taken():
    stack = np.random.default_rng(0).random((3, 10))
    one = compare_rdms(stack[0], stack[1])
    matrices = RdmSet(stack).matrices
    assert isinstance(one, float)
    assert compare_rdms(stack, stack).shape == (3, 3) and compare_rdms(stack, stack[1]).shape == (3,)
    assert compare_rdms(matrices, matrices[1])[0] == pytest.approx(one, abs=1e-15)
    assert compare_rdms(list(matrices), list(stack[1:]))[0, 0] == pytest.approx(one, abs=1e-15)
    assert compare_rdms(torch.tensor(stack[0]), RdmSet(stack[1])) == pytest.approx(one, abs=1e-15)
    # As many condensed RDMs as they have entries look like a matrix, but are not zero on the diagonal.
    square = np.random.default_rng(0).random((10, 10))
    assert compare_rdms(square, A).shape == (10,)


def test_constant_rdms_have_no_correlation_but_a_rho_a_of_zero():
    constant = np.ones(10)
    for method in ("spearman", "pearson", "tau-b", "whitened-correlation"):
        with pytest.raises(AssayError, match=f"RDM 1 of b is constant, so that method='{method}' is undefined"):
            compare_rdms(A, [A, constant], method)
    assert compare_rdms(A, constant, "rho-a") == compare_rdms(A, constant, "tau-a") == 0
    with pytest.raises(AssayError, match="RDM 0 of a is all zeros"):
        compare_rdms(0 * A, A, "cosine")


def matrix() -> np.ndarray:
    return RdmSet(A).matrices[0]


@pytest.mark.parametrize(
    ("rdm", "message"),
    [
        (matrix() + np.eye(5, k=2), r"RDM 0 of b is not symmetric: entry \(0, 2\) is 3 and \(2, 0\) is 2"),
        (matrix()[None] + np.eye(5), "RDM 0 of b is not zero on the diagonal"),
        (
            np.where(A == 3, np.nan, A),
            "RDM 0 of b has 1 entries that are NaN or infinite, first that of stimuli 0 and 3",
        ),
        (A[:6], "a is of 5 stimuli and b of 4"),
        (A[:7], "b of shape 7 is no RDM"),
        (np.ones((2, 3, 4)), "an RDM is square"),
        (np.ones((2, 2, 2, 2)), "b has 4 axes"),
        ([A, A[:6]], "b has RDMs of different sizes"),
        (["face", "house"], "is no RDM: give dissimilarities as numbers"),
        (np.zeros((0, 10)), "b holds no RDM"),
    ],
)
def test_bad_rdms_are_named(rdm, message):
    with pytest.raises(AssayError, match=message):
        compare_rdms(A, rdm)


def test_another_order_of_stimuli_is_named_and_mended():
    first = RdmSet(A, stimuli=tuple("abcde"))
    shuffled = first.reordered("cbade")
    with pytest.raises(AssayError, match="same stimuli in another order: stimulus 0 is 'a' and 'c'"):
        compare_rdms(first, shuffled)
    assert compare_rdms(first, shuffled.reordered(first.stimuli)) == pytest.approx(1)
    with pytest.raises(AssayError, match="have different stimuli"):
        compare_rdms(first, RdmSet(A, stimuli=tuple("abcdf")))


def test_unknown_methods_suggest_the_nearest():
    with pytest.raises(AssayError, match="did you mean 'spearman'"):
        compare_rdms(A, B, "spearmann")
