"""Thumbnails: the few small pictures by which a notebook shows what stimuli look like."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from itertools import islice

import numpy as np
from PIL import Image

from assay.core.errors import AssayError
from assay.core.notebook import facts_as_html, pictures_as_html
from assay.stimuli.pictures import Array

MOST = 8
_SIDE = 96  # pixels of the longer side of a thumbnail


def stimuli_as_html(title: str, facts: Mapping[str, object], pictures: Iterable[tuple[str, Array]]) -> str:
    """What stimuli are, and the first few of them, for a notebook.

    Args:
        title: What the set is called.
        facts: What there is to say of it.
        pictures: Captions and pictures C×H×W; read only as far as they are shown. Stimuli that are no pictures, or that
            cannot be read, are left out.
    """
    shown = []
    try:
        for caption, picture in islice(pictures, MOST):
            if is_picture(picture):
                shown.append((caption, thumbnail(picture)))
    except (AssayError, OSError):  # what is shown of a thing must not be an error: using it will say what is wrong
        pass
    return facts_as_html(title, facts) + pictures_as_html(shown)


def is_picture(array: Array) -> bool:
    """Whether an array is a picture C×H×W of one or three channels."""
    return array.ndim == 3 and array.shape[0] in (1, 3) and array.size > 0


def thumbnail(picture: Array) -> bytes:
    """A picture C×H×W as a small PNG: bytes as they are, floats in [0, 1] too, others from darkest to brightest.

    Example:
        >>> thumbnail(np.zeros((3, 200, 100)))[1:4]
        b'PNG'
    """
    values = picture.astype(np.float64) / (255 if picture.dtype == np.uint8 else 1)
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 1.0)
    pixels = ((values - low) / (high - low) * 255 + 0.5).astype(np.uint8)
    image = Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0))
    image.thumbnail((_SIDE, _SIDE))
    png = io.BytesIO()
    image.save(png, "png")
    return png.getvalue()
