"""Stacks that learn from blocks of video, made learners from whole clips by histograms of visual words.

This is the bag of features of Wang et al. 2009, with learned descriptors as in Le, Zou, Yeung, Ng 2011.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import pairwise_distances_argmin

from assay.broad.data.dataset import Array, Features
from assay.broad.systems.classifiers.windows import windows
from assay.broad.systems.learners.stack_learner import StackLearner, on_device
from assay.core.errors import AssayError
from assay.core.progress import report
from assay.networks import ConvolutionalDeepBeliefNetwork, StackedISA
from assay.training import Greedy

Size = tuple[int, int, int]
BATCH = 256  # number of blocks described at a time
STARTS = 3  # number of starts of k-means


@dataclass(eq=False)
class ClipLearner(StackLearner):
    """A learner from clips (frames × height × width) made of a stack that learns from blocks of them.

    Learning: ``blocks`` blocks from random places of each clip teach the stack; then, for each layer, the descriptors
    of as many others are clustered by k-means into ``words``. Representing: the blocks on a grid are described by a
    layer, each votes for the nearest word, and a clip becomes the histogram of its votes, divided by their sum.

    A layer is shown blocks as large as it looks at, so that a descriptor has one value for each of its features.

    Args:
        stack: The stack of layers.
        sizes: Frames, height and width of the blocks each layer describes; the stack learns from blocks of the last.
        step: Frames, rows and columns from one block of the grid to the next.
        blocks: Number of blocks taken from each clip to learn from.
        words: Number of words in the vocabulary of each layer.
        weighted: Whether a block votes with the summed activation of the first layer rather than with 1.
        window: Number of frames of a window: a clip becomes a bag with a histogram for each window; frames left over at
            the end join the last window. None for one histogram of the whole clip.
        settings: Settings of the stack's learning, where it takes any.
        seed: Seed of the choice of blocks and of the clustering.
        device: ``"cpu"`` or ``"cuda"``.

    Example:
        >>> clips = list(np.random.default_rng(0).normal(size=(3, 9, 8, 8)))
        >>> stack = StackedISA(((4, 4, 4), (6, 6, 6), (8, 8, 8)), (12, 8, 4), stride=2, iterations=3)
        >>> learner = ClipLearner(stack, stack.sizes, step=(2, 2, 2), blocks=40, words=5).fit(clips)
        >>> learner.transform(clips).shape, learner.transform(clips).sum(1).round(6)
        ((3, 5), array([1., 1., 1.]))
    """

    sizes: Sequence[Size]
    step: Size
    blocks: int = 200
    words: int = 3000
    weighted: bool = False
    window: int | None = None
    settings: Greedy | None = None
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        if min(*self.step, self.blocks, self.words) < 1:
            raise AssayError(f"step={self.step}, blocks={self.blocks}, words={self.words}: all must be positive")
        if len(self.sizes) < len(self.layers):
            raise AssayError(f"sizes={self.sizes}: each of the {len(self.layers)} layers needs one")
        frames = self.sizes[-1][0]
        if self.window is not None and self.window < frames:
            raise AssayError(f"window={self.window} is shorter than a block of {frames} frames: give a longer one")
        self.vocabularies_: list[Array] = []

    def fit(self, X: Features) -> Self:
        """Learn layers and vocabularies from clips."""
        clips = self._checked(X, self.sizes[-1])
        with on_device(self.stack, self.device):
            self.stack.fit(self._sampled(clips, self.sizes[-1], 0), settings=self.settings)
        self._learn_around(clips)
        return self

    def transform(self, X: Features, layer: int = -1) -> Features:
        """Compute histograms of a layer's words: clips × words; with a window, a list of windows × words."""
        self.stack.require_layer(layer)
        if not self.vocabularies_:
            raise AssayError("this learner has not learned yet: fit first")
        number = layer % len(self.layers)
        clips = self._checked(X, self.sizes[number])
        bags = []
        with on_device(self.stack, self.device):
            for i, clip in enumerate(clips):
                spans = [(0, len(clip))] if self.window is None else windows(len(clip), self.window)
                bags.append(np.stack([self._histogram(clip[a:b], number, i) for a, b in spans]))
                report("representing clips", i + 1, len(clips))
        return bags if self.window is not None else np.concatenate([np.empty((0, self.words)), *bags])

    def _histogram(self, clip: Array, layer: int, number: int) -> Array:
        """Count the votes for each word in a clip, and divide them by their sum."""
        size = self.sizes[layer]
        votes = np.zeros(self.words)
        for first in range(0, len(clip) - size[0] + 1, self.step[0]):
            grid = sliding_window_view(clip[first : first + size[0]], size)[0, :: self.step[1], :: self.step[2]]
            descriptors, activation = self._described(grid.reshape(-1, *size), layer)
            nearest = pairwise_distances_argmin(descriptors, self.vocabularies_[layer])
            if self.weighted and activation.min() < 0:
                raise AssayError(f"weighted={self.weighted}: activations of {self.layers[0]} are negative")
            votes += np.bincount(nearest, activation if self.weighted else None, self.words)
        if not votes.sum() > 0:
            raise AssayError(f"clip {number} activates nothing in {self.layers[0]}: there are no votes to weight")
        return np.asarray(votes / votes.sum())

    def _learn_around(self, X: Features) -> None:
        """Learn the vocabulary of each layer."""
        clips = self._checked(X, self.sizes[-1])
        self.vocabularies_ = []
        for layer in range(len(self.layers)):
            with on_device(self.stack, self.device):
                descriptors, _ = self._described(self._sampled(clips, self.sizes[layer], 1 + layer), layer)
            distinct = len(np.unique(descriptors, axis=0))
            if distinct < self.words:
                raise AssayError(
                    f"words={self.words}, but {self.blocks} blocks of each of {len(clips)} clips have {distinct} "
                    f"different descriptors in {self.layers[layer]}: ask for fewer words, or take more blocks"
                )
            clusters = MiniBatchKMeans(self.words, n_init=STARTS, random_state=self.seed).fit(descriptors)
            self.vocabularies_.append(np.asarray(clusters.cluster_centers_))
            report("learning words", layer + 1, len(self.layers))

    def _sampled(self, clips: list[Array], size: Size, stream: int) -> Array:
        """Take blocks from random places of each clip: blocks × frames × height × width."""
        if not clips:
            raise AssayError("there are no clips to learn from")
        rng = np.random.default_rng((self.seed, stream))
        t, h, w = size
        taken = []
        for clip in clips:
            room = [have - need + 1 for have, need in zip(clip.shape, size, strict=True)]
            for a, b, c in rng.integers(0, room, (self.blocks, 3)):
                taken.append(clip[a : a + t, b : b + h, c : c + w])
        return np.stack(taken)

    @torch.no_grad()
    def _described(self, blocks: Array, layer: int) -> tuple[Array, Array]:
        """Describe blocks by a layer; give the descriptors, and the summed activation of the first layer."""
        descriptors = []
        activation = []
        for first in range(0, len(blocks), BATCH):
            x = torch.tensor(blocks[first : first + BATCH], device=self.device)
            for i, part in enumerate(self.stack.stack[: layer + 1]):
                x = part(x)
                if i == 0:
                    activation.append(x.flatten(1).sum(1).cpu().numpy())
            descriptors.append(x.flatten(1).cpu().numpy())
        return np.concatenate(descriptors), np.concatenate(activation)

    def _checked(self, X: Features, size: Size) -> list[Array]:
        """Check that each clip is frames × height × width, finite and as large as a block, and give the clips."""
        if not isinstance(X, (list, np.ndarray)):
            raise AssayError(f"features are a {type(X).__name__}, not a list of clips")
        clips = [np.asarray(clip, np.float32) for clip in X]
        for i, clip in enumerate(clips):
            if clip.ndim != 3:
                raise AssayError(f"clip {i} has shape {clip.shape}, not frames × height × width: preprocess it first")
            if any(have < need for have, need in zip(clip.shape, size, strict=True)):
                raise AssayError(
                    f"clip {i} is {clip.shape}, smaller than a block of {size} (frames, height, width): "
                    "take smaller blocks or leave the clip out"
                )
            if not np.isfinite(clip).all():
                raise AssayError(f"clip {i} has NaN or infinite values")
        return clips


