"""Bag of features: a clip as a histogram of the visual words in it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Self

import numpy as np
import torch
from sklearn.cluster import KMeans
from torch import Tensor

from assay.broad.data.dataset import Array, Inputs
from assay.broad.systems.features.clips import WIDTH, check_reading, clips_of, read_clip
from assay.broad.systems.features.hog3d import PRESETS, Sampling, dense_boxes, hog3d
from assay.core.errors import AssayError, nearest
from assay.core.progress import report
from assay.stimuli.clips import Clip

log = logging.getLogger(__name__)
BOXES = 2**15  # number of boxes described together
DESCRIPTORS = 2**12  # number of descriptors assigned to words together


class BagOfFeatures:
    """Extracts how often each visual word is seen in a clip; words are centres of clusters of HOG3D descriptors.

    Dense boxes of a clip are described by HOG3D. k-means on a random sample of the training clips' descriptors gives
    the vocabulary; of several restarts the one of lowest error is kept. Each descriptor counts for its nearest word;
    the histogram of a clip sums to 1. A clip without a descriptor (too short, too small, or without contrast) has a
    row of zeros, and a warning counts these.

    Args:
        preset: Name of the settings of HOG3D: ``"hollywood2"``, ``"kth"`` or ``"wang"``.
        words: Number of words in the vocabulary.
        sample: Number of descriptors that k-means sees, chosen at random among all those of the training clips.
        restarts: Number of restarts of k-means.
        seed: Seed of the sample and of k-means.
        device: Device on which descriptors are computed and assigned.
        stride: Distance from box to box, as a share of their size.
        spatial_scales: Number of sizes of boxes, from 18 pixels on, each √2 times larger than the one before.
        temporal_scales: Number of lengths of boxes, from 10 frames on, each √2 times longer than the one before.
        width: Width of the frames in pixels.
        every: Step between the frames taken: 2 for every second frame.
        frames: The largest number of frames to take; None for all.

    Example:
        >>> from assay.stimuli.clips import ArrayClip
        >>> noise = np.random.default_rng(0).random((2, 12, 24, 32))
        >>> clips = Inputs([ArrayClip(name, x) for name, x in zip("ab", noise)], ("a", "b"))
        >>> bag = BagOfFeatures(words=3, restarts=1, width=32).fit(clips)
        >>> bag.transform(clips).sum(axis=1)
        array([1., 1.])

    Wang, Ullah, Kläser, Laptev, Schmid 2009, "Evaluation of local spatio-temporal features for action recognition".
    """

    words_: Tensor
    """Centres of the words, words × d."""

    def __init__(
        self,
        preset: str = "hollywood2",
        words: int = 4000,
        sample: int = 100_000,
        restarts: int = 8,
        seed: int = 0,
        device: str = "cpu",
        stride: float = 0.5,
        spatial_scales: int = 8,
        temporal_scales: int = 2,
        width: int = WIDTH,
        every: int = 1,
        frames: int | None = None,
    ) -> None:
        if preset not in PRESETS:
            raise AssayError(f"preset={preset!r} is not known{nearest(preset, PRESETS)}")
        if not 1 <= words <= sample or restarts < 1:
            raise AssayError(
                f"words={words} and restarts={restarts} must be at least 1, sample={sample} at least words"
            )
        check_reading(width, every, frames)
        self.preset = preset
        self.words = words
        self.sample = sample
        self.restarts = restarts
        self.seed = seed
        self.device = device
        self.stride = stride
        self.spatial_scales = spatial_scales
        self.temporal_scales = temporal_scales
        self.width = width
        self.every = every
        self.frames = frames
        self._sampling = Sampling(stride=stride, spatial_scales=spatial_scales, temporal_scales=temporal_scales)

    def fit(self, inputs: Inputs) -> Self:
        """Learn the vocabulary from training clips."""
        sampled = self._sampled(inputs)
        if len(sampled) < self.words:
            raise AssayError(
                f"words={self.words} need as many descriptors, the clips have {len(sampled)}: use fewer words"
            )
        kmeans = KMeans(self.words, n_init=self.restarts, random_state=self.seed).fit(sampled)
        self.words_ = torch.from_numpy(kmeans.cluster_centers_).to(self.device)
        return self

    def transform(self, inputs: Inputs) -> Array:
        """Compute the histograms of visual words, clips × words."""
        if not hasattr(self, "words_"):
            raise AssayError("BagOfFeatures has no vocabulary yet: call fit with the training clips first")
        counts = np.zeros((len(inputs), self.words))
        for i, clip in enumerate(clips_of(inputs, "BagOfFeatures")):
            video, centres, scales = self._boxes(clip)
            for descriptors in self._described(video, centres, scales):
                for part in torch.split(descriptors[~descriptors[:, 0].isnan()], DESCRIPTORS):
                    counts[i] += np.bincount(nearest_word(part, self.words_).cpu().numpy(), minlength=self.words)
            report("bag of features: clips", i + 1, len(inputs))
        total = counts.sum(axis=1, keepdims=True)
        empty = int((total == 0).sum())
        if empty:
            log.warning("%d of %d clips have no descriptor; their histograms are all zeros", empty, len(inputs))
        histograms: Array = counts / np.maximum(total, 1)
        return histograms

    def _sampled(self, inputs: Inputs) -> Array:
        """Sample descriptors uniformly, by the smallest random keys; boxes with keys too large are not described."""
        sample = np.empty((0, PRESETS[self.preset].dimensions), dtype=np.float32)
        keys = np.empty(0)
        for i, clip in enumerate(clips_of(inputs, "BagOfFeatures")):
            video, centres, scales = self._boxes(clip)
            clip_keys = np.random.default_rng([self.seed, i]).random(len(centres))
            likely = np.flatnonzero(clip_keys < (keys.max() if len(keys) == self.sample else 1.0))
            for descriptors in self._described(video, centres[likely], scales[likely]):
                boxes = likely[: len(descriptors)]
                likely = likely[len(descriptors) :]
                described = (~descriptors[:, 0].isnan()).cpu().numpy()
                keys = np.concatenate([keys, clip_keys[boxes][described]])
                sample = np.concatenate([sample, descriptors.cpu().numpy()[described]])
                smallest = np.argsort(keys)[: self.sample]
                keys = keys[smallest]
                sample = sample[smallest]
            report("bag of features: vocabulary", i + 1, len(inputs))
        return sample

    def _boxes(self, clip: Clip) -> tuple[Tensor, Tensor, Tensor]:
        video = torch.from_numpy(read_clip(clip, self.width, self.every, self.frames)).to(self.device)
        return video, *dense_boxes(video.shape, PRESETS[self.preset], self._sampling)

    def _described(self, video: Tensor, centres: Tensor, scales: Tensor) -> Iterator[Tensor]:
        for where, size in zip(torch.split(centres, BOXES), torch.split(scales, BOXES), strict=True):
            yield hog3d(video, where, size, PRESETS[self.preset])


def nearest_word(descriptors: Tensor, words: Tensor) -> Tensor:
    """Find the word nearest to each descriptor: argmin_k ‖x − w_k‖² = argmin_k ‖w_k‖² − 2·x·w_k.

    Example:
        >>> nearest_word(torch.tensor([[0.9, 0.0], [0.0, 2.0]]), torch.tensor([[0.0, 1.0], [1.0, 0.0]])).tolist()
        [1, 0]
    """
    return torch.addmm(words.square().sum(1), descriptors, words.T, alpha=-2).argmin(1)
