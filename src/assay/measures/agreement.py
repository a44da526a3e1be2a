"""Agreement: whether a shorter way to compute a network's output is the network."""

from __future__ import annotations

import torch
from torch import Tensor

EXACT, COARSE = 1e-3, 2e-2  # of the largest output: rounding of float32, and of 10-bit or shorter mantissas, with room


def agree(ours: Tensor, theirs: Tensor) -> bool:
    """Whether two outputs differ by rounding only.

    Formula: |aᵢ − bᵢ| ≤ τ·max(1, maxⱼ|bⱼ|) for all i; where one is not finite, the other is the same. τ is 0.001 for
    float32 and float64, 0.02 for shorter types, and on a GPU, whose convolutions round to TF32 unless told otherwise.

    Example:
        >>> agree(torch.tensor([10.0, float("nan")]), torch.tensor([10.009, float("nan")]))
        True
        >>> agree(torch.tensor([10.0, 0.0]), torch.tensor([10.0, 0.1]))
        False
    """
    if ours.shape != theirs.shape:
        return False
    fine = theirs.dtype in (torch.float32, torch.float64) and not theirs.is_cuda
    finite = theirs[theirs.isfinite()].abs()
    scale = float(finite.amax().clamp_min(1.0)) if finite.numel() else 1.0
    return torch.allclose(ours, theirs, rtol=0, atol=(EXACT if fine else COARSE) * scale, equal_nan=True)
