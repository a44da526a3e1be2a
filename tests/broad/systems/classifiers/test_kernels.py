from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from sklearn.metrics.pairwise import additive_chi2_kernel

from assay import AssayError
from assay.broad.data.violation import NotApplicable
from assay.broad.systems.classifiers import kernels
from assay.broad.systems.classifiers.kernels import chi2, chi2_distances, intersection, linear, mean_distance


def histograms(seed: int, rows: int, bins: int = 30) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.poisson(0.7, size=(rows, bins)).astype(float)  # half of the bins are empty


@st.composite
def pairs(draw):
    bins = draw(st.integers(1, 6))
    counts = st.integers(0, 9).map(float) | st.floats(0, 5, width=32)
    return tuple(draw(hnp.arrays(np.float64, (draw(st.integers(1, 5)), bins), elements=counts)) for _ in range(2))


# -- closed forms ---------------------------------------------------------------------------------------


def test_worked_examples():
    a, b = np.array([[1.0, 0.0, 3.0, 0.0]]), np.array([[1.0, 2.0, 1.0, 0.0]])
    assert chi2_distances(a, b) == pytest.approx((0 + 2 + 1) / 2, rel=1e-15)
    assert intersection(a, b) == 2 and linear(a, b) == 4
    assert chi2(chi2_distances(a, b), scale=3.0) == pytest.approx(np.exp(-0.5), rel=1e-15)


def test_histograms_that_do_not_overlap_are_as_far_apart_as_half_their_mass():
    a, b = np.array([[2.0, 3.0, 0.0]]), np.array([[0.0, 0.0, 7.0]])
    assert chi2_distances(a, b) == pytest.approx(6) and intersection(a, b) == 0


def test_the_mean_distance_is_over_pairs_of_two_different_instances():
    distances = np.array([[0.0, 1, 2], [1, 0, 3], [2, 3, 0]])
    assert mean_distance(distances) == 2
    assert mean_distance(np.zeros((4, 4))) == 1 and mean_distance(np.zeros((1, 1))) == 1


# -- references -----------------------------------------------------------------------------------------


@given(pairs())
def test_kernels_equal_loops(pair):
    a, b = pair
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            far = sum((p - q) ** 2 / (p + q) for p, q in zip(x, y, strict=True) if p + q > 0) / 2
            # Sums of at most six terms, in another order.
            assert chi2_distances(a, b)[i, j] == pytest.approx(far, rel=1e-14, abs=1e-300)
            assert intersection(a, b)[i, j] == pytest.approx(sum(map(min, x, y)), rel=1e-14)


def test_chi2_is_half_of_what_scikit_learn_subtracts():
    a, b = histograms(0, 20), histograms(1, 15)
    np.testing.assert_allclose(chi2_distances(a, b), -additive_chi2_kernel(a, b) / 2, rtol=1e-13)


@pytest.mark.parametrize("kernel", [chi2_distances, intersection, linear])
def test_sparse_is_dense_whatever_the_blocks(kernel, monkeypatch):
    a, b = histograms(0, 20), histograms(1, 15)
    whole = kernel(a, b)
    monkeypatch.setattr(kernels, "BLOCK", 7 * 30)
    for x, y in [(a, b), (sparse.csr_matrix(a), sparse.csr_matrix(b)), (a.astype(np.float32), sparse.csr_matrix(b))]:
        np.testing.assert_allclose(kernel(x, y), whole, rtol=1e-13)


@pytest.mark.parametrize("kernel", ["chi2", "intersection", "linear"])
def test_kernels_have_no_negative_eigenvalues(kernel):
    a = histograms(2, 40)
    gram = getattr(kernels, "chi2_distances" if kernel == "chi2" else kernel)(a, a)
    gram = chi2(gram, mean_distance(gram)) if kernel == "chi2" else gram
    np.testing.assert_allclose(gram, gram.T, rtol=1e-13)
    # Rounding moves the eigenvalues of a 40 × 40 matrix by its norm times a few 1e-16.
    assert np.linalg.eigvalsh(gram).min() > -1e-12 * np.abs(gram).sum()


@pytest.mark.parametrize("kernel", [chi2_distances, intersection])
def test_negative_values_are_no_histograms(kernel):
    with pytest.raises(NotApplicable, match="negative values"):
        kernel(np.array([[1.0, -1.0]]), np.array([[1.0, 1.0]]))


def test_wrong_calls_say_what_is_wrong():
    with pytest.raises(AssayError, match="3 and 2 bins"):
        chi2_distances(np.ones((1, 3)), np.ones((1, 2)))
    with pytest.raises(AssayError, match="are a square"):
        mean_distance(np.ones((3, 2)))
