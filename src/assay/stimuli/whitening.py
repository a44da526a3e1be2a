"""Whitening and contrast scaling of natural images, before a small network learns from patches of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import scipy

from assay.core.errors import AssayError
from assay.stimuli.pictures import Array, photographs

CUTOFF = 0.4  # cycles per pixel: 0.8 of the Nyquist frequency


def whiten(picture: Array, cutoff: float = CUTOFF) -> Array:
    """Flatten the spectrum of natural images by the band-pass filter R(f) = f·exp(−(f/f₀)⁴).

    f is radial frequency in cycles per pixel. The amplitude of natural images falls as 1/f, which f undoes; the
    exponential takes away the corners of the spectrum, where there is mostly noise. The picture is continued at its
    borders by reflection (the filter acts on the discrete cosine transform). Its mean becomes 0.

    Args:
        picture: One or more pictures, … × H × W.
        cutoff: The frequency f₀, in cycles per pixel.

    Example:
        >>> whiten(np.full((8, 8), 0.7)).round(6).any()
        np.False_

    Olshausen & Field 1997; "whitened by applying a band pass filter", Goodfellow et al. 2009, §6.1.
    """
    if not 0 < cutoff <= 0.5:
        raise AssayError(f"cutoff={cutoff} is not a frequency in (0, 0.5] cycles per pixel")
    x = np.asarray(picture)
    height, width = x.shape[-2:]
    f = np.hypot(np.arange(height)[:, None] / (2 * height), np.arange(width) / (2 * width))
    spectrum = scipy.fft.dctn(x.astype(np.float64), axes=(-2, -1), norm="ortho")
    filtered = scipy.fft.idctn(spectrum * f * np.exp(-((f / cutoff) ** 4)), axes=(-2, -1), norm="ortho")
    return np.asarray(filtered, dtype=np.float32)


def fill_range(picture: Array, rms: float | None = None) -> Array:
    """Scale a whitened picture so that three standard deviations reach ±1, and clip what lies beyond.

    x ← clip(x / (3·rms), −1, 1), where rms is the root mean square of the picture unless it is given; 0 stays 0.
    """
    constant = 3 * (float(np.sqrt(np.mean(np.square(picture)))) if rms is None else rms)
    return np.clip(picture / (constant or 1.0), -1, 1).astype(np.float32)


def smooth_contrast(frames: Iterable[Array], sigma: float = 10.0) -> Iterator[Array]:
    """Scale the frames of a clip as `fill_range` does, by a constant that varies smoothly in time.

    Frame t is scaled by Σ_w g(w)·rms_{t+w} / Σ_w g(w), g a Gaussian of ``sigma`` frames, cut at 3σ and at the ends
    of the clip. Frames are read 3σ ahead, and no more are kept.

    "A scaling constant that varies smoothly over time and attempts to make each image use as much of the dynamic
    range of the image format as possible", Goodfellow et al. 2009, §6.1.
    """
    if sigma <= 0:
        raise AssayError(f"sigma={sigma} frames must be positive")
    reach = int(np.ceil(3 * sigma))
    weight = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    rms: list[float] = []
    read_ahead: deque[Array] = deque()
    t = 0

    def next_scaled() -> Array:
        nonlocal t
        low, high = max(t - reach, 0), min(t + reach + 1, len(rms))
        g = weight[low - t + reach : high - t + reach]
        constant = float(np.dot(g, rms[low:high]) / g.sum())
        t += 1
        return fill_range(read_ahead.popleft(), constant)

    for frame in frames:
        read_ahead.append(frame)
        rms.append(float(np.sqrt(np.mean(np.square(frame)))))
        if len(read_ahead) > reach:
            yield next_scaled()
    while read_ahead:
        yield next_scaled()


def natural_patches(
    size: int,
    count: int,
    seed: int = 0,
    whitened: bool = True,
    pictures: Sequence[Array] | None = None,
    centred: bool = False,
) -> Array:
    """Cut patches at random places from grey photographs, count × 1 × size × size.

    Every photograph is whitened and scaled as a whole (see `whiten`, `fill_range`) before it is cut, so that the
    surroundings influence a patch as they do in the video test.

    Args:
        size: Side of the patches in pixels.
        count: Number of patches.
        seed: Seed of the random places.
        whitened: Whether photographs are whitened and scaled; if not, pixels stay as they are, in [0, 1].
        pictures: The photographs, each 1×H×W in [0, 1]; by default those of `photographs`. Smaller ones are left out.
        centred: Whether the mean of each patch is taken away from it.
    """
    if size < 1 or count < 1:
        raise AssayError(f"size={size}, count={count}: both must be at least 1")
    given = [picture for _, picture in photographs(None, "grey")] if pictures is None else pictures
    if any(picture.ndim != 3 or len(picture) != 1 for picture in given):
        raise AssayError("pictures must be grey, each 1×H×W")
    pictures = [picture for picture in given if min(picture.shape[-2:]) >= size]
    if not pictures:
        raise AssayError(f"size={size} is larger than every photograph")
    if whitened:
        pictures = [fill_range(whiten(picture)) for picture in pictures]
    rng = np.random.default_rng(seed)
    picture_of_patch = rng.integers(len(pictures), size=count)
    patches = np.empty((count, 1, size, size), np.float32)
    for i, number in enumerate(picture_of_patch):
        height, width = pictures[number].shape[-2:]
        top, left = rng.integers(height - size + 1), rng.integers(width - size + 1)
        patches[i] = pictures[number][:, top : top + size, left : left + size]
    return patches - patches.mean((1, 2, 3), keepdims=True) if centred else patches
