"""Clips as arrays of grey frames of one width, the teams' preprocessors of them, and vectors of one length."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, Self

import numpy as np
import torch
from scipy import sparse
from torch.nn import functional as F

from assay.broad.data.dataset import Array, Features, Inputs
from assay.broad.systems.features.contrast import local_contrast
from assay.core.errors import AssayError
from assay.core.progress import report
from assay.stimuli.clips import Clip
from assay.stimuli.transforms import Grey

WIDTH = 300  # pixels, plan §4.1; the height is free


def read_clip(clip: Clip, width: int | None = WIDTH, every: int = 1, frames: int | None = None) -> Array:
    """Read a clip as a grey array (ITU-R 601 luma), T×H×W float32 in [0, 1].

    Args:
        clip: Clip to read.
        width: Width of the frames in pixels, the height in proportion; shrinking averages over area. None keeps their
            size.
        every: Step between the frames taken, from the first on: 2 for every second frame.
        frames: The largest number of frames to take; None for all.

    Example:
        >>> from assay.stimuli.clips import ArrayClip
        >>> read_clip(ArrayClip("grey", np.full((9, 60, 80), 0.5)), width=40, every=2, frames=4).shape
        (4, 30, 40)

    Plan §4.1: "frames must be 300 pixels but the height can vary", read as the width.
    """
    check_reading(width, every, frames)
    taken = []
    for frame in islice(clip.checked_frames(), 0, None if frames is None else every * frames, every):
        if frame.shape[0] not in (1, 3):
            raise AssayError(f"clip {clip.name!r}: frames have {frame.shape[0]} channels; grey has 1, colour 3")
        grey = Grey()(torch.tensor(frame)[None])
        height = None if width is None else max(round(frame.shape[1] * width / frame.shape[2]), 1)
        if width is not None and height is not None and grey.shape[2:] != (height, width):
            grey = F.interpolate(grey, (height, width), mode="bilinear", antialias=True)
        taken.append(grey[0, 0].numpy())
    return np.stack(taken)


def check_reading(width: int | None, every: int, frames: int | None) -> None:
    """Raise an error for settings of `read_clip` that read nothing."""
    if every < 1 or (width is not None and width < 1) or (frames is not None and frames < 1):
        raise AssayError(f"width={width}, every={every}, frames={frames} must be at least 1")


def clips_of(inputs: Inputs, what: str) -> Sequence[Clip]:
    """Give the instances as clips; an error says that ``what`` takes clips where they are something else."""
    items: Any = inputs.items
    if sparse.issparse(items) or not all(isinstance(item, Clip) for item in items):
        raise AssayError(f"{what} takes clips, not {type(items if sparse.issparse(items) else items[0]).__name__}")
    clips: Sequence[Clip] = items
    return clips


class GreyClips:
    """Preprocessor that makes grey clips, by default at half the width of the plan.

    Args:
        width: Width of the frames in pixels.
        every: Step between the frames taken: 2 for every second frame.
        frames: The largest number of frames to take; None for all.
    """

    def __init__(self, width: int = WIDTH // 2, every: int = 1, frames: int | None = None) -> None:
        check_reading(width, every, frames)
        self.width = width
        self.every = every
        self.frames = frames

    def fit(self, inputs: Inputs) -> Self:
        """Check that the instances are clips; nothing is learned."""
        clips_of(inputs, type(self).__name__)
        return self

    def transform(self, inputs: Inputs) -> list[Array]:
        """Preprocess clips, each to an array T×H×W."""
        arrays = []
        for i, clip in enumerate(clips_of(inputs, type(self).__name__)):
            arrays.append(self._processed(read_clip(clip, self.width, self.every, self.frames)))
            report(f"{type(self).__name__}: clips", i + 1, len(inputs))
        return arrays

    def _processed(self, frames: Array) -> Array:
        return frames


class ContrastClips(GreyClips):
    """Preprocessor that makes grey clips and normalises their local contrast in space and time (`local_contrast`).

    Args:
        width: Width of the frames in pixels.
        every: Step between the frames taken: 2 for every second frame.
        frames: The largest number of frames to take; None for all.
        sigma: Standard deviation of the window in x and y, in pixels.
        tau: Standard deviation of the window in t, in frames.
    """

    def __init__(
        self, width: int = WIDTH, every: int = 1, frames: int | None = None, sigma: float = 2.0, tau: float = 2.0
    ) -> None:
        super().__init__(width, every, frames)
        if sigma <= 0 or tau <= 0:
            raise AssayError(f"sigma={sigma} pixels and tau={tau} frames must be positive")
        self.sigma = sigma
        self.tau = tau

    def _processed(self, frames: Array) -> Array:
        return local_contrast(torch.from_numpy(frames), self.sigma, self.tau).numpy()


def as_vectors(X: Features, grid: tuple[int, int, int] = (4, 8, 8)) -> Array | sparse.csr_matrix:
    """Turn features into a matrix with one row for each instance.

    Clips T×H×W are averaged over the parts of a grid (t, y, x) that covers each of them, so that clips of all sizes
    have the same number of features; of bags m×d the mean over their m windows is taken; a matrix is left alone.

    Args:
        X: Features as clips, bags or a matrix.
        grid: Number of parts in t, y and x.

    Example:
        >>> as_vectors([np.arange(4.0).reshape(1, 2, 2), np.ones((5, 3, 9))], grid=(1, 1, 2))
        array([[1., 2.],
               [1., 1.]])
    """
    if not isinstance(X, list):
        return X
    kinds = {x.ndim for x in X}
    if kinds not in ({2}, {3}) or any(x.size == 0 for x in X):
        shapes = sorted({str(x.shape) for x in X})[:4]
        raise AssayError(f"instances are {', '.join(shapes) or 'none'}: give clips T×H×W, or bags m×d, none empty")
    if kinds == {3}:
        pooled = [F.adaptive_avg_pool3d(torch.as_tensor(x)[None], grid).flatten().numpy() for x in X]
        return np.stack(pooled)
    if len({x.shape[1] for x in X}) > 1:
        raise AssayError(f"bags have vectors of different lengths: {sorted({x.shape[1] for x in X})}")
    return np.stack([x.mean(axis=0) for x in X])
