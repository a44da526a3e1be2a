"""Transforms between a stimulus and a network: normalisation, conversion to grey, resizing."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from assay.core.errors import AssayError, nearest


@dataclass(frozen=True)
class Normalize:
    """Normalise each channel to (x − mean) / std, by default with the statistics of ImageNet."""

    mean: tuple[float, ...] = (0.485, 0.456, 0.406)
    std: tuple[float, ...] = (0.229, 0.224, 0.225)

    def __call__(self, x: Tensor) -> Tensor:
        """Normalise pictures N×C×H×W; grey ones are repeated for each channel."""
        mean, std = (torch.tensor(v, dtype=x.dtype, device=x.device)[:, None, None] for v in (self.mean, self.std))
        if x.shape[1] == 1:
            x = x.expand(-1, len(self.mean), -1, -1)
        return (x - mean) / std


@dataclass(frozen=True)
class Grey:
    """Convert N×3×H×W to N×1×H×W by ITU-R 601 luma (0.299, 0.587, 0.114); grey input stays as it is."""

    def __call__(self, x: Tensor) -> Tensor:
        """Return the weighted sum of the channels."""
        if x.shape[1] == 1:
            return x
        weights = torch.tensor((0.299, 0.587, 0.114), dtype=x.dtype, device=x.device)
        return torch.einsum("nchw,c->nhw", x, weights)[:, None]


@dataclass(frozen=True)
class Resize:
    """Resize pictures to size×size, bilinearly with antialiasing."""

    size: int

    def __call__(self, x: Tensor) -> Tensor:
        """Resize pictures N×C×H×W."""
        return F.interpolate(x, (self.size, self.size), mode="bilinear", antialias=True)


@dataclass(frozen=True)
class Chain:
    """Several transforms, applied one after another."""

    steps: tuple[object, ...]

    def __call__(self, x: Tensor) -> Tensor:
        """Apply all transforms in order."""
        for step in self.steps:
            x = step(x)  # type: ignore[operator]
        return x


NAMED = {"imagenet": Normalize(), "grey": Grey()}


def transform_named(name: str) -> object:
    """Return a transform by its name in plans: ``imagenet``, ``grey``, or ``resize=N``; several joined by commas."""
    steps: list[object] = []
    for part in (p.strip() for p in name.split(",")):
        if part.startswith("resize=") and part.removeprefix("resize=").isdigit():
            steps.append(Resize(int(part.removeprefix("resize="))))
        elif part in NAMED:
            steps.append(NAMED[part])
        else:
            raise AssayError(f"unknown transform {part!r}{nearest(part, [*NAMED, 'resize=N'])}")
    return steps[0] if len(steps) == 1 else Chain(tuple(steps))
