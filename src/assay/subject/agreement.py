"""Agreement: whether a shorter way to compute a network's output is the network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from assay.core.determinism import reproducible

EXACT, COARSE = 1e-3, 2e-2  # of the largest output: rounding of float32, and of 10-bit or shorter mantissas, with room
UNCHANGED, MANY_LAYERS = 1e-4, 5e-2  # the same where no operation is another one, and over all layers of a network
_WHOLE = (torch.float32, torch.float64, torch.complex64, torch.complex128)


def agree(ours: Callable[[], Tensor], theirs: Callable[[], Tensor]) -> bool:
    """Whether two ways to compute an output differ by rounding only, both in full float32 even on a GPU.

    Formula: |aᵢ − bᵢ| ≤ max(τ·maxⱼ|bⱼ|, ε) for all i; where one is not finite, the other is the same. τ is 0.001 for
    float32 and float64, 0.02 for shorter types; ε is the distance from 1 to the next number, of float64 or of float32.

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
    share = EXACT if b.dtype in _WHOLE else COARSE
    return torch.allclose(a, b, rtol=0, atol=_tolerance(share, b), equal_nan=True)


def require_same(ours: Any, theirs: Any, *, recomputed: bool = True) -> None:
    """Raise where two nested outputs differ by more than rounding.

    Formula: |aᵢ − bᵢ| ≤ max(τ·maxⱼ|bⱼ|, ε) for all i of each tensor. τ is 0.0001 for float32 and float64 by the same
    operations, 0.001 if they are ``recomputed`` by others, and 0.05 for shorter types, or for others in TF32, as the
    first tensor tells; ε as in `agree`. Whole numbers are equal.

    Example:
        >>> require_same([torch.ones(2)], [torch.ones(2) + 0.0005])
        >>> require_same([torch.ones(2)], [torch.ones(2) + 0.0005], recomputed=False)
        Traceback (most recent call last):
        AssertionError: Tensor-likes are not close!
        ...
    """
    pairs = list(zip(pytree.tree_leaves(ours), pytree.tree_leaves(theirs), strict=True))
    first = next((b for _, b in pairs if isinstance(b, Tensor)), None)
    whole = first is not None and first.dtype in _WHOLE
    if first is not None and recomputed:
        whole = whole and not (first.dtype == torch.float32 and _in_tf32(first.device))
    share = (EXACT if recomputed else UNCHANGED) if whole else MANY_LAYERS
    for a, b in pairs:
        if isinstance(b, Tensor):
            torch.testing.assert_close(a, b, rtol=0, atol=_tolerance(share, b), equal_nan=True)


def _tolerance(share: float, values: Tensor) -> float:
    """A share of the largest of some values, and at least what rounding leaves where numbers near 1 cancel out."""
    if not (values.is_floating_point() or values.is_complex()):
        return 0.0
    finite = values[values.isfinite()].abs()
    rounding = torch.finfo(torch.float64 if values.dtype in (torch.float64, torch.complex128) else torch.float32).eps
    return max(share * (finite.amax().item() if finite.numel() else 0.0), rounding)


def _in_tf32(device: torch.device) -> bool:
    return device.type == "cuda" and (torch.backends.cudnn.allow_tf32 or torch.backends.cuda.matmul.allow_tf32)