def isa_clips(
    sizes: Sequence[Size] = ((10, 16, 16), (14, 20, 20), (18, 24, 24)),
    components: Sequence[int] = (300, 200, 200),
    groups: Sequence[int] = (1, 2, 2),
    stride: int = 4,
    iterations: int = 2000,
    step: Size = (9, 12, 12),
    blocks: int = 200,
    words: int = 3000,
    weighted: bool = True,
    window: int | None = None,
    seed: int = 0,
    device: str = "cpu",
) -> ClipLearner:
    """Make a learner of stacked ISA on blocks of clips; see `assay.networks.StackedISA` and `ClipLearner`.

    Args:
        sizes: Frames, height and width of a block of each layer.
        components: Number of directions that the inputs of each layer are whitened to.
        groups: Number of directions in a subspace, for each layer.
        stride: Distance between blocks of a layer inside a block of the next.
        iterations: The largest number of learning steps for each layer.
        step, blocks, words, weighted, window, device: Settings of the `ClipLearner`.
        seed: Seed of all random draws.

    Le, Zou, Yeung, Ng 2011; 200 blocks of each clip, 3,000 words and weighted votes as in their released system.
    """
    stack = StackedISA(sizes, components, groups, stride, iterations, seed)
    return ClipLearner(stack, stack.sizes, step, blocks, words, weighted, window, None, seed, device)


