"""Agreement: whether a shorter way to compute a network's output is the network."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from assay.core.determinism import reproducible

EXACT, COARSE = 1e-3, 2e-2  # of the largest output: rounding of float32, and of 10-bit or shorter mantissas, with room


def agree(ours: Callable[[], Tensor], theirs: Callable[[], Tensor]) -> bool:
    """Whether two ways to compute an output differ by rounding only, both in full float32 even on a GPU.

    Formula: |aᵢ − bᵢ| ≤ τ·max(1, maxⱼ|bⱼ|) for all i; where one is not finite, the other is the same. τ is 0.001 for
    float32 and float64, 0.02 for shorter types.

    Example:
        >>> exact = torch.tensor([10.0, float("nan")])
        >>> agree(lambda: exact + 0.009, lambda: exact)
        True
        >>> agree(lambda: exact + 0.1, lambda: exact)
        False
    """
    with reproducible():
        a, b = ours(), theirs()
    if a.shape != b.shape:
        return False
    finite = b[b.isfinite()].abs()
    scale = float(finite.amax().clamp_min(1.0)) if finite.numel() else 1.0
    share = EXACT if b.dtype in (torch.float32, torch.float64) else COARSE
    return torch.allclose(a, b, rtol=0, atol=share * scale, equal_nan=True)
