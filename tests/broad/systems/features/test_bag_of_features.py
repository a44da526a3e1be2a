"""Bag of features: histograms of words, whatever is done together or apart."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

from assay.broad.data.dataset import Inputs
from assay.broad.systems.features import bag_of_features
from assay.broad.systems.features.bag_of_features import BagOfFeatures, nearest_word
from assay.broad.systems.features.clips import read_clip
from assay.broad.systems.features.hog3d import HOLLYWOOD2, Sampling, dense_boxes, hog3d
from assay.core.errors import AssayError
from assay.stimuli.clips import ArrayClip

rng = np.random.default_rng(0)
SMALL = {"words": 6, "sample": 200, "restarts": 2, "width": 40, "spatial_scales": 2, "temporal_scales": 1}


def inputs(*arrays):
    names = tuple(f"clip{i}" for i in range(len(arrays)))
    return Inputs([ArrayClip(n, a) for n, a in zip(names, arrays, strict=True)], names)


NOISE = inputs(*(rng.random((n, 30, 40)) for n in (12, 15, 21)))


def descriptors(clip):
    frames = torch.from_numpy(read_clip(clip, 40))
    return hog3d(frames, *dense_boxes(frames.shape, HOLLYWOOD2, Sampling(spatial_scales=2, temporal_scales=1))).numpy()


def test_histograms_equal_those_of_scikit_learn():
    """All descriptors in the sample: k-means and its own assignment, clip by clip."""
    bag = BagOfFeatures(**SMALL).fit(NOISE)
    own = [descriptors(clip) for clip in NOISE.items]
    assert sum(map(len, own)) < 200
    words = bag.words_.numpy()
    expected = []
    for some in own:
        distance = np.square(some[:, None].astype(float) - words).sum(2)
        expected.append(np.bincount(distance.argmin(1), minlength=6) / len(some))
    np.testing.assert_allclose(bag.transform(NOISE), expected, atol=1e-12)
    # The words are a fixed point of k-means on all descriptors: each is the mean of those nearest to it.
    everything = np.concatenate(own)
    again = KMeans(6, init=words, n_init=1, max_iter=1).fit(everything)
    np.testing.assert_allclose(again.cluster_centers_, words, atol=1e-3)


def test_each_row_sums_to_one_and_stands_alone():
    bag = BagOfFeatures(**SMALL).fit(NOISE)
    together = bag.transform(NOISE)
    np.testing.assert_allclose(together.sum(axis=1), 1, atol=1e-12)
    for i in range(3):
        np.testing.assert_array_equal(bag.transform(NOISE.take(np.array([i])))[0], together[i])


@pytest.mark.slow
def test_parts_make_no_difference(monkeypatch):
    whole = BagOfFeatures(**SMALL).fit(NOISE)
    expected = whole.transform(NOISE)
    monkeypatch.setattr(bag_of_features, "BOXES", 11)
    monkeypatch.setattr(bag_of_features, "DESCRIPTORS", 5)
    parted = BagOfFeatures(**SMALL).fit(NOISE)
    torch.testing.assert_close(parted.words_, whole.words_, atol=1e-5, rtol=0)
    np.testing.assert_allclose(parted.transform(NOISE), expected, atol=1e-12)


def test_the_sample_is_of_the_size_asked_for_and_drawn_from_all_clips():
    bag = BagOfFeatures(**SMALL | {"sample": 30})
    everything = [descriptors(clip) for clip in NOISE.items]
    sample = bag._sampled(NOISE)
    assert sample.shape == (30, 300)
    owners = np.concatenate([np.full(len(d), i) for i, d in enumerate(everything)])
    distance = np.square(sample[:, None] - np.concatenate(everything)).sum(2)
    assert distance.min(1).max() < 1e-8 and len(set(distance.argmin(1))) == 30  # without replacement
    assert set(owners[distance.argmin(1)]) == {0, 1, 2}


def test_every_descriptor_has_the_same_chance_to_be_in_the_sample(monkeypatch):
    """Descriptors that are their own number: over seeds, each of 30 is drawn 10/30 of the time."""
    monkeypatch.setattr(
        bag_of_features, "hog3d", lambda video, where, scales, how: where[:, :1].float().expand(-1, 300)
    )

    def boxes(self, clip):
        first = {"clip0": 0, "clip1": 5, "clip2": 15}[clip.name]
        count = {"clip0": 5, "clip1": 10, "clip2": 15}[clip.name]
        return torch.empty(0), torch.arange(first, first + count)[:, None].double(), torch.ones(count, 2)

    monkeypatch.setattr(BagOfFeatures, "_boxes", boxes)
    drawn = np.zeros(30)
    for seed in range(600):
        drawn[BagOfFeatures(words=2, sample=10, seed=seed)._sampled(NOISE)[:, 0].astype(int)] += 1
    # Binomial(600, 1/3): mean 200, standard deviation 11.5; five of them.
    assert drawn.sum() == 6000 and np.abs(drawn - 200).max() < 58


def test_the_same_seed_gives_the_same_words():
    one, same, other = (BagOfFeatures(**SMALL | {"sample": 40, "seed": s}).fit(NOISE).words_ for s in (0, 0, 1))
    assert torch.equal(one, same) and not torch.equal(one, other)


def test_clips_that_differ_in_motion_differ_in_words():
    """Gratings that drift to one side or stand still: nearest neighbours are of the same kind."""
    x = np.arange(40) * np.ones((30, 1))

    def grating(speed, phase):
        frames = [0.5 + 0.5 * np.sin(0.8 * (x - speed * t) + phase) for t in range(12)]
        return np.stack(frames) + 0.02 * rng.random((12, 30, 40))

    clips = inputs(*(grating(speed, phase) for speed in (0, 1.5) for phase in (0, 1, 2, 3)))
    histograms = BagOfFeatures(**SMALL).fit(clips).transform(clips)
    distance = np.abs(histograms[:, None] - histograms).sum(2) + 9 * np.eye(8)
    assert ((distance.argmin(1) < 4) == (np.arange(8) < 4)).all()


def test_a_clip_without_a_descriptor_has_a_row_of_zeros_and_is_counted(caplog):
    bag = BagOfFeatures(**SMALL).fit(NOISE)
    mixed = inputs(rng.random((12, 30, 40)), rng.random((4, 30, 40)), np.full((12, 30, 40), 0.5))  # short, flat
    with caplog.at_level(logging.WARNING):
        found = bag.transform(mixed)
    np.testing.assert_allclose(found.sum(axis=1), [1, 0, 0], atol=1e-12)
    assert "2 of 3 clips have no descriptor" in caplog.text


@pytest.mark.parametrize(("preset", "length"), [("hollywood2", 300), ("kth", 1000), ("wang", 960)])
def test_presets_by_name(preset, length):
    bag = BagOfFeatures(**SMALL | {"preset": preset, "restarts": 1, "stride": 1.0})
    assert bag.fit(NOISE).words_.shape == (6, length)


def test_parameters_are_kept_under_their_names():
    bag = BagOfFeatures(**SMALL)
    assert {name: getattr(bag, name) for name in SMALL} == SMALL
    assert (BagOfFeatures().words, BagOfFeatures().sample, BagOfFeatures().restarts) == (4000, 100_000, 8)


def test_nearest_word_equals_distances():
    x, words = (torch.from_numpy(rng.normal(size=(n, 7))) for n in (50, 9))
    assert torch.equal(nearest_word(x, words), torch.cdist(x, words).argmin(1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: BagOfFeatures(preset="hollywod"), "did you mean 'hollywood2'"),
        (lambda: BagOfFeatures(words=0), "words=0"),
        (lambda: BagOfFeatures(words=10, sample=9), "sample=9"),
        (lambda: BagOfFeatures(restarts=0), "restarts=0"),
        (lambda: BagOfFeatures(stride=0), "stride=0"),
        (lambda: BagOfFeatures(width=0), "width=0"),
        (lambda: BagOfFeatures(words=3).transform(NOISE), "no vocabulary yet"),
        (lambda: BagOfFeatures(width=40).fit(NOISE), "words=4000 need as many descriptors, the clips have 64"),
        (lambda: BagOfFeatures().fit(Inputs(["a review"], ("r",))), "BagOfFeatures takes clips, not str"),
    ],
)
def test_wrong_calls_say_what_is_wrong(call, message):
    with pytest.raises(AssayError, match=message):
        call()
