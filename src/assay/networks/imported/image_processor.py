"""The preprocessing that a Hugging Face checkpoint asks for, as a transform of batches of pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.nn import functional as F

from assay.core.errors import AssayError
from assay.stimuli.transforms import Normalize

PIXELS = "pixel_values"
# Pillow's numbers of its filters. Torch has no Lanczos filter; the bicubic one is the nearest to it.
_FILTERS = {0: "nearest-exact", 1: "bicubic", 2: "bilinear", 3: "bicubic"}
# Steps that change nothing for pictures N×C×H×W in [0, 1], or that are about labels.
_WITHOUT_EFFECT = frozenset(["do_convert_rgb", "do_convert_grayscale_to_rgb", "do_reduce_labels"])
_KNOWN = frozenset(["do_resize", "do_center_crop", "do_rescale", "do_normalize"])


@dataclass(frozen=True)
class ImageProcessor:
    """Resizes, crops, scales and normalises pictures in [0, 1], as the image processor of a checkpoint does.

    Args:
        resize: Height and width to resize to, or one number for the shorter side; None to leave pictures as they are.
        filter: How torch interpolates, such as ``bilinear``.
        crop: Height and width of the centre to cut out; None for the whole picture. Smaller pictures are padded by 0.
        scale: Factor of the pixels, 1 where the network is given values in [0, 1] before normalisation.
        normalize: Mean and standard deviation of each channel; None for none.

    Example:
        >>> import torch
        >>> ImageProcessor((4, 4), normalize=Normalize((0.5,) * 3, (0.5,) * 3))(torch.ones(1, 3, 8, 8)).shape
        torch.Size([1, 3, 4, 4])
    """

    resize: tuple[int, int] | int | None = None
    filter: str = "bilinear"
    crop: tuple[int, int] | None = None
    scale: float = 1.0
    normalize: Normalize | None = None

    def __call__(self, batch: Any) -> Any:
        """Process pictures N×C×H×W, or those called ``pixel_values`` in a mapping; whole numbers stay as they are."""
        if isinstance(batch, Mapping):
            return {key: self(value) if key == PIXELS else value for key, value in batch.items()}
        if not isinstance(batch, Tensor) or not batch.is_floating_point():
            return batch
        if batch.dim() != 4:
            raise AssayError(f"the checkpoint's image processor takes pictures N×C×H×W, not {tuple(batch.shape)}")
        x = self._cropped(self._resized(batch))
        x = x if self.scale == 1 else x * self.scale
        return x if self.normalize is None else self.normalize(x)

    def _resized(self, x: Tensor) -> Tensor:
        if self.resize is None:
            return x
        if isinstance(self.resize, int):
            shorter = min(x.shape[-2:])
            sides = [self.resize if side == shorter else int(self.resize * side / shorter) for side in x.shape[-2:]]
        else:
            sides = list(self.resize)
        if list(x.shape[-2:]) == sides:
            return x
        smooth = self.filter in ("bilinear", "bicubic")
        resized = F.interpolate(x, sides, mode=self.filter, antialias=smooth)
        return resized.clamp(0, 1) if self.filter == "bicubic" else resized  # as bytes would be

    def _cropped(self, x: Tensor) -> Tensor:
        if self.crop is None:
            return x
        missing = [max(0, side - have) for side, have in zip(self.crop, x.shape[-2:], strict=True)]
        if any(missing):
            (top, left), (bottom, right) = [m // 2 for m in missing], [m - m // 2 for m in missing]
            x = F.pad(x, (left, right, top, bottom))
        top, left = ((have - side) // 2 for side, have in zip(self.crop, x.shape[-2:], strict=True))
        return x[..., top : top + self.crop[0], left : left + self.crop[1]]


def image_processor(settings: Mapping[str, Any], source: str) -> ImageProcessor:
    """Make the transform that a checkpoint's ``preprocessor_config.json`` describes.

    Args:
        settings: What the file says.
        source: Where it comes from, for errors.

    Example:
        >>> image_processor({"do_resize": True, "size": {"shortest_edge": 8}, "do_rescale": True}, "a file").resize
        8
    """
    also = [key for key, on in settings.items() if key.startswith("do_") and on is True]
    unknown = sorted(set(also) - _KNOWN - _WITHOUT_EFFECT)
    if unknown:
        raise AssayError(f"{source}: its image processor asks for {unknown[0]}, which is not known: give preprocess")
    try:
        return _processor(settings)
    except (KeyError, TypeError, ValueError) as error:
        raise AssayError(f"{source}: its image processor cannot be read ({error!r}): give preprocess") from error


def _processor(settings: Mapping[str, Any]) -> ImageProcessor:
    resize = _size(settings["size"]) if settings.get("do_resize") else None
    crop: tuple[int, int] | None = None
    if settings.get("do_center_crop"):
        centre = _size(settings.get("crop_size", settings.get("size")))
        crop = (centre, centre) if isinstance(centre, int) else centre
    share = settings.get("crop_pct")
    if share and isinstance(resize, int) and resize < 384:  # ConvNeXT: resize to more than the size, and crop to it
        resize, crop = int(resize / share), (resize, resize)
    elif share and isinstance(resize, int):
        resize = (resize, resize)
    factor = settings.get("rescale_factor", 1 / 255) if settings.get("do_rescale", True) else 1.0
    normalize = None
    if settings.get("do_normalize"):
        normalize = Normalize(tuple(settings["image_mean"]), tuple(settings["image_std"]))
    scale = 1.0 if abs(255 * factor - 1) < 1e-6 else 255 * factor
    return ImageProcessor(resize, _FILTERS[int(settings.get("resample") or 2)], crop, scale, normalize)


def _size(size: Any) -> tuple[int, int] | int:
    """Height and width, or one number for the shorter side, in any of the ways in which files write them."""
    if isinstance(size, Mapping):
        if "height" in size:
            return int(size["height"]), int(size["width"])
        if "longest_edge" in size:
            raise ValueError("the longer side is limited")
        return int(size["shortest_edge"])
    if isinstance(size, (list, tuple)):
        return int(size[0]), int(size[1])
    return int(size), int(size)
