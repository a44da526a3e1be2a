"""Local contrast normalisation of a clip, in space and time."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from assay.core.errors import AssayError


def local_contrast(clip: Tensor, sigma: float = 2.0, tau: float = 2.0, c: float | None = None) -> Tensor:
    """Take away the local mean of a clip and divide by its local standard deviation.

        x ← (x − mean(x)) / std(x),    v = x − w∗x,    y = v / max(c, √(w∗v²)),

    w a space-time Gaussian of sum 1, cut off at three standard deviations; at borders its weights inside the clip are
    scaled to sum 1. A constant clip becomes 0.

    Args:
        clip: Grey clip, T×H×W.
        sigma: Standard deviation of w in x and y, in pixels.
        tau: Standard deviation of w in t, in frames.
        c: The smallest number to divide by; by default the mean of the local standard deviation over the clip.

    Example:
        >>> local_contrast(torch.full((4, 8, 8), 0.7)).any()
        tensor(False)

    Plan §4.1; Taylor & Bregler 2010; c as in LeCun's networks.
    """
    if clip.ndim != 3 or 0 in clip.shape or not clip.is_floating_point():
        raise AssayError(f"clip is {clip.dtype} {tuple(clip.shape)}: give grey frames T×H×W as floats")
    if not clip.isfinite().all():
        raise AssayError("clip has NaN or infinite pixels")
    if sigma <= 0 or tau <= 0:
        raise AssayError(f"sigma={sigma} pixels and tau={tau} frames must be positive")
    if c is not None and c <= 0:
        raise AssayError(f"c={c} must be positive; leave it out for the mean local standard deviation")
    if clip.min() == clip.max():
        return torch.zeros_like(clip)
    deviation, mean = torch.std_mean(clip.double(), correction=0)
    x = ((clip - mean) / deviation).to(clip.dtype)
    v = x - _smooth(x, sigma, tau)
    local = _smooth(v.square(), sigma, tau).clamp_(min=0).sqrt_()
    least = float(local.mean(dtype=torch.float64)) if c is None else c
    return v / local.clamp_(min=least)


def _smooth(x: Tensor, sigma: float, tau: float) -> Tensor:
    """Compute w∗x one axis after the other, renormalised along each, which equals renormalising all at once."""
    for axis, width in enumerate((tau, sigma, sigma)):
        reach = math.ceil(3 * width)
        weights = torch.exp(-0.5 * (torch.arange(-reach, reach + 1, dtype=x.dtype, device=x.device) / width).square())
        flat = x.movedim(axis, -1)
        rows = flat.reshape(-1, 1, flat.shape[-1])
        inside = F.conv1d(torch.ones_like(rows[:1]), weights.view(1, 1, -1), padding=reach)
        x = (F.conv1d(rows, weights.view(1, 1, -1), padding=reach) / inside).view(flat.shape).movedim(-1, axis)
    return x
