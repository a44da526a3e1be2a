"""RDMs have their closed forms, whatever the blocks, the precision and the library of the responses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import distance

from assay import AssayError, RunningRdm, category_rdm, compare_rdms, rdm
from assay.measures.similarity import gram
from assay.measures.similarity.gram import RunningGram

X = np.array([[1, 2, 3, 5], [2, 1, 4, 4], [0, 3, 1, 2], [5, 5, 1, 0], [1, 1, 2, 8]])
CORRELATION = [
    0.2518099441, 0.622035527, 1.9091237672, 0.072366343, 1.2581988897,
    1.9505863758, 0.339901638, 1.0490880694, 0.7699105033, 1.7906254421,
]  # fmt: skip


def responses(stimuli: int = 7, features: int = 40, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(stimuli, features))


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.float64, np.float32])
def test_the_golden_correlation_rdm(kind):
    np.testing.assert_allclose(rdm(X.astype(kind)), CORRELATION, atol=5e-11 if kind != np.float32 else 1e-6)


@pytest.mark.parametrize(("metric", "name"), [("correlation", "correlation"), ("cosine", "cosine")])
def test_metrics_equal_scipy(metric, name):
    x = responses()
    np.testing.assert_allclose(rdm(x, metric), distance.pdist(x, name), atol=1e-14)


def test_euclidean_is_squared_and_divided_by_the_number_of_features():
    x = responses()
    np.testing.assert_allclose(rdm(x, "euclidean"), distance.pdist(x, "sqeuclidean") / 40, rtol=1e-13)


def test_mahalanobis_by_the_definition_with_a_matrix_and_with_variances():
    x, precision = responses(4, 3), np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.1], [0.0, 0.1, 3.0]])
    expected = distance.pdist(x, "mahalanobis", VI=precision) ** 2 / 3
    np.testing.assert_allclose(rdm(x, "mahalanobis", precision=precision), expected, rtol=1e-12)
    diagonal = np.array([1.0, 4.0, 0.25])
    by_matrix = rdm(x, "mahalanobis", precision=np.diag(diagonal))
    np.testing.assert_allclose(rdm(x, "mahalanobis", precision=diagonal), by_matrix, rtol=1e-12)
    np.testing.assert_allclose(rdm(x, "mahalanobis", precision=np.ones(3)), rdm(x, "euclidean"), rtol=1e-12)


def test_crossnobis_is_the_mean_of_products_of_different_folds_and_zero_on_average_for_noise():
    folds = np.random.default_rng(1).normal(size=(3, 2, 5))
    apart = folds[:, 0] - folds[:, 1]
    products = [apart[f] @ apart[g] / 5 for f in range(3) for g in range(3) if f != g]
    assert rdm(folds, "crossnobis")[0] == pytest.approx(np.mean(products), rel=1e-12)
    noise = np.random.default_rng(2).normal(size=(2, 60, 50))
    found = rdm(noise, "crossnobis")
    # One has variance 4/50 (products of two differences of variance 2); 1,770 of them share 60 stimuli: about 0.3/√60.
    assert abs(found.mean()) < 0.1 and (found < 0).any() and rdm(noise[0], "euclidean").mean() > 1.5


@pytest.mark.parametrize("metric", ["correlation", "euclidean", "cosine"])
@given(cuts=st.lists(st.integers(1, 39), max_size=4))
def test_blocks_of_features_give_the_same_rdm_as_all_at_once(metric, cuts):
    x = responses() + np.arange(7)[:, None]
    running = RunningRdm(metric)
    for block in np.split(x, sorted(set(cuts)), axis=1):
        running.add(block)
    np.testing.assert_allclose(running.rdm(), rdm(x, metric), atol=1e-13)


@pytest.mark.parametrize("metric", ["correlation", "euclidean", "cosine"])
def test_layers_added_up_apart_are_merged(metric):
    layers = [responses(seed=seed) + 10 * seed for seed in range(3)]
    running = RunningRdm(metric)
    for layer in layers:
        part = RunningRdm(metric)
        part.add(layer)
        running.merge(part)
    np.testing.assert_allclose(running.rdm(), rdm(np.concatenate(layers, axis=1), metric), atol=1e-12)


def test_blocks_may_have_further_axes_and_lie_anywhere_in_memory():
    x = responses(6, 24)
    expected = rdm(x)
    np.testing.assert_allclose(rdm(x.reshape(6, 2, 3, 4)), expected, atol=1e-14)
    np.testing.assert_allclose(rdm(np.asfortranarray(x)), expected, atol=1e-14)
    np.testing.assert_allclose(rdm(x[:, ::-1]), expected, atol=1e-14)
    fixed = x.copy()
    fixed.setflags(write=False)
    np.testing.assert_array_equal(rdm(fixed), expected)


def test_tensors_give_tensors_and_networks_in_training_leave_no_graph():
    x = torch.tensor(responses(), requires_grad=True)
    found = rdm(x)
    assert isinstance(found, torch.Tensor) and found.dtype == torch.float64 and not found.requires_grad
    np.testing.assert_allclose(found.numpy(), rdm(responses()), atol=1e-14)
    half = rdm(torch.tensor(responses()).bfloat16())
    np.testing.assert_allclose(half.numpy(), rdm(responses()), atol=0.02)  # bfloat16 keeps 8 bits: 0.4 %


@pytest.mark.parametrize("metric", ["correlation", "euclidean"])
def test_large_means_do_not_eat_up_small_differences_in_float32(metric):
    x = (responses(5, 20_000) + 500).astype(np.float32)
    exact = rdm(x.astype(np.float64), metric)
    # Squares of 500 in float32 would lose 500²·6e-8 = 0.015 of distances of about 1 or 2.
    np.testing.assert_allclose(rdm(x, metric), exact, atol=1e-5)


@pytest.mark.parametrize("stimuli", [30, 150])  # products in float64, and in the precision of the responses
@pytest.mark.parametrize("scale", [1, 0.1])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, np.uint8])
def test_one_hot_codes_have_two_dissimilarities(kind, scale, stimuli):
    labels = np.arange(stimuli) % 5
    codes = np.tile(np.eye(5), (1, 7 if stimuli == 30 else 200))
    if scale == 1 or kind != np.uint8:
        for metric in ("correlation", "euclidean", "cosine"):
            found = rdm((scale * codes[labels]).astype(kind), metric)
            np.testing.assert_array_equal(found > found.mean(), category_rdm(labels) == 1)
            assert len(np.unique(found)) == 2


@pytest.mark.parametrize("stimuli", [40, 150])
def test_distances_of_binary_codes_are_exact(stimuli):
    codes = (np.random.default_rng(0).random((stimuli, 12)) < 0.5).astype(np.float32)
    np.testing.assert_array_equal(rdm(codes, "euclidean"), distance.pdist(codes, "hamming"))


def test_an_identity_has_a_constant_rdm():
    assert np.ptp(rdm(np.eye(92, dtype=np.float32))) == 0
    assert np.ptp(rdm(np.eye(150, dtype=np.float32) / 3)) == 0


def test_ties_are_those_of_all_blocks_and_layers_together():
    code = np.eye(6, dtype=np.float32)[np.arange(150) % 6]
    running, layer = RunningRdm(), RunningRdm()
    running.add(code / 3)
    running.add(1000 + code / 7)
    layer.add(code[:, ::-1] / 9)
    running.merge(layer)
    assert len(np.unique(running.rdm())) == 2


def test_hardly_any_values_that_differ_are_made_equal():
    x = responses(150, 4096).astype(np.float32)
    found, exact = rdm(x), rdm(x.astype(np.float64))
    # Entries are about 1 ± 0.016, 11,175 of them: in the tails some lie by themselves, within 1e-5 of each other.
    assert len(np.unique(found)) > 0.95 * len(found)
    assert compare_rdms(found, exact) == pytest.approx(1, abs=1e-8)
    assert len(np.unique(exact)) == len(exact) and len(np.unique(rdm(x[:100]))) == 4950  # products in float64


@pytest.mark.parametrize("stimuli", [20, 150])
@pytest.mark.parametrize("offset", [1e2, 1e3, 1e4])
def test_features_with_means_far_apart_keep_their_digits(offset, stimuli):
    x = responses(stimuli, 300)
    shifted = np.concatenate([x, x + offset], axis=1).astype(np.float32)
    exact = rdm(shifted.astype(np.float64))
    assert exact.max() < 10 / offset**2
    np.testing.assert_allclose(rdm(shifted), exact, rtol=1e-6)
    by_stimulus = np.concatenate([x, x + offset * (1 + x[:, :1])], axis=1).astype(np.float32)
    running = RunningRdm()
    running.add(by_stimulus[:, :300])
    running.add(by_stimulus[:, 300:])
    np.testing.assert_allclose(running.rdm(), rdm(by_stimulus.astype(np.float64)), rtol=1e-4)


@pytest.mark.parametrize("scale", [1e-30, 1e-25, 1e25, 1e30])
def test_squares_that_float32_does_not_hold_are_taken_in_float64(scale):
    x = (scale * responses(150)).astype(np.float32)
    for metric in ("correlation", "euclidean", "cosine"):
        np.testing.assert_allclose(rdm(x, metric), rdm(x.astype(np.float64), metric), rtol=1e-5)


@pytest.mark.parametrize("metric", ["correlation", "euclidean", "cosine"])
def test_a_gpu_leaves_out_tiles_below_the_diagonal_and_gives_the_same(metric, monkeypatch):
    expected = rdm(responses(19), metric)
    monkeypatch.setattr(gram, "_TILED_FROM", 1)
    monkeypatch.setattr(RunningGram, "_add_by_blas", lambda self, part, room: self._add_by_tiles(part))
    np.testing.assert_allclose(rdm(torch.tensor(responses(19)), metric).numpy(), expected, atol=1e-13)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize("metric", ["correlation", "euclidean", "cosine"])
def test_a_gpu_gives_what_a_cpu_gives(metric):
    x = responses(2100, 64)
    on_gpu = rdm(torch.tensor(x, device="cuda"), metric)
    assert on_gpu.device.type == "cuda"
    np.testing.assert_allclose(on_gpu.cpu().numpy(), rdm(x, metric), atol=1e-12)


def test_a_gpu_keeps_digits_and_ties_too(monkeypatch):
    monkeypatch.setattr(RunningGram, "_add_by_blas", lambda self, part, room: self._add_by_tiles(part))
    x = responses(150, 300)
    shifted = np.concatenate([x, x + 1e3], axis=1).astype(np.float32)
    np.testing.assert_allclose(rdm(shifted), rdm(shifted.astype(np.float64)), rtol=1e-6)
    np.testing.assert_allclose(rdm(np.float32(1e-25) * shifted), rdm(shifted.astype(np.float64)), rtol=1e-3)
    assert len(np.unique(rdm(np.eye(5, dtype=np.float32)[np.arange(150) % 5] / 3))) == 2


def test_the_rdm_of_categories():
    assert category_rdm([1, 1, 2, 3]).tolist() == [0, 1, 1, 1, 1, 1]
    with pytest.raises(AssayError, match="labels has shape"):
        category_rdm("face")


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e6])
def test_constant_responses_are_named(kind, value):
    x = responses().astype(kind)
    x[3] = value
    with pytest.raises(AssayError, match="first stimulus 3, are constant over features"):
        rdm(x)
    if value:
        assert rdm(x, "euclidean").min() >= 0


@pytest.mark.parametrize("stimuli", [10, 150])
def test_responses_that_vary_about_a_large_mean_are_not_called_constant(stimuli):
    x = (responses(stimuli, 300) + 1e6).astype(np.float32)  # in steps of 1/16
    np.testing.assert_allclose(rdm(x), rdm(x.astype(np.float64)), atol=1e-5)


@pytest.mark.parametrize("metric", ["correlation", "euclidean", "cosine"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("stimuli", [20, 150])
def test_the_stimulus_with_a_response_that_is_not_finite_is_named(stimuli, bad, metric):
    x = responses(stimuli).astype(np.float32)
    x[3, 7] = bad
    with pytest.raises(AssayError, match="the responses to 1 stimuli, first stimulus 3, are NaN or infinite"):
        rdm(x, metric)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rdm(np.where(X == 8, np.nan, X)), "first stimulus 4, are NaN or infinite"),
        (lambda: rdm(1e200 * X[:3, :2], "cosine"), "so large that"),
        (lambda: rdm(X * (np.arange(5) != 2)[:, None], "cosine"), "stimulus 2 is zero in all features"),
        (lambda: rdm(X, "corelation"), "did you mean 'correlation'"),
        (lambda: rdm(X[0]), "give real numbers, stimuli × features"),
        (lambda: rdm(["a", "b"]), "is no array of responses"),
        (lambda: rdm(X, "mahalanobis"), "needs precision"),
        (lambda: rdm(X, precision=np.eye(4)), "does not use"),
        (lambda: rdm(X, "mahalanobis", precision=np.eye(3)), "precision is 3×3 for 4 features"),
        (lambda: rdm(X, "mahalanobis", precision=-np.eye(4)), "not positive definite"),
        (lambda: rdm(X, "mahalanobis", precision=np.triu(np.ones((4, 4)))), "not symmetric"),
        (lambda: rdm(X, "mahalanobis", precision=np.zeros(4)), "not positive"),
        (lambda: rdm(X, "crossnobis"), "folds × stimuli × features"),
        (lambda: RunningRdm("mahalanobis"), "has no running sum"),
        (lambda: RunningRdm().rdm(), "there are no responses"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_bad_responses_are_named(call, message):
    with pytest.raises(AssayError, match=message):
        call()


def test_blocks_of_other_stimuli_are_named():
    running = RunningRdm()
    running.add(X)
    with pytest.raises(AssayError, match="block has responses to 4 stimuli, those before had 5"):
        running.add(X[:4])
    other = RunningRdm("cosine")
    other.add(X)
    with pytest.raises(AssayError, match="other sums none of 5 stimuli, this one stimuli of 5"):
        running.merge(other)
