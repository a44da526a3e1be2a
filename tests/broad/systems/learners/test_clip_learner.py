from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from assay import AssayError
from assay.broad.systems.learners.clip_learner import ClipLearner, cdbn_clips, isa_clips
from assay.broad.systems.saved_learner import load_learner, save_learner
from assay.networks import StackedAutoencoder, StackedISA

RNG = np.random.default_rng(0)
SHAPES = [(12, 24, 24), (17, 24, 26), (12, 24, 24), (25, 24, 24)]
CLIPS = [RNG.normal(size=shape).cumsum(0).astype(np.float32) / 3 for shape in SHAPES]


def isa(**changes) -> ClipLearner:
    settings = {
        "sizes": ((4, 4, 4), (6, 6, 6), (8, 8, 8)),
        "components": (20, 12, 8),
        "stride": 2,
        "iterations": 10,
        "step": (3, 6, 5),
        "blocks": 60,
        "words": 7,
    }
    return isa_clips(**{**settings, **changes})


def cdbn(**changes) -> ClipLearner:
    settings = {"maps": (4, 5, 6), "size": 3, "step": (6, 5, 2), "blocks": 30, "words": 7, "window": 10, "epochs": 1}
    return cdbn_clips(**{**settings, **changes})


def obvious(learner: ClipLearner, clip: np.ndarray, layer: int) -> np.ndarray:
    """The histogram, one block at a time."""
    (t, h, w), (a, b, c) = learner.sizes[layer], learner.step
    votes = np.zeros(learner.words)
    for i in range(0, clip.shape[0] - t + 1, a):
        for j in range(0, clip.shape[1] - h + 1, b):
            for k in range(0, clip.shape[2] - w + 1, c):
                block = clip[None, i : i + t, j : j + h, k : k + w]
                found = learner.stack.transform(block, layer)[0]
                nearest = ((learner.vocabularies_[layer] - found) ** 2).sum(1).argmin()
                votes[nearest] += learner.stack.transform(block, 0).sum() if learner.weighted else 1
    return votes / votes.sum()


@pytest.fixture(scope="module")
def fitted() -> dict[str, ClipLearner]:
    return {"isa": isa().fit(CLIPS), "cdbn": cdbn(window=None).fit(CLIPS)}


@pytest.mark.parametrize("which", ["isa", "cdbn"])
def test_every_layer_gives_the_histogram_of_its_words(fitted, which):
    learner = fitted[which]
    assert learner.layers == ["stack.0", "stack.1", "stack.2"]
    for layer in range(3):
        found = learner.transform(CLIPS[:2], layer)
        assert found.shape == (2, 7)
        for clip, histogram in zip(CLIPS[:2], found, strict=True):
            np.testing.assert_allclose(histogram, obvious(learner, clip, layer), atol=1e-6)
    assert learner.weighted == (which == "isa")
    assert learner.transform(CLIPS).std(0).max() > 0.01


@pytest.mark.parametrize("which", ["isa", "cdbn"])
def test_a_descriptor_has_one_value_for_each_feature_of_its_layer(fitted, which):
    features = {"isa": (20, 6, 4), "cdbn": (4, 5, 6)}[which]
    assert [v.shape for v in fitted[which].vocabularies_] == [(7, f) for f in features]


def test_the_patches_of_a_belief_network_are_what_its_features_look_at():
    assert cdbn().sizes == [(1, 4, 4), (1, 10, 10), (1, 22, 22)]
    assert cdbn_clips().sizes == [(1, 6, 6), (1, 16, 16), (1, 36, 36)]


@pytest.mark.parametrize("make", [isa, cdbn])
def test_windows_are_histograms_of_their_own_frames(make, fitted):
    bags = make(window=10).fit(CLIPS).transform(CLIPS)
    assert [bag.shape for bag in bags] == [(1, 7), (1, 7), (1, 7), (2, 7)]  # what is left over joins the last
    plain = fitted["isa" if make is isa else "cdbn"]  # the same words: a window changes nothing in learning
    np.testing.assert_allclose(bags[1], plain.transform([CLIPS[1]]))
    np.testing.assert_allclose(bags[3], plain.transform([CLIPS[3][:10], CLIPS[3][10:]]))


@pytest.mark.parametrize("which", ["isa", "cdbn"])
def test_clips_are_independent_and_transforming_changes_nothing(fitted, which):
    learner = fitted[which]
    found = learner.transform(CLIPS)
    np.testing.assert_array_equal(learner.transform(CLIPS[::-1])[::-1], found)
    np.testing.assert_array_equal(np.concatenate([learner.transform([clip]) for clip in CLIPS]), found)
    assert learner.transform([]).shape == (0, 7)  # a task may have no validation set


@pytest.mark.parametrize("make", [isa, cdbn])
def test_learning_depends_on_the_seed_alone(make):
    one, two, other = make(), make(), make(seed=1)
    for learner in (one, two, other):
        learner.fit(CLIPS[:3])
    for a, b, c in zip(one.vocabularies_, two.vocabularies_, other.vocabularies_, strict=True):
        np.testing.assert_array_equal(a, b)
        assert not np.allclose(a, c)
    one.fit(CLIPS[:3])  # begins anew
    np.testing.assert_array_equal(one.vocabularies_[-1], two.vocabularies_[-1])