def cdbn_clips(
    maps: Sequence[int] = (16, 32, 64),
    size: int = 5,
    pool: int = 2,
    sigma: float = 0.6,
    weight_decay: float = 0.001,
    sparsity: float = 5.0,
    target: float = 0.02,
    step: Size = (10, 12, 12),
    blocks: int = 200,
    words: int = 1000,
    weighted: bool = False,
    window: int | None = 30,
    epochs: int = 10,
    batch_size: int = 100,
    learning_rate: float = 1e-3,
    seed: int = 0,
    device: str = "cpu",
) -> ClipLearner:
    """Make a learner of a convolutional deep belief network on patches of single frames, voting in windows.

    See `assay.networks.ConvolutionalDeepBeliefNetwork` and `ClipLearner`. A feature of layer n looks at a square of
    side s_n = pool·s_{n−1} + size − 1, s_0 = 1: 6, 16 and 36 pixels for filters of 5 pooled by 2.

    Args:
        maps: Number of feature maps of each layer.
        size: Side of the filters, in pixels.
        pool: Side of the pooling blocks, in pixels.
        sigma: σ of the pixels, which have a standard deviation of about 1 after contrast normalisation.
        weight_decay: Weight λ of the penalty on large weights.
        sparsity: Weight β of the penalty on activations away from the target.
        target: Mean activation ρ aimed at.
        step, blocks, words, weighted, window, device: Settings of the `ClipLearner`; blocks are patches of one frame.
        epochs: Number of passes over the patches for each layer.
        batch_size: Number of patches per step.
        learning_rate: Learning rate of Adam at the start.
        seed: Seed of all random draws.

    Lee, Grosse, Ranganath, Ng 2009.
    """
    stack = ConvolutionalDeepBeliefNetwork(1, maps, size, pool, sigma, weight_decay, sparsity, target, seed)
    sizes = []
    side = 1
    for _ in maps:
        side = pool * side + size - 1
        sizes.append((1, side, side))
    settings = Greedy(epochs, batch_size, learning_rate, seed)
    return ClipLearner(stack, sizes, step, blocks, words, weighted, window, settings, seed, device)
