"""Modules of Keras that torch lacks: windows padded as in TensorFlow, and Keras' order of features."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.core.errors import AssayError

Shape = tuple[int, ...]


class Flatten(nn.Module):
    """Flattening of a picture in Keras' order: height, width, channels."""

    def forward(self, x: Tensor) -> Tensor:
        """Flatten pictures N×C×H×W to N×HWC."""
        return x.movedim(1, -1).flatten(1)


class GlobalAveragePool(nn.Module):
    """Pooling of a picture to the mean of each channel."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the means N×C of pictures N×C×H×W."""
        return x.mean((2, 3))


class GlobalMaxPool(nn.Module):
    """Pooling of a picture to the maximum of each channel."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the maxima N×C of pictures N×C×H×W."""
        return x.amax((2, 3))


class _Uneven(nn.Module):
    """A mixin that pads left, right, top and bottom by different amounts, as TensorFlow does and torch cannot."""

    pads: tuple[int, ...]
    fill = 0.0

    def forward(self, x: Tensor) -> Tensor:
        """Pad the input, then apply the module that this class is mixed with."""
        out: Tensor = super().forward(F.pad(x, self.pads, value=self.fill))
        return out

    def extra_repr(self) -> str:
        """Return the settings that torch prints, the padding among them."""
        return f"{super().extra_repr()}, pads={self.pads}"


class UnevenConv2d(_Uneven, nn.Conv2d):
    """A convolution with one more zero at the bottom or right than at the top or left."""


class UnevenMaxPool2d(_Uneven, nn.MaxPool2d):
    """Max-pooling whose windows end earlier at the top or left than at the bottom or right."""

    fill = -inf


class UnevenAvgPool2d(_Uneven, nn.AvgPool2d):
    """Average pooling of the same windows as `UnevenMaxPool2d`, without the padding in the averages."""

    def forward(self, x: Tensor) -> Tensor:
        """Divide the averages with padding by the share of each window that lies inside the picture."""
        return super().forward(x) / super().forward(torch.ones_like(x))


def window(
    shape: Shape, padding: Any, kernel: Shape, stride: Shape, dilation: Shape = (1, 1)
) -> tuple[tuple[int, ...], Shape]:
    """Return the padding at the left, right, top and bottom of a picture, and the height and width of the output.

    Formula: with stride s, a window of k at dilation d turns n pixels into m = ⌈n/s⌉ with "same" padding, which is
    p = max((m − 1)s + (k − 1)d + 1 − n, 0) in all, ⌊p/2⌋ of it in front; with "valid" padding, p = 0.

    Example:
        >>> window((3, 32, 31), "same", (3, 3), (2, 2))
        ((1, 1, 0, 1), (16, 16))

    Source: https://www.tensorflow.org/api_docs/python/tf/nn#notes_on_padding_2
    """
    if str(padding).lower() not in ("same", "valid"):
        raise AssayError(f"padding={padding!r} is neither 'same' nor 'valid'")
    pads: list[int] = []
    size: list[int] = []
    for n, k, s, d in zip(picture(shape)[1:], kernel, stride, dilation, strict=True):
        reach = (k - 1) * d + 1
        out = -(-n // s) if str(padding).lower() == "same" else (n - reach) // s + 1
        if out < 1:
            raise AssayError(f"its window of {reach} is larger than the picture, {n}")
        total = max((out - 1) * s + reach - n, 0)
        pads = [total // 2, total - total // 2, *pads]
        size.append(out)
    return tuple(pads), tuple(size)


def padded(
    plain: Callable[..., nn.Module], uneven: Callable[..., nn.Module], pads: tuple[int, ...], **settings: Any
) -> nn.Module:
    """Build torch's own module where the padding is the same on opposite sides, else the uneven one."""
    left, right, top, bottom = pads
    if left == right and top == bottom:
        return plain(padding=(top, left), **settings)
    module = uneven(**settings)
    module.pads = pads  # type: ignore[assignment]
    return module


def picture(shape: Shape) -> Shape:
    """Return a shape C×H×W unchanged, and raise an error for any other."""
    if len(shape) != 3:
        raise AssayError(f"it needs pictures, and gets {'×'.join(map(str, shape))} features")
    return shape