def test_all_clips_are_sampled_as_often_and_from_everywhere():
    learner = isa(blocks=400)
    numbered = [np.full((9, 9, 10), i, np.float32) + np.arange(10, dtype=np.float32) / 100 for i in range(3)]
    blocks = learner._sampled(numbered, (8, 8, 8), 0)
    assert blocks.shape == (1200, 8, 8, 8)
    corners, counts = np.unique(np.round(blocks[:, 0, 0, 0], 4), return_counts=True)
    np.testing.assert_allclose(corners, [0, 0.01, 0.02, 1, 1.01, 1.02, 2, 2.01, 2.02], atol=1e-6)
    assert counts.min() > 90  # 133 expected, a standard deviation of 9


@pytest.mark.parametrize("which", ["isa", "cdbn"])
def test_shallow_has_one_layer_learned_from_the_same_blocks(fitted, which):
    alone = fitted[which].shallow()
    assert alone.layers == ["stack.0"]
    with pytest.raises(AssayError, match="fit first"):
        alone.transform(CLIPS)
    # The first layer does not depend on those above it, nor do its words.
    np.testing.assert_array_equal(alone.fit(CLIPS).transform(CLIPS), fitted[which].transform(CLIPS, layer=0))
    assert len(fitted[which].layers) == 3


def test_untrained_has_words_for_the_initial_weights():
    learner = isa().fit(CLIPS)
    learned = learner.vocabularies_[0]
    learner.untrained(CLIPS)
    torch.testing.assert_close(learner.stack.state_dict(), isa().stack.state_dict(), atol=0, rtol=0)
    assert not np.allclose(learner.vocabularies_[0], learned)
    np.testing.assert_allclose(learner.transform(CLIPS).sum(1), 1)


def test_gratings_that_drift_sideways_and_downwards_get_other_words():
    def film(way: int, seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        t, y, x = np.mgrid[:12, :24, :24]
        wave = np.sin(2 * np.pi * ((y if way else x) / 6 + t / 8 + rng.random()))
        return (wave + 0.2 * rng.normal(size=wave.shape)).astype(np.float32)

    films = [film(way, 2 * seed + way) for seed in range(6) for way in (0, 1)]
    # Few components: whitening makes directions of noise as strong as those of the gratings.
    learner = isa(components=(6, 6, 4), iterations=100, words=12).fit(films[:6])
    for layer in (0, 1):
        found = learner.transform(films, layer)
        means = [found[way:6:2].mean(0) for way in (0, 1)]
        nearest = np.abs(found[6:, None] - means).sum(2).argmin(1)
        np.testing.assert_array_equal(nearest, [0, 1, 0, 1, 0, 1])


@pytest.mark.parametrize("which", ["isa", "cdbn"])
def test_a_fitted_learner_is_saved_and_read_again(fitted, which, tmp_path):
    save_learner(fitted[which], tmp_path / "it")
    again = load_learner(tmp_path / "it", ClipLearner)
    np.testing.assert_array_equal(again.transform(CLIPS), fitted[which].transform(CLIPS))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("make", [isa, cdbn])
def test_on_a_gpu_it_learns_too_and_comes_back(make):
    learner = make(device="cuda", window=None).fit(CLIPS)
    np.testing.assert_allclose(learner.transform(CLIPS).sum(1), 1)
    assert next(learner.stack.parameters()).device.type == "cpu"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: isa().fit([CLIPS[0], CLIPS[1][:7]]), r"clip 1 is \(7, 24, 26\), smaller than a block of \(8, 8, 8\)"),
        (lambda: cdbn().fit([CLIPS[0][:, :21]]), "clip 0 .* smaller"),
        (lambda: isa().fit(CLIPS[0]), "not frames × height × width"),
        (lambda: isa().fit(sparse.csr_matrix((2, 2))), "not a list of clips"),
        (lambda: isa().fit([]), "no clips"),
        (lambda: isa().fit([CLIPS[0] * np.nan]), "clip 0 has NaN"),
        (lambda: isa().fit([np.zeros_like(c) for c in CLIPS]), "vary in 0 directions"),
        (lambda: isa().transform(CLIPS), "fit first"),
        (lambda: isa(words=300).fit(CLIPS), "words=300, but 60 blocks of each of 4 clips have 23. different"),
        (lambda: cdbn().fit([np.zeros_like(c) for c in CLIPS]), "have 1 different"),
        (lambda: isa(window=7), "window=7 is shorter than a block of 8"),
        (lambda: isa(step=(0, 1, 1)), "step="),
        (lambda: isa(blocks=0), "blocks=0"),
        (lambda: ClipLearner(StackedISA(), [(10, 16, 16)], (1, 1, 1)), "each of the 3 layers"),
        (
            lambda: (
                ClipLearner(StackedAutoencoder(64, (5,)), [(1, 8, 8)], (4, 8, 8), words=4, weighted=True)
                .fit(CLIPS)
                .transform(CLIPS)
            ),
            "activations of stack.0 are negative",
        ),
    ],
)
def test_bad_input_is_one_clear_sentence(call, sentence):
    with pytest.raises(AssayError, match=sentence):
        call()


def test_a_layer_that_is_not_there_is_one_clear_sentence(fitted):
    with pytest.raises(AssayError, match="layer=5"):
        fitted["isa"].transform(CLIPS, layer=5)
