"""Directions of space-time gradients: the axes of a polyhedron or polar bins, and how a gradient is shared among them.

Kläser, Marszałek, Schmid 2008, "A spatio-temporal descriptor based on 3D-gradients"; details from the author's program.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from assay.core.errors import AssayError

Solid = Literal["icosahedron", "dodecahedron"]
GOLDEN = (1 + math.sqrt(5)) / 2
# Length of the axes × cosine between neighbours: what the projection of a gradient of length 1 must exceed to count.
THRESHOLDS = {"icosahedron": math.sqrt(3) * math.sqrt(5) / 3, "dodecahedron": math.sqrt(1 + GOLDEN**2) / math.sqrt(5)}


def axes(solid: Solid) -> Tensor:
    """Centres of the faces of a polyhedron: 20 of the icosahedron, 12 of the dodecahedron, each row (x, y, t).

    Icosahedron: (±1, ±1, ±1) and, in cyclic order, (0, ±1/φ, ±φ), of length √3. Dodecahedron: (0, ±1, ±φ) in cyclic
    order, of length √(1 + φ²). φ is the golden ratio. Row i + n/2 is opposite to row i.

    Example:
        >>> axes("icosahedron").shape, axes("dodecahedron").shape
        (torch.Size([20, 3]), torch.Size([12, 3]))
    """
    if solid not in THRESHOLDS:
        raise AssayError(f"solid={solid!r} is not 'icosahedron' or 'dodecahedron'")
    short = 1 / GOLDEN if solid == "icosahedron" else 1.0
    rows = [(a, b, 1.0) for a in (1.0, -1.0) for b in (1.0, -1.0)] if solid == "icosahedron" else []
    for s in (short, -short):
        rows += [(0.0, s, GOLDEN), (GOLDEN, 0.0, s), (s, GOLDEN, 0.0)]
    half = torch.tensor(rows, dtype=torch.float64)
    return torch.cat([half, -half])


@dataclass(frozen=True)
class Polyhedron:
    """Shares the length of a gradient among the axes of a polyhedron that are near it.

    q_i = max(p_i·g − t‖g‖, 0), p_i the axes, t such that an axis gets nothing from its neighbours' directions; q is
    scaled to ‖q‖ = ‖g‖.

    Args:
        solid: Polyhedron whose axes are used, ``"icosahedron"`` or ``"dodecahedron"``.
        full: Whether opposite directions are kept apart (20 or 12 bins) or added up (10 or 6 bins).
        norm: Norm of q that equals ‖g‖: 1 (the author's program: the bins together carry ‖g‖) or 2 (the paper).

    Example:
        >>> Polyhedron("dodecahedron", full=True)(axes("dodecahedron").T).argmax(0).tolist()
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    """

    solid: Solid = "icosahedron"
    full: bool = False
    norm: Literal[1, 2] = 1

    def __post_init__(self) -> None:
        axes(self.solid)
        if self.norm not in (1, 2):
            raise AssayError(f"norm={self.norm!r} is not 1 or 2")

    @property
    def bins(self) -> int:
        """Number of bins."""
        return len(axes(self.solid)) // (1 if self.full else 2)

    def __call__(self, gradients: Tensor) -> Tensor:
        """Share out gradients, 3 × … (x, y, t), among the bins: bins × …."""
        directions = axes(self.solid).to(gradients)
        along = torch.tensordot(directions[: len(directions) // 2], gradients, 1)
        length = gradients.square().sum(0).sqrt()
        least = THRESHOLDS[self.solid] * length
        forth = (along - least).clamp_(min=0)
        back = (-along - least).clamp_(min=0)
        shares = torch.cat([forth, back]) if self.full else forth + back
        total = shares.sum(0) if self.norm == 1 else shares.square().sum(0).sqrt()
        return shares * torch.where(total > 0, length / total, 0.0)


@dataclass(frozen=True)
class Polar:
    """Shares the length of a gradient among bins in polar coordinates, linearly in both angles; half orientation.

    Opposite gradients are the same. The angle in the picture plane, from the y axis, is in [0°, 180°), bins centred at
    0°, 36°, …; the angle to the time axis is in [0°, 180°], bins centred at 30°, 90°, 150°, where beyond the outer
    centres the outer bin takes all. Across 180° the neighbour of the last bin is the first with time turned around.
    (The author's program gives that share to the second bin, and loses length beyond the outer centres in time.)

    Args:
        around: Number of bins in the picture plane.
        along: Number of bins from forwards to backwards in time.

    Example:
        >>> Polar()(torch.tensor([0.0, 0.0, 2.0])).nonzero().tolist()      # all of it in one of 15 bins
        [[0]]
    """

    around: int = 5
    along: int = 3

    def __post_init__(self) -> None:
        if self.around < 1 or self.along < 1:
            raise AssayError(f"around={self.around}, along={self.along}: there must be at least one bin in each angle")

    @property
    def bins(self) -> int:
        """Number of bins."""
        return self.around * self.along

    def __call__(self, gradients: Tensor) -> Tensor:
        """Share out gradients, 3 × … (x, y, t), among the bins: bins × …."""
        x, y, t = gradients
        sign = torch.where(x != 0, x, torch.where(y != 0, y, t)).sign_()
        x, y, t = x.abs(), y * sign + 0.0, t * sign  # + 0: no negative zero, whose angle would be 180°
        plane = torch.atan2(x, y).mul_(self.around / math.pi)
        across = x.square_().addcmul_(y, y)
        length = across.addcmul(t, t).sqrt_()
        time = torch.atan2(across.sqrt_(), t).mul_(self.along / math.pi).sub_(0.5).clamp_(0, self.along - 1)
        by_plane = _near(plane, self.around + 1)
        by_time = _near(time, self.along).mul_(length)
        shares = by_plane[:, None] * by_time
        shares[0] += shares[-1].flip(0)
        return shares[:-1].flatten(0, 1)


def _near(place: Tensor, bins: int) -> Tensor:
    """Weights of the bins, bins × …: 1 at the centre of a bin, falling linearly to 0 at its neighbours' centres."""
    centres = torch.arange(bins, dtype=place.dtype, device=place.device).view(-1, *[1] * place.ndim)
    return torch.rsub((centres - place).abs_(), 1).relu_()
