"""Patches of natural images: what small unsupervised networks learn from."""

from __future__ import annotations

import numpy as np

from assay.core.errors import AssayError
from assay.stimuli.pictures import Array, photographs
from assay.stimuli.whitening import fill_range, whiten


def natural_patches(size: int, count: int, seed: int = 0, whitened: bool = True) -> Array:
    """Patches cut at random places from the grey photographs of `photographs`, count × 1 × size × size.

    Every photograph is whitened and scaled as a whole (see `whiten`, `fill_range`) before it is cut, so that a patch
    is to its surroundings what it is in the video test.

    Args:
        size: Side in pixels.
        count: How many.
        seed: Of the places.
        whitened: False gives the pixels as they are, in [0, 1].
    """
    if size < 1 or count < 1:
        raise AssayError(f"size={size}, count={count}: both must be at least 1")
    pictures = [picture for _, picture in photographs(None, "grey") if min(picture.shape[-2:]) >= size]
    if not pictures:
        raise AssayError(f"size={size} is larger than every photograph")
    if whitened:
        pictures = [fill_range(whiten(picture)) for picture in pictures]
    rng = np.random.default_rng(seed)
    owner = rng.integers(len(pictures), size=count)
    patches = np.empty((count, 1, size, size), np.float32)
    for i, which in enumerate(owner):
        height, width = pictures[which].shape[-2:]
        top, left = rng.integers(height - size + 1), rng.integers(width - size + 1)
        patches[i] = pictures[which][:, top : top + size, left : left + size]
    return patches
