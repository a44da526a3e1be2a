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
_SUMMED_AT_ONCE = {"cpu": 4096, "cuda": 16384}  # features whose products are added up in the precision of the responses
_RELATIVE_ERROR = 1e-3  # of typical distances: products of which rounding is more are taken in float64
_SMALLEST_SQUARE = 2.0**-100  # in float32; squares of smaller numbers lose digits, or vanish
_IN_FLOAT64_UP_TO = 128  # stimuli: products of few take little time, and each of their few ranks counts
_TILES = 8  # of a GPU's products, of which those below the diagonal are left out
_TILED_FROM = 2048  # stimuli: smaller products are over before a GPU is busy


class RunningGram:
    """G = Σ BBᵀ, s = Σ B1 and the number p of features, over blocks B of features of the same m stimuli.

    Products are taken in the precision of the responses and added up in float64. What the distances do not depend on is
    subtracted before, so that large means do not eat up the digits of small differences. It is a mean rounded to its
    leading bits: of whole numbers, and of codes of zeros and ones, it leaves numbers of few bits, whose products are
    exact. Products are taken in float64 of few stimuli; where responses have so much in common that float32 would round
    away how they differ (the means of their features are far apart); and where it would not hold their squares.

    Args:
        shift: What is subtracted: ``"stimuli"``, from each stimulus about the mean of its first block, as correlations
            allow; ``"features"``, from each feature about its mean over stimuli, as distances do; or ``"none"``.

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
        self._errors = torch.empty(0)
        self._unsound = torch.empty(0, dtype=torch.bool)
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
        self._rounding = max(self._rounding, torch.finfo(_held_in(values)).eps)
        step = _features_at_once(values)
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
            self._errors, self._unsound = torch.zeros_like(other._errors), torch.zeros_like(other._unsound)
        elif self.shift == "stimuli":
            apart = other._shifts - self._shifts
            products = products + torch.outer(apart, sums) + torch.outer(sums, apart)
            products += other.features * torch.outer(apart, apart)
            sums = sums + other.features * apart
        self._products += products
        self._sums += sums
        self._errors += other._errors
        self._unsound |= other._unsound
        self.features += other.features
        self._rounding = max(self._rounding, other._rounding)

    def products(self) -> Tensor:
        """The sum of BBᵀ over all features, m × m, each feature less its mean where ``shift`` is ``"features"``."""
        products = self.uncentred_products()
        if self.shift != "features":
            return products
        means = products.mean(dim=0)
        return products.sub_(means).sub_(means[:, None]).add_(means.mean())

    def uncentred_products(self) -> Tensor:
        """The sum of BBᵀ over all features, each less what was subtracted from it, which is only about its mean."""
        self._require_sound()
        return mirrored(self._products)

    def squared_distances(self) -> Tensor:
        """The sum of (x − y)² over all features, m × m."""
        products = self.uncentred_products()
        own = products.diagonal().clone()
        return products.mul_(-2).add_(own).add_(own[:, None])

    def covariance(self) -> Tensor:
        """The sum of (x − x̄)(y − ȳ) over all features, m × m, x̄ the mean response to a stimulus."""
        self._require_sound()
        return mirrored(torch.addr(self._products, self._sums, self._sums, alpha=-1 / self.features))

    def is_finite(self) -> bool:
        """Whether no response so far was NaN or infinite, or so large that its square is."""
        return bool(torch.isfinite(self._products.diagonal()).all())

    def errors(self) -> Tensor:
        """How far rounding may have moved x·x for each stimulus x; x·y by √(e_x·e_y) at most.

        Of w products added up one by one in a precision of unit u, errors are about u·√w·‖x‖‖y‖ (the worst case, u·w,
        takes errors that are all of one sign). Over normal, sparse, skewed and constant responses, 6 to 4,096 features,
        the largest error was 0.97 of that; distances allow it twice. Sums of such sums are in float64.

        Higham & Mary 2019 (√w).
        """
        exact = torch.finfo(self._products.dtype).eps
        return self._errors + 2 * exact * self._products.diagonal()

    def constant_stimuli(self) -> Tensor:
        """The stimuli with the same response in all features, up to the rounding of the responses themselves."""
        spread = self._products.diagonal() - self._sums**2 / self.features
        least = torch.maximum(self.errors(), self.features * (self._rounding * self._shifts) ** 2)
        return torch.nonzero(spread <= least).flatten()

    def _begin(self, values: Tensor, is_tensor: bool) -> None:
        m, device = len(values), values.device
        exact = torch.float32 if device.type == "mps" else torch.float64
        self.numpy = not is_tensor
        self._products = torch.zeros(m, m, dtype=exact, device=device)
        self._sums = torch.zeros(m, dtype=exact, device=device)
        self._shifts = torch.zeros(m, dtype=exact, device=device)
        self._errors = torch.zeros(m, dtype=exact, device=device)
        self._unsound = torch.zeros(m, dtype=torch.bool, device=device)
        if self.shift == "stimuli":
            # Rounded as the responses are, so that nothing is lost when it is subtracted from them.
            first = values[:, : _features_at_once(values)].to(exact)
            self._shifts = _about_the_mean(first, dim=1).to(computed_in(values)).to(exact)

    def _add_by_blas(self, part: Tensor, room: Array) -> None:
        """Add features on a CPU: NumPy's product of an array and its own transpose is BLAS's syrk, half of a gemm."""
        m, width = part.shape
        shifted = room[: m * width].reshape(m, width)
        source = part.to(torch.float32).numpy() if part.dtype in (torch.bfloat16, torch.float16) else part.numpy()
        shift = self._shift_of(part).numpy()
        with np.errstate(invalid="ignore", over="ignore"):  # which whoever asks for the products is told of
            np.subtract(source, shift, out=shifted, casting="same_kind")
            products, sums = np.dot(shifted, shifted.T), np.dot(shifted, np.ones(width, room.dtype))
            own = products.diagonal().copy()
            if room.dtype == np.float32 and (
                self._rounds_away(torch.from_numpy(own), torch.from_numpy(sums), float(products.sum()), width)
                or _beyond_float32(torch.from_numpy(own), torch.from_numpy(shifted))
            ):
                exact = np.subtract(source, shift, dtype=np.float64)
                products, sums = np.dot(exact, exact.T), exact.sum(axis=1)
            self._products.numpy()[...] += products
            self._sums.numpy()[...] += sums
        self._note(part, torch.from_numpy(products.diagonal().copy()))

    def _add_by_tiles(self, part: Tensor) -> None:
        """Add features on a GPU, leaving out products below the diagonal tiles, in full precision whatever is set."""
        shift = self._shift_of(part)
        shifted = part.to(computed_in(part)) - shift
        own, sums = torch.linalg.vector_norm(shifted, dim=1) ** 2, shifted.sum(dim=1)
        if shifted.dtype == torch.float32 and self._sums.dtype == torch.float64:
            total = float(torch.linalg.vector_norm(shifted.sum(dim=0))) ** 2
            if self._rounds_away(own, sums, total, part.shape[1]) or _beyond_float32(own, shifted):
                shifted = part.to(torch.float64) - shift
                own = torch.linalg.vector_norm(shifted, dim=1) ** 2
        m = self.stimuli
        step = -(-m // _TILES) if m >= _TILED_FROM else m
        with reproducible():
            for start in range(0, m, step):
                self._products[start : start + step, start:] += shifted[start : start + step] @ shifted[start:].T
        self._sums += shifted.sum(dim=1, dtype=self._sums.dtype)
        self._note(part, own)

    def _rounds_away(self, own: Tensor, sums: Tensor, total: float, width: int) -> bool:
        """Whether rounding in float32 is more than a thousandth of the typical distance of two responses.

        Half the mean squared distance of responses is the mean of ‖x‖² less that of x·y; for correlations, of centred
        responses. It may be a small part of ‖x‖², which rounding goes by.

        Args:
            own: ‖x‖² of the shifted response to each stimulus.
            sums: The sum over features of each.
            total: The sum of x·y over all pairs of stimuli.
            width: The number w of features.
        """
        m, size = len(own), float(own.mean())
        apart = size - total / m**2
        if self.shift == "stimuli":
            apart -= float(sums.var(correction=0)) / width
        rounding = torch.finfo(torch.float32).eps * width**0.5 * size
        return bool(rounding > _RELATIVE_ERROR * apart)  # not so where a response is not finite

    def _note(self, part: Tensor, own: Tensor) -> None:
        """Add up what rounding may have done to the products, and remember stimuli whose products are not finite."""
        self._errors += torch.finfo(own.dtype).eps / 2 * part.shape[1] ** 0.5 * own
        unsound = ~torch.isfinite(own)
        if bool(unsound.any()):
            # A mean over stimuli carries one response that is not finite to all of them.
            source = ~torch.isfinite(part).all(dim=1)
            self._unsound |= source if bool(source.any()) else unsound

    def _shift_of(self, part: Tensor) -> Tensor:
        if self.shift == "features":
            return _about_the_mean(part.to(computed_in(part)), dim=0)[None]
        return self._shifts[:, None].to(computed_in(part))

    def _require_sound(self) -> None:
        if not self.features:
            raise AssayError("there are no responses: add a block of features first")
        bad = torch.nonzero(self._unsound).flatten()
        if len(bad):
            raise AssayError(
                f"the responses to {len(bad)} stimuli, first stimulus {int(bad[0])}, are NaN or infinite, or so large "
                "that their squares are: leave them out, or scale all responses"
            )


def _features_at_once(values: Tensor) -> int:
    """The number of features of a block that are copied, and whose products are added up, at once."""
    kind = values.device.type if values.device.type in _COPIED_AT_ONCE else "cpu"
    return max(1, min(_COPIED_AT_ONCE[kind] // len(values), _SUMMED_AT_ONCE[kind]))


def _about_the_mean(values: Tensor, dim: int) -> Tensor:
    """The mean of values, rounded to a power of two that is about their standard deviation.

    What is left has at most twice the square of the centred values. Of values that are all one, it is that value.
    """
    # From the first value on, so that little cancels, and by products: var_mean takes several times as long.
    rows = values if dim == 1 else values.T
    share = rows.new_full((rows.shape[1],), 1 / rows.shape[1])
    apart = rows - rows[:, :1]
    mean = apart @ share
    variance = apart.square_() @ share - mean**2
    mean = mean + rows[:, 0]
    step = torch.exp2(torch.floor(torch.log2(variance) / 2) + 1)
    return torch.where(variance > 0, torch.round(mean / step) * step, mean)


def _beyond_float32(own: Tensor, shifted: Tensor) -> bool:
    """Whether squares of responses vanish or overflow in float32, where responses do not."""
    odd = ~(torch.isfinite(own) & (own >= _SMALLEST_SQUARE * shifted.shape[1]))
    if not bool(odd.any()):
        return False
    rows = shifted[odd]
    return bool((torch.isfinite(rows).all(dim=1) & (rows != 0).any(dim=1)).any())


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
    """The precision in which products are taken at first: that of the responses, of few stimuli float64."""
    if len(values) <= _IN_FLOAT64_UP_TO and values.device.type != "mps":
        return torch.float64
    return _held_in(values)


def _held_in(values: Tensor) -> torch.dtype:
    """The precision of responses: their own, and at least float32."""
    return torch.float64 if values.dtype in (torch.float64, torch.int32, torch.int64) else torch.float32


_KNOWN_TO_TORCH = {np.dtype(kind) for kind in ("f2", "f4", "f8", "u1", "i1", "i2", "i4", "i8", "?")}
