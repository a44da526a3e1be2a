"""Augmentation of training data by a perturbation: not at all, over half of its range, or over all of it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from assay.core.errors import AssayError, nearest
from assay.stimuli.perturbations import TRANSFORMATIONS, Transformed

LEVELS = {"partial": 0.5, "full": 1.0}
_AT_ONCE = 8192  # pictures transformed at a time


@dataclass(frozen=True)
class Augment:
    """Augmentation that changes every picture by T_α with an α of its own, uniform over a share of the range.

    Pictures arrive standardised as (x − mean)/std; the perturbation sees x.

    Args:
        perturbation: A name in `assay.stimuli.perturbations.TRANSFORMATIONS`.
        share: Share of the range that is used: α is in [share·low, share·high].
        mean: Mean of each channel of the training set.
        std: Standard deviation of each channel of the training set.

    Perturbation response curves 2021, §4.2.1.
    """

    perturbation: str
    share: float
    mean: tuple[float, ...]
    std: tuple[float, ...]

    @classmethod
    def named(cls, level: str, mean: tuple[float, ...], std: tuple[float, ...]) -> Augment | None:
        """Return an augmentation by its name, such as ``rotation partial`` or ``color_jitter full``; None for ``none``.

        Example:
            >>> Augment.named("rotation partial", (0.5,), (0.25,)).share
            0.5
        """
        if level == "none":
            return None
        name, _, amount = level.partition(" ")
        known = ["none", *(f"{n} {m}" for n in TRANSFORMATIONS for m in LEVELS)]
        if name not in TRANSFORMATIONS or amount not in LEVELS:
            raise AssayError(f"unknown augmentation {level!r}{nearest(level, known)}")
        return cls(name, LEVELS[amount], mean, std)

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Return the pictures of one epoch, changed by magnitudes drawn from the generator."""
        perturbation = Transformed(self.perturbation)
        alpha = torch.rand(len(x), generator=generator, device=x.device)
        alpha = self.share * (perturbation.low + (perturbation.high - perturbation.low) * alpha)
        mean, std = (torch.tensor(v, dtype=x.dtype, device=x.device)[:, None, None] for v in (self.mean, self.std))
        parts = zip(torch.split(x, _AT_ONCE), torch.split(alpha, _AT_ONCE), strict=True)
        return torch.cat([(perturbation.on(part * std + mean, 0)(a) - mean) / std for part, a in parts])
