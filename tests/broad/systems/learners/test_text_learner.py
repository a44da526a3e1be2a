from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from assay import AssayError
from assay.broad.systems.learners import text_learner
from assay.broad.systems.learners.text_learner import MatrixLearner, denoising_text, sparse_autoencoder_text
from assay.broad.systems.saved_learner import load_learner, save_learner
from assay.networks import StackedAutoencoder, StackedDenoisingAutoencoder
from assay.training import Greedy
from memory_kit import told_by

RNG = np.random.default_rng(0)
DENSE = RNG.poisson(0.3, (90, 12)).astype(np.float64)
DENSE[:, 5] = 0  # a word that never occurs
TERMS = sparse.csr_matrix(DENSE)
SMALL = {"inputs": 12, "hidden": (8, 6, 4), "epochs": 2, "batch_size": 20}
TEAMS = [sparse_autoencoder_text, denoising_text]


@pytest.mark.slow
@pytest.mark.parametrize("make", TEAMS)
def test_a_text_learner_has_three_layers_each_of_which_represents(make):
    learner = make(**SMALL)
    assert learner.fit(TERMS) is learner
    assert learner.layers == ["stack.0", "stack.1", "stack.2"]
    assert [learner.transform(TERMS, i).shape for i in range(3)] == [(90, 8), (90, 6), (90, 4)]
    np.testing.assert_array_equal(learner.transform(TERMS), learner.transform(TERMS, layer=2))
    assert learner.transform(TERMS[:0], layer=0).shape == (0, 8)  # a task may have no validation set


@pytest.mark.parametrize("make", TEAMS)
def test_sparse_and_dense_matrices_are_the_same_and_rows_are_independent(make):
    from_sparse, from_dense = make(**SMALL).fit(TERMS), make(**SMALL).fit(DENSE)
    found = from_sparse.transform(TERMS)
    np.testing.assert_array_equal(found, from_dense.transform(DENSE))
    some = np.array([70, 3, 11])
    # Products of other sizes may round differently.
    np.testing.assert_allclose(from_sparse.transform(TERMS[some]), found[some], atol=1e-5)
    np.testing.assert_array_equal(make(**SMALL).fit(TERMS).transform(TERMS), found)
    np.testing.assert_array_equal(from_sparse.fit(TERMS).transform(TERMS), found)  # fit begins anew


def test_it_learns_what_the_stack_learns_from_scaled_inputs():
    unit = DENSE / np.maximum(DENSE.max(0), 1)
    settings = Greedy(2, 20, 1e-3, seed=3)
    expected = StackedDenoisingAutoencoder(12, (8, 6, 4), seed=3).fit(unit, settings=settings).transform(unit)
    np.testing.assert_allclose(denoising_text(**SMALL, seed=3).fit(TERMS).transform(TERMS), expected, atol=1e-6)
    from_mean = DENSE - DENSE.mean(0)
    greatest = np.abs(from_mean).max(0)
    centred = (from_mean / np.where(greatest > 0, greatest, 1)).astype(np.float32)
    stack = StackedAutoencoder(12, (8, 6, 4), 1e-5, 0.1, -0.5, seed=3)
    expected = stack.fit(centred, settings=settings).transform(centred)
    np.testing.assert_allclose(
        sparse_autoencoder_text(**SMALL, seed=3).fit(TERMS).transform(TERMS), expected, atol=1e-6
    )


def test_inputs_are_scaled_by_training_and_cut_off():
    learner = MatrixLearner(StackedAutoencoder(3, (2,)), epochs=1)
    learner.fit(np.array([[-1.0, 0.0, 4.0], [1.0, 2.0, 4.0]]))
    new = np.array([[0.0, 9.0, 7.0], [-3.0, 1.0, 4.0]])
    np.testing.assert_allclose(learner._dense(new), [[0.5, 1, 0], [0, 0.5, 0]])
    learner.span = "centred"
    np.testing.assert_allclose(learner._dense(new), [[0, 1, 0], [-1, 0, 0]])
    rare = MatrixLearner(StackedAutoencoder(1, (2,)), span="centred", epochs=1).fit(np.array([[0.0]] * 9 + [[1.0]]))
    np.testing.assert_allclose(rare._dense(np.array([[0.0], [1.0]])), [[-1 / 9], [1]], rtol=1e-6)


def test_at_most_so_many_rows_are_learned_from_and_none_twice(monkeypatch):
    seen = []
    monkeypatch.setattr(StackedAutoencoder, "fit", lambda self, X, settings: seen.append(X[torch.arange(len(X))]))
    monkeypatch.setattr(text_learner, "ROWS", 7)
    numbered = np.arange(91.0)[:, None] * [1.0, 1.0]
    for samples, seed in ((30, 0), (30, 1), (500, 0)):
        MatrixLearner(StackedAutoencoder(2, (2,)), samples=samples, seed=seed).fit(numbered)
    rows = [np.round(90 * x[:, 0].numpy()).astype(int) for x in seen]
    assert [len(set(r)) for r in rows] == [30, 30, 91]
    assert set(rows[0]) != set(rows[1])


