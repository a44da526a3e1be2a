"""CKA and Procrustes distances equal their definitions, written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import linalg

from assay import AssayError, linear_cka, procrustes_distance
from assay.measures.similarity.gram import RunningGram


def two(m: int = 20, p: int = 7, q: int = 11) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(m, p))
    return x, x @ rng.normal(size=(p, q)) + 3 * rng.normal(size=(m, q)) + 5


def hsic1(k: np.ndarray, l: np.ndarray) -> float:  # noqa: E741
    """Song et al. 2012, Eq. 5, term by term."""
    m = len(k)
    k, l = k - np.diag(np.diag(k)), l - np.diag(np.diag(l))  # noqa: E741
    one = np.ones(m)
    sums = (one @ k @ one) * (one @ l @ one) / ((m - 1) * (m - 2))
    return float((np.trace(k @ l) + sums - 2 / (m - 2) * (one @ k @ l @ one)) / (m * (m - 3)))


def test_unbiased_cka_is_song_et_al_written_out():
    x, y = two()
    k, l = x @ x.T, y @ y.T  # noqa: E741
    expected = hsic1(k, l) / np.sqrt(hsic1(k, k) * hsic1(l, l))
    assert linear_cka(x, y) == pytest.approx(expected, abs=1e-12)


def test_biased_cka_is_the_feature_space_form():
    """‖YᵀX‖²/(‖XᵀX‖‖YᵀY‖) of centred features, Kornblith et al. 2019."""
    x, y = two()
    a, b = x - x.mean(0), y - y.mean(0)
    expected = np.linalg.norm(b.T @ a) ** 2 / (np.linalg.norm(a.T @ a) * np.linalg.norm(b.T @ b))
    assert linear_cka(x, y, unbiased=False) == pytest.approx(expected, abs=1e-12)


def test_unbiased_cka_of_noise_is_zero_on_average():
    rng = np.random.default_rng(1)
    values = [linear_cka(rng.normal(size=(12, 30)), rng.normal(size=(12, 200))) for _ in range(400)]
    assert abs(np.mean(values)) < 4 * np.std(values) / 20


def test_procrustes_distance_equals_scipys_rotation():
    x, y = two(q=7)
    a, b = x - x.mean(0), y - y.mean(0)
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    rotation, _ = linalg.orthogonal_procrustes(a, b)
    assert procrustes_distance(x, y) == pytest.approx(np.linalg.norm(a @ rotation - b) ** 2, abs=1e-12)
    assert procrustes_distance(x, y) == pytest.approx(procrustes_distance(y, x), abs=1e-12)


def test_rotations_scales_and_shifts_change_nothing():
    x, y = two()
    turned = 4 * x @ linalg.qr(np.random.default_rng(2).normal(size=(7, 7)))[0] - 2
    assert linear_cka(turned, y) == pytest.approx(linear_cka(x, y), abs=1e-12)
    assert procrustes_distance(turned, y) == pytest.approx(procrustes_distance(x, y), abs=1e-12)
    assert procrustes_distance(turned, x) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("alignment", [linear_cka, procrustes_distance])
def test_blocks_of_features_and_tensors_give_the_same(alignment):
    x, y = two()
    gram = RunningGram("features")
    for block in np.split(y, [3, 8], axis=1):
        gram.add(block)
    assert alignment(x, gram) == pytest.approx(alignment(x, y), abs=1e-12)
    assert alignment(torch.tensor(x), torch.tensor(y)) == pytest.approx(alignment(x, y), abs=1e-12)


@pytest.mark.parametrize("alignment", [linear_cka, procrustes_distance])
def test_bad_responses_are_named(alignment):
    x, y = two()
    with pytest.raises(AssayError, match="x has 20 stimuli and y 19"):
        alignment(x, y[1:])
    with pytest.raises(AssayError, match="y has the same response to every stimulus"):
        alignment(x, np.ones((20, 3)))
    with pytest.raises(AssayError, match="NaN or infinite"):
        alignment(x * np.nan, y)
    with pytest.raises(AssayError, match=r"RunningGram\('features'\)"):
        alignment(RunningGram("stimuli"), y)


def test_unbiased_cka_takes_four_stimuli():
    with pytest.raises(AssayError, match="takes four or more"):
        linear_cka(np.eye(3), np.eye(3))
