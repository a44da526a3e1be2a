"""Curves with known integrals, and what is not a curve."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from assay import AssayError, gi_score, pal_score, perturbation_cumulative_density
from assay.measures.perturbation.scores import fold_curve

# A(u): Gi exact, n = 11, n = 101; Pal exact, n = 11, n = 101 (the digits of the published table of our definitions).
CURVES = {
    "1-u": (lambda u: 1 - u, (1 / 3, 0.335, 0.33335), (54.620690, 55.473684, 54.629074)),
    "u": (lambda u: u, (2 / 3, 0.665, 0.66665), (936, 626, 931.37)),
    "1-u2": (lambda u: 1 - u**2, (1 / 6, 0.17, 0.1667), (67.873122, 67.819095, 67.872583)),
}


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize(("n", "place"), [(11, 1), (101, 2)])
def test_scores_of_known_curves_by_the_trapezoid_rule(name, n, place):
    curve, gi, pal = CURVES[name]
    u = np.linspace(0, 1, n)
    assert gi_score(u, curve(u)) == pytest.approx(gi[place], abs=1e-12)  # rationals: exact but for rounding
    digits = 2 if pal[place] == 931.37 else 6
    assert round(pal_score(u, curve(u)), digits) == pal[place]


@pytest.mark.parametrize("name", CURVES)
def test_scores_tend_to_the_integrals(name):
    curve, gi, pal = CURVES[name]
    u = np.linspace(0, 1, 20_001)
    assert gi_score(u, curve(u)) == pytest.approx(gi[0], abs=1e-8)  # the rule's error is h²/12·max|f''| ≈ 2e-10
    # The denominator is about 1/6000 for A = u, where the error of the rule weighs most: 3e-9 of it.
    assert pal_score(u, curve(u)) == pytest.approx(pal[0], rel=1e-6)


@given(st.floats(0.001, 1), st.integers(2, 40), st.floats(-5, 5), st.floats(0.1, 9))
def test_constant_curves(a, n, low, width):
    alpha = np.linspace(low, low + width, n)
    assert gi_score(alpha, np.full(n, a)) == pytest.approx(1 - a, abs=1e-12)
    assert pal_score(alpha, np.full(n, a)) == pytest.approx(84, rel=1e-9)


def test_endpoints_between_the_samples_are_interpolated():
    u = np.array([0, 0.25, 1])  # 0.1 and 0.4 are no samples; PCD of A ≡ 1 is u, linear anyway
    assert pal_score(u, np.ones(3)) == pytest.approx(84)
    a = np.array([1, 0, 0])  # PCD 0, 0.125, 0.125, linear between
    assert pal_score(u, a) == pytest.approx(0.6 * 0.125 / (0.1 * 0.05 / 2))


@given(arrays(np.float64, (3, 7), elements=st.floats(0, 1)))
def test_many_curves_at_once_are_each_alone(a):
    alpha = np.linspace(0, 0.5, 7)
    assert np.array_equal(gi_score(alpha, a), [gi_score(alpha, row) for row in a])
    assert np.array_equal(pal_score(alpha, a), [pal_score(alpha, row) for row in a], equal_nan=True)


@given(arrays(np.float64, 9, elements=st.floats(0, 1)))
def test_gi_is_the_weighted_mean_of_the_loss_of_accuracy(a):
    """1 − 2∫(1−u)A: the double sum of the trapezoid rule written out, independently."""
    h, pcd = 1 / 8, [0.0]
    for left, right in itertools.pairwise(a):
        pcd.append(pcd[-1] + h * (left + right) / 2)
    area = sum(h * (p + q) / 2 for p, q in itertools.pairwise(pcd))
    assert gi_score(range(9), a) == pytest.approx(1 - 2 * area, abs=1e-12)
    assert perturbation_cumulative_density(range(9), a) == pytest.approx(pcd, abs=1e-12)


def test_gi_over_both_signs_is_not_symmetric_unless_folded():
    alpha = np.linspace(-1, 1, 21)
    falling = np.clip(1 - np.abs(alpha) * np.where(alpha > 0, 1.0, 0.2), 0, 1)
    assert gi_score(alpha, falling) != pytest.approx(gi_score(alpha, falling[::-1]), abs=0.05)
    assert gi_score(alpha, falling, fold=True) == pytest.approx(gi_score(alpha, falling[::-1], fold=True))
    radii, folded = fold_curve(alpha, falling)
    assert np.allclose(folded, 1 - 0.6 * radii)
    # of −180…179 the common reach is 179; between samples A is linear
    radii, folded = fold_curve(np.linspace(-180, 179, 22), np.ones(22))
    assert radii[0] == 0 and radii[-1] == 179 and np.allclose(folded, 1)


def test_no_accuracy_where_magnitudes_are_small():
    u = np.linspace(0, 1, 11)
    assert np.isinf(pal_score(u, np.where(u > 0.5, 1.0, 0.0)))
    assert np.isnan(pal_score(u, np.zeros(11)))
    assert gi_score(u, np.zeros(11)) == 1


@pytest.mark.parametrize(
    ("alpha", "a", "words"),
    [
        ([0], [1], "two or more"),
        ([0, 0, 1], [1, 1, 1], "increasing"),
        ([0, np.nan], [1, 1], "finite"),
        ([0, 1], [1, 1, 1], "do not go with 2 magnitudes"),
        ([0, 1], [1, 1.5], r"in \[0, 1\]"),
        ([0, 1], [1, np.nan], "one is"),
    ],
)
def test_what_is_not_a_curve(alpha, a, words):
    for score in (gi_score, pal_score, perturbation_cumulative_density):
        with pytest.raises(AssayError, match=words):
            score(alpha, a)


def test_folding_needs_both_signs():
    with pytest.raises(AssayError, match="from minus to plus"):
        gi_score([0, 1], [1, 1], fold=True)
