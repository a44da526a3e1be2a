"""Inner products of responses, summed over blocks of features: O(m²) memory for m stimuli and any number of them."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from assay.core.determinism import reproducible
from assay.core.errors import AssayError, shown

Array = np.ndarray[Any, Any]
Shift = Literal["stimuli", "features", "none"]
_COPIED_AT_ONCE = {"cpu": 4_000_000, "cuda": 40_000_000}  # numbers of a block that are copied to be shifted
_TILES = 8  # of a GPU's products, of which those below the diagonal are left out
_TILED_FROM = 2048  # stimuli: smaller products are over before a GPU is busy


class RunningGram:
    """G = Σ BBᵀ, s = Σ B1 and the number p of features, over blocks B of features of the same m stimuli.

    Products are taken in the precision of the responses and added up in float64. What the distances do not depend on is
    subtracted before, so that large means do not eat up the digits of small differences.

    Args:
        shift: What is subtracted: ``"stimuli"``, from each stimulus the mean of its first block, as correlations allow;
            ``"features"``, from each feature its mean over stimuli, as distances do; or ``"none"``.

    Example:
        >>> responses = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 9.0]])
        >>> gram = RunningGram("stimuli")
        >>> gram.add(responses[:, :2])
        >>> gram.add(responses[:, 2:])
        >>> gram.covariance().tolist()      # Σ (x − x̄)(y − ȳ)
        [[2.0, 7.0], [7.0, 26.0]]
    """

    def __init__(self, shift: Shift = "none") -> None:
        self.shift: Shift = shift
        self.features = 0
        self.numpy = True
        self._products = torch.empty(0)
        self._sums = torch.empty(0)
        self._shifts = torch.empty(0)
        self._rounding = 0.0

    @property
    def stimuli(self) -> int:
        """The number m of stimuli; 0 before the first block."""
        return len(self._products)

    def add(self, block: Any) -> None:
        """Add features.

        Args:
            block: Responses to all m stimuli, m × features; further axes count as features. An array, or a tensor on
                any device; all blocks on one.
        """
        values = as_responses(block)
        if not self.features:
            self._begin(values, isinstance(block, Tensor))
        if len(values) != self.stimuli:
            raise AssayError(f"block has responses to {len(values)} stimuli, those before had {self.stimuli}")
        if values.device != self._products.device:
            raise AssayError(f"block is on {values.device}, those before were on {self._products.device}")
        self._rounding = max(self._rounding, torch.finfo(computed_in(values)).eps)
        step = max(1, _COPIED_AT_ONCE.get(values.device.type, 4_000_000) // self.stimuli)
        on_cpu = values.device.type == "cpu"
        # One buffer for all parts, and not kept: a network has many layers.
        room = torch.empty(
            self.stimuli * min(step, values.shape[1]) if on_cpu else 0, dtype=computed_in(values)
        ).numpy()
        for start in range(0, values.shape[1], step):
            part = values[:, start : start + step]
            if on_cpu:
                self._add_by_blas(part, room)
            else:
                self._add_by_tiles(part)
        self.features += values.shape[1]

    def merge(self, other: RunningGram) -> None:
        """Add all features that another has added up, as if they had been added to this one."""
        if other.shift != self.shift or (self.features and other.stimuli != self.stimuli):
            raise AssayError(
                f"other sums {other.shift} of {other.stimuli} stimuli, this one {self.shift} of {self.stimuli}"
            )
        if not other.features:
            return
        products, sums = other._products, other._sums
        if not self.features:
            self.numpy, self._shifts = other.numpy, other._shifts.clone()
            self._products, self._sums = torch.zeros_like(products), torch.zeros_like(sums)
        elif self.shift == "stimuli":
            apart = other._shifts - self._shifts
            products = products + torch.outer(apart, sums) + torch.outer(sums, apart)
            products += other.features * torch.outer(apart, apart)
            sums = sums + other.features * apart
        self._products += products
        self._sums += sums
        self.features += other.features
        self._rounding = max(self._rounding, other._rounding)

    def products(self) -> Tensor:
        """The sum of BBᵀ over all features, m × m, each feature less its mean where ``shift`` is ``"features"``."""
        self._require_sound()
        return mirrored(self._products)

    def covariance(self) -> Tensor:
        """The sum of (x − x̄)(y − ȳ) over all features, m × m, x̄ the mean response to a stimulus."""
        self._require_sound()
        return mirrored(torch.addr(self._products, self._sums, self._sums, alpha=-1 / self.features))

    def is_finite(self) -> bool:
        """Whether no response so far was NaN or infinite, or so large that its square is."""
        return bool(torch.isfinite(self._products.diagonal()).all())

    def constant_stimuli(self) -> Tensor:
        """The stimuli with the same response in all features, up to the rounding of the responses themselves."""
        spread = self._products.diagonal() - self._sums**2 / self.features
        least = self.features * (8 * self._rounding * self._shifts) ** 2
        return torch.nonzero(spread <= least).flatten()

    def _begin(self, values: Tensor, is_tensor: bool) -> None:
        m, device = len(values), values.device
        exact = torch.float32 if device.type == "mps" else torch.float64
        self.numpy = not is_tensor
        self._products = torch.zeros(m, m, dtype=exact, device=device)
        self._sums = torch.zeros(m, dtype=exact, device=device)
        self._shifts = torch.zeros(m, dtype=exact, device=device)
        if self.shift == "stimuli":
            # Rounded as the responses are, so that nothing is lost when it is subtracted from them.
            first = values[:, : max(1, _COPIED_AT_ONCE["cpu"] // m)]
            self._shifts = first.to(exact).mean(dim=1).to(computed_in(values)).to(exact)

    def _add_by_blas(self, part: Tensor, room: Array) -> None:
        """Add features on a CPU: NumPy's product of an array and its own transpose is BLAS's syrk, half of a gemm."""
        m, width = part.shape
        shifted = room[: m * width].reshape(m, width)
        source = part.to(torch.float32).numpy() if part.dtype in (torch.bfloat16, torch.float16) else part.numpy()
        with np.errstate(invalid="ignore", over="ignore"):  # which whoever asks for the products is told of
            np.subtract(source, self._shift_of(part).numpy(), out=shifted, casting="same_kind")
            self._products.numpy()[...] += np.dot(shifted, shifted.T)
            self._sums.numpy()[...] += np.dot(shifted, np.ones(width, room.dtype))

    def _add_by_tiles(self, part: Tensor) -> None:
        """Add features on a GPU, leaving out products below the diagonal tiles, in full precision whatever is set."""
        shifted = part.to(computed_in(part)) - self._shift_of(part)
        m = self.stimuli
        step = -(-m // _TILES) if m >= _TILED_FROM else m
        with reproducible():
            for start in range(0, m, step):
                self._products[start : start + step, start:] += shifted[start : start + step] @ shifted[start:].T
        self._sums += shifted.sum(dim=1, dtype=self._sums.dtype)

    def _shift_of(self, part: Tensor) -> Tensor:
        if self.shift == "features":
            return part.to(self._sums.dtype).mean(dim=0, keepdim=True).to(computed_in(part))
        return self._shifts[:, None].to(computed_in(part))

    def _require_sound(self) -> None:
        if not self.features:
            raise AssayError("there are no responses: add a block of features first")
        bad = torch.nonzero(~torch.isfinite(self._products.diagonal())).flatten()
        if len(bad):
            raise AssayError(
                f"the responses to {len(bad)} stimuli, first stimulus {int(bad[0])}, are NaN or infinite, or so large "
                "that their squares are: leave them out, or give float64"
            )


def mirrored(products: Tensor) -> Tensor:
    """A matrix whose lower triangle is its upper one, which a GPU leaves out in part; a copy."""
    if products.device.type == "cpu":
        return products.clone()
    return products.triu().add_(products.triu(1).T)


def as_responses(block: Any, name: str = "block") -> Tensor:
    """Responses as a tensor of stimuli × features, on the device they are on, without a copy where possible."""
    if not isinstance(block, Tensor):
        array = np.asarray(block)
        if array.dtype.kind not in "fiub":
            raise AssayError(f"{name}={shown(block)} is no array of responses: give numbers")
        if array.dtype not in _KNOWN_TO_TORCH:
            array = array.astype(np.float64)
        with warnings.catch_warnings():  # of arrays that may not be written to: nothing here writes to them
            warnings.simplefilter("ignore", UserWarning)
            block = torch.from_numpy(np.ascontiguousarray(array) if min(array.strides, default=0) < 0 else array)
    values: Tensor = block.detach()
    if values.dim() < 2 or not values.numel() or values.is_complex():
        raise AssayError(f"{name} is {tuple(values.shape)} {values.dtype}: give real numbers, stimuli × features")
    return values.flatten(1)


def computed_in(values: Tensor) -> torch.dtype:
    """The precision in which products of responses are taken: their own, and at least one that holds them."""
    return torch.float64 if values.dtype in (torch.float64, torch.int32, torch.int64) else torch.float32


_KNOWN_TO_TORCH = {np.dtype(kind) for kind in ("f2", "f4", "f8", "u1", "i1", "i2", "i4", "i8", "?")}
