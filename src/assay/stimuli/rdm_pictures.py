"""RDMs and their stimuli as small pictures, which a table keeps for those who draw it."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from PIL import Image

from assay.stimuli.rdms import as_matrices, stimuli_of

Array = np.ndarray[Any, Any]
MOST = 200
"""Number of stimuli of which pictures are kept; of more, so many that are spread evenly."""
_SIDE = 32  # pixels of a thumbnail in a strip


def rdm_as_png(shares: Array) -> bytes:
    """An RDM as a grey picture of m×m pixels, from 0 (black) to 255.

    Args:
        shares: The upper triangle of dissimilarities as shares of the largest, or percentiles, from 0 to 1; where they
            are not finite there is no picture, which is no bytes.

    Example:
        >>> rdm_from_png(rdm_as_png(np.array([0.0, 0.5, 1.0]))).tolist()
        [[0, 0, 128], [0, 0, 255], [128, 255, 0]]
    """
    if not np.isfinite(shares).all():
        return b""
    matrix = as_matrices(np.round(255 * shares)[None])[0]
    places = kept(stimuli_of(len(shares)))
    return _png(Image.fromarray(matrix[np.ix_(places, places)].astype(np.uint8)))


def rdm_from_png(picture: bytes) -> Array:
    """The entries of an RDM, m×m numbers from 0 to 255, from its picture."""
    return np.asarray(Image.open(io.BytesIO(picture)))


def thumbnail(image: Array) -> Array:
    """An image C×H×W in [0, 1] as a small square of H×W×3 bytes."""
    pixels = (np.clip(image, 0, 1) * 255 + 0.5).astype(np.uint8)
    shown = pixels[:3].transpose(1, 2, 0) if len(pixels) >= 3 else np.repeat(pixels[0][..., None], 3, axis=2)
    return np.asarray(Image.fromarray(np.ascontiguousarray(shown)).resize((_SIDE, _SIDE)))


def strip_of_thumbnails(images: Array) -> bytes:
    """Images N×C×H×W in [0, 1] as one picture, small squares side by side."""
    places = kept(len(images))
    strip = Image.new("RGB", (_SIDE * len(places), _SIDE))
    for place, number in enumerate(places):
        strip.paste(Image.fromarray(thumbnail(images[number])), (place * _SIDE, 0))
    return _png(strip)


def thumbnails_from(strip: bytes) -> list[Array]:
    """The thumbnails of a strip, each a square of H×W×3 bytes."""
    pixels = np.asarray(Image.open(io.BytesIO(strip)))
    return [pixels[:, start : start + _SIDE] for start in range(0, pixels.shape[1], _SIDE)]


def kept(m: int) -> Array:
    """The numbers of the stimuli that pictures are kept of."""
    return np.arange(m) if m <= MOST else np.linspace(0, m - 1, MOST).round().astype(int)


def _png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "png")
    return buffer.getvalue()