def test_learning_from_rows_made_dense_when_asked_for_is_learning_from_all_of_them_to_the_bit():
    """What learned before, from one dense matrix of all samples, and what learns now, are the same network."""
    streamed = sparse_autoencoder_text(**SMALL).fit(TERMS)
    at_once = sparse_autoencoder_text(**SMALL)
    at_once._learn_around(TERMS)
    at_once.stack.fit(at_once._dense(TERMS), settings=at_once.settings)
    for a, b in zip(streamed.stack.parameters(), at_once.stack.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.slow
def test_learning_from_a_wide_sparse_matrix_takes_less_memory_than_its_dense_copy():
    """A dense copy of 20,000 × 4,000 values takes 320 MB; learning and representing take less."""
    code = """
import numpy as np
from scipy import sparse
from assay.broad.systems.learners.text_learner import sparse_autoencoder_text
rng = np.random.default_rng(0)
cells = 20_000 * 20  # drawn one by one: scipy would shuffle all 80 million places, and hide what learning takes
places = rng.integers(20_000, size=cells), rng.integers(4_000, size=cells)
X = sparse.csr_matrix((rng.random(cells, dtype=np.float32), places), shape=(20_000, 4_000))
learner = sparse_autoencoder_text(inputs=4_000, hidden=(4,), samples=20_000, epochs=1)
before = peak()
learner.fit(X).transform(X)
print(json.dumps(peak() - before))
"""
    assert told_by(code) < 0.75 * 20_000 * 4_000 * 4


def test_the_matrix_is_never_dense_as_a_whole(monkeypatch):
    monkeypatch.setattr(text_learner, "ROWS", 16)
    largest = []
    whole = sparse.csr_matrix.toarray

    def watched(self, *args, **keys):
        largest.append(self.shape[0])
        return whole(self, *args, **keys)

    monkeypatch.setattr(sparse.csr_matrix, "toarray", watched)
    learner = denoising_text(**SMALL, samples=40).fit(TERMS)
    learner.transform(TERMS)
    assert max(largest) == 40, "what the layers are prepared with, at most 1,000 rows"
    assert set(largest[-6:]) == {16, 10}, "while rows are represented"


@pytest.mark.parametrize("make", TEAMS)
def test_shallow_has_one_layer_which_is_the_first_of_the_deep_one(make):
    deep = make(**SMALL).fit(TERMS)
    alone = deep.shallow()
    assert alone.layers == ["stack.0"]
    with pytest.raises(AssayError, match="fit first"):
        alone.transform(TERMS)
    np.testing.assert_array_equal(alone.fit(TERMS).transform(TERMS), deep.transform(TERMS, layer=0))
    assert len(deep.layers) == 3


def test_untrained_has_the_initial_weights_and_learned_scales():
    learner = denoising_text(**SMALL, seed=5).fit(TERMS).untrained(TERMS)
    unit = DENSE / np.maximum(DENSE.max(0), 1)
    expected = StackedDenoisingAutoencoder(12, (8, 6, 4), seed=5).transform(unit)
    np.testing.assert_allclose(learner.transform(TERMS), expected, atol=1e-6)


@pytest.mark.parametrize("make", TEAMS)
def test_a_fitted_learner_is_saved_and_read_again(make, tmp_path):
    learner = make(**SMALL).fit(TERMS)
    save_learner(learner, tmp_path / "it")
    again = load_learner(tmp_path / "it", MatrixLearner)
    np.testing.assert_array_equal(again.transform(TERMS), learner.transform(TERMS))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_on_a_gpu_it_learns_too_and_comes_back():
    learner = denoising_text(**SMALL, device="cuda").fit(TERMS)
    assert learner.transform(TERMS).shape == (90, 4)
    assert next(learner.stack.parameters()).device.type == "cpu"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: denoising_text(**SMALL).transform(TERMS), "fit first"),
        (lambda: denoising_text(**SMALL).fit(TERMS[:, :5]), "set inputs"),
        (lambda: denoising_text(**SMALL).fit(DENSE[0]), "set inputs"),
        (lambda: denoising_text(**SMALL).fit([DENSE]), "a list of 1 arrays"),
        (lambda: denoising_text(**SMALL).fit(DENSE[:0]), "no rows"),
        (lambda: denoising_text(**SMALL).fit(DENSE * np.nan), "NaN or infinite"),
        (lambda: denoising_text(**SMALL).fit(TERMS * np.inf), "NaN or infinite"),
        (lambda: denoising_text(**SMALL).fit(TERMS).transform(TERMS, layer=3), "layer=3"),
        (lambda: denoising_text(**SMALL, samples=0), "samples=0"),
        (lambda: denoising_text(**{**SMALL, "epochs": 0}), "epochs=0"),
        (lambda: MatrixLearner(StackedAutoencoder(3, (2,)), span="log"), "span='log'"),
    ],
)
def test_bad_input_is_one_clear_sentence(call, sentence):
    with pytest.raises(AssayError, match=sentence):
        call()
