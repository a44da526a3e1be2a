"""Pictures as arrays: reading, resizing and colour; and the photographs that come with other packages."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from importlib import resources, util
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from PIL import Image

from assay.core.errors import AssayError, first_line
from assay.core.limits import require_array
from assay.core.reading import reading

Array = np.ndarray[Any, np.dtype[Any]]
Color = Literal["grey", "rgb"]
_PIXEL_BYTES = 16  # of a value, while a picture is resized and becomes an array
SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".pgm", ".ppm"})
# What pictures are, whatever they are called. PIL knows more formats, among them PostScript, a program that it has
# another program run.
FORMATS = ("PNG", "JPEG", "BMP", "DIB", "TIFF", "WEBP", "PPM", "GIF", "JPEG2000", "ICO", "TGA")


def as_array(values: Any, what: str) -> Array:
    """Convert anything like an array to NumPy: lists, tensors on any device, with or without gradients.

    Args:
        values: What to convert.
        what: What the error calls the values, where they are no array.
    """
    if isinstance(values, torch.Tensor):
        if values.is_meta:
            raise AssayError(f"{what} is a tensor on the meta device, which has no values: give one that has")
        values = values.detach().cpu()
        values = values.float() if values.dtype == torch.bfloat16 else values
    try:
        return np.asarray(values)
    except Exception as error:  # an object converts itself by code of its own
        raise AssayError(f"{what} is no array of numbers ({first_line(error)})") from error


def read_picture(path: Path) -> Image.Image:
    """Read a picture: 8-bit grey (mode L) or colour (RGB); 16-bit grey and floating-point as mode F, in [0, 1].

    Pictures of one bit become grey. Palettes, transparency (RGBA, which is dropped) and CMYK become RGB. Colours of 16
    bits are read as 8 bits.
    """
    with reading(path, "a picture", "replace or delete it"), Image.open(path, formats=FORMATS) as image:
        image.load()
        return standard_picture(image)


def standard_picture(image: Image.Image) -> Image.Image:
    """Convert a picture of any mode to one of the modes L, RGB and F, as `read_picture` says."""
    if image.mode.startswith("I"):
        return Image.fromarray(np.asarray(image, dtype=np.float32) / 65535)
    return image if image.mode in ("L", "F") else image.convert("L" if image.mode == "1" else "RGB")


def picture_to_array(image: Image.Image, size: int | tuple[int, int] | None, color: Color | None) -> Array:
    """Convert a picture to an array C×H×W, float32 in [0, 1].

    ``size`` as an integer cuts the central square and resizes it; as (height, width) it resizes the whole
    picture. Resizing is PIL's LANCZOS, on the 8-bit values, as in the published stimuli.
    """
    if color is not None and image.mode != "F":
        image = image.convert("L" if color == "grey" else "RGB")
    if isinstance(size, int):
        side = min(image.size)
        left, top = (image.width - side) // 2, (image.height - side) // 2
        if image.width != image.height:
            image = image.crop((left, top, left + side, top + side))
        size = (size, size)
    if size is not None and image.size != (size[1], size[0]):
        require_array(f"a picture of size={size[0]}×{size[1]}", (3, *size), _PIXEL_BYTES)
        image = image.resize((size[1], size[0]), Image.Resampling.LANCZOS)
    array = np.asarray(image, dtype=np.float32) / (1 if image.mode == "F" else 255)
    if array.ndim == 2:
        return np.repeat(array[None], 3 if color == "rgb" else 1, axis=0)
    return np.ascontiguousarray(array.transpose(2, 0, 1))


def photographs(size: int | None = None, color: Color | None = None) -> Iterator[tuple[str, Array]]:
    """Yield the real photographs that come with scikit-learn and, where it is installed, scikit-image.

    Each is (name, C×H×W float32 in [0, 1]). From scikit-learn: china, flower (sample images); from
    scikit-image: astronaut, camera, chelsea, coffee, grass, gravel, rocket.
    """
    folders: list[tuple[str, str, tuple[str, ...]]] = [("sklearn.datasets", "images", ("china.jpg", "flower.jpg"))]
    if util.find_spec("skimage"):
        names = ("astronaut.png", "camera.png", "chelsea.png", "coffee.png", "grass.png", "gravel.png")
        folders.append(("skimage", "data", (*names, "rocket.jpg")))
    for package, folder, files in folders:
        for file in files:
            with resources.as_file(resources.files(package) / folder / file) as path:
                yield path.stem, picture_to_array(read_picture(path), size, color)


def strip(pictures: Sequence[Array]) -> bytes:
    """Draw pictures C×H×W side by side as one PNG, scaled so that it spans their darkest to their brightest value.

    Where they differ in size or colour, only those like the first are drawn.
    """
    alike = np.stack([p for p in pictures if p.shape == pictures[0].shape]).astype(np.float64)
    low, high = float(alike.min()), float(alike.max())
    scaled = np.pad((alike - low) / ((high - low) or 1.0), ((0, 0), (0, 0), (0, 0), (0, 1)), constant_values=1.0)
    row = np.concatenate(list(scaled), axis=-1)[:, :, :-1]
    row = row.transpose(1, 2, 0) if len(row) == 3 else row[0]
    png = io.BytesIO()
    Image.fromarray((255 * row + 0.5).astype(np.uint8)).save(png, "png")
    return png.getvalue()
