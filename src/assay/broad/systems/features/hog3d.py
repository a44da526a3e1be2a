"""HOG3D: histograms of space-time gradients in boxes of a clip, and where the boxes are.

Kläser, Marszałek, Schmid 2008, "A spatio-temporal descriptor based on 3D-gradients"; settings from the author's
program. Dense sampling as in Wang, Ullah, Kläser, Laptev, Schmid 2009.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from assay.broad.systems.features.polyhedra import Polar, Polyhedron
from assay.core.errors import AssayError

Places = Tensor | np.ndarray[Any, Any] | Sequence[Sequence[float]]
AT_ONCE = 2**16  # number of sub-blocks quantised together: it fits in caches, and keeps a GPU busy


@dataclass(frozen=True)
class Hog3D:
    """Settings of the HOG3D descriptor.

    Args:
        M: Number of cells of a box in x and in y.
        N: Number of cells of a box in t.
        S: Number of sub-blocks of a cell in each direction; each votes with its summed gradient.
        sigma0: Width and height in pixels of a box of spatial scale 1.
        tau0: Number of frames of a box of temporal scale 1.
        orientation: Bins of orientation that a gradient votes for.
        normalise: How descriptors are normalised. ``"cells"``: each cell h becomes h / (‖h‖ + 0.02·S³). ``"vector"``:
            the whole descriptor is scaled to length 1, values are cut off at 0.25, and it is scaled to length 1 again.
        threshold: Length below which a descriptor, before it is normalised, is discarded.

    Example:
        >>> HOLLYWOOD2.dimensions, KTH.dimensions, WANG.dimensions
        (300, 1000, 960)
    """

    M: int
    N: int
    S: int
    sigma0: float
    tau0: float
    orientation: Polyhedron | Polar
    normalise: Literal["cells", "vector"] = "cells"
    threshold: float = 0.1

    def __post_init__(self) -> None:
        if min(self.M, self.N, self.S) < 1 or min(self.sigma0, self.tau0) <= 0 or self.threshold < 0:
            raise AssayError(
                f"M={self.M}, N={self.N}, S={self.S} must be at least 1, sigma0={self.sigma0}, tau0={self.tau0} "
                f"positive, threshold={self.threshold} not negative"
            )
        if self.normalise not in ("cells", "vector"):
            raise AssayError(f"normalise={self.normalise!r} is not 'cells' or 'vector'")

    @property
    def dimensions(self) -> int:
        """Length of a descriptor: M·M·N·bins."""
        return self.M * self.M * self.N * self.orientation.bins

    @property
    def blocks(self) -> tuple[int, int, int]:
        """Number of sub-blocks of a box in x, y and t."""
        return self.M * self.S, self.M * self.S, self.N * self.S


HOLLYWOOD2 = Hog3D(M=2, N=5, S=4, sigma0=24, tau0=12, orientation=Polar(5, 3))
KTH = Hog3D(M=5, N=4, S=4, sigma0=16, tau0=4, orientation=Polyhedron("icosahedron"))
WANG = Hog3D(M=4, N=3, S=3, sigma0=8, tau0=6, orientation=Polyhedron(full=True), normalise="vector")
PRESETS = {"hollywood2": HOLLYWOOD2, "kth": KTH, "wang": WANG}


@dataclass(frozen=True)
class Sampling:
    """Boxes on a regular grid at several scales.

    Args:
        patch: Width and height of the smallest box, in pixels.
        length: Number of frames of the shortest box.
        stride: Distance from one box to the next, as a share of its size: 0.5 for boxes that overlap by half.
        spatial_scales: Number of sizes of boxes, each √2 times larger than the one before.
        temporal_scales: Number of lengths of boxes, each √2 times longer than the one before.
    """

    patch: float = 18.0
    length: float = 10.0
    stride: float = 0.5
    spatial_scales: int = 8
    temporal_scales: int = 2

    def __post_init__(self) -> None:
        if min(self.patch, self.length, self.stride) <= 0 or min(self.spatial_scales, self.temporal_scales) < 1:
            raise AssayError(
                f"patch={self.patch}, length={self.length}, stride={self.stride} must be positive, "
                f"spatial_scales={self.spatial_scales}, temporal_scales={self.temporal_scales} at least 1"
            )


DENSE = Sampling()
REDUCED = Sampling(stride=1.0, spatial_scales=4, temporal_scales=1)


def dense_boxes(
    shape: Sequence[int], settings: Hog3D = HOLLYWOOD2, sampling: Sampling = DENSE
) -> tuple[Tensor, Tensor]:
    """Place boxes on a grid inside a clip; give their centres (n × 3: x, y, t) and scales (n × 2: σ, τ).

    Args:
        shape: Shape T, H, W of the clip; a clip too small for any box has none.
        settings: Settings whose σ₀ and τ₀ the scales are relative to.
        sampling: Sizes and strides of the boxes.

    Example:
        >>> centres, scales = dense_boxes((10, 18, 36))
        >>> centres.tolist(), (scales[0] * torch.tensor([24, 12])).tolist()
        ([[9.0, 9.0, 5.0], [18.0, 9.0, 5.0], [27.0, 9.0, 5.0]], [18.0, 10.0])
    """
    frames, height, width = shape
    centres = [torch.empty(0, 3, dtype=torch.float64)]
    scales = [torch.empty(0, 2, dtype=torch.float64)]
    for i in range(sampling.spatial_scales):
        for j in range(sampling.temporal_scales):
            size = sampling.patch * math.sqrt(2) ** i
            length = sampling.length * math.sqrt(2) ** j
            along = [_centres(n, s, sampling.stride) for n, s in ((width, size), (height, size), (frames, length))]
            grid = torch.cartesian_prod(*along)
            centres.append(grid)
            scale = torch.tensor([size / settings.sigma0, length / settings.tau0], dtype=torch.float64)
            scales.append(scale.expand(len(grid), 2))
    return torch.cat(centres), torch.cat(scales)


def _centres(extent: int, size: float, stride: float) -> Tensor:
    count = math.floor((extent - size) / (stride * size) + 1e-9) + 1
    return size / 2 + stride * size * torch.arange(max(count, 0), dtype=torch.float64)


def integral_video(clip: Tensor) -> Tensor:
    """Sum the x, y and t differences of a clip from the first pixel on: 3 × (W+1) × (H+1) × (T+1).

    Differences are [−1, 1] of neighbouring pixels, without smoothing, and 0 at the far border. Sums are float64,
    because sums over boxes are differences of large numbers.

    Example:
        >>> integral_video(torch.arange(6.0).view(1, 2, 3))[:, -1, -1, -1].tolist()   # 4 steps in x, 3 steps in y
        [4.0, 9.0, 0.0]
    """
    x = clip.permute(2, 1, 0).to(torch.float64).contiguous()
    sums = x.new_zeros(3, *(n + 1 for n in x.shape))
    for axis, across in enumerate(((2, 1), (2, 0), (1, 0))):
        # Along their own axis, differences add up to what lies between the ends.
        inner = sums[axis, 1:, 1:, 1:]
        last = x.shape[axis] - 1
        torch.sub(x.narrow(axis, 1, last), x.narrow(axis, 0, 1), out=inner.narrow(axis, 0, last))
        if last:
            inner.select(axis, last).copy_(inner.select(axis, last - 1))
        for other in across:
            sums[axis].cumsum_(other)
    return sums


def hog3d(clip: Tensor, centres: Places, scales: Places, settings: Hog3D = HOLLYWOOD2) -> Tensor:
    """Compute the HOG3D descriptors of boxes of a clip.

    A box has centre (x, y, t) and size σ·σ₀ × σ·σ₀ × τ·τ₀. It has M×M×N cells of S×S×S sub-blocks, edges rounded to
    whole pixels. The gradient g summed over a sub-block votes with ‖g‖ for its orientation; a cell is the histogram of
    its sub-blocks' votes; the descriptor is its cells one after another (x slowest, then y, t, orientation),
    normalised.

    Args:
        clip: Grey clip, T×H×W in [0, 1], on any device.
        centres: Centres (x, y, t) of the boxes, n × 3, in pixels and frames from the corner of the first pixel.
        scales: Scales (σ, τ) of the boxes, n × 2.
        settings: Settings of the descriptor.

    Returns:
        n × M·M·N·bins; a row of NaN for a box with too little contrast to be described (`Hog3D.threshold`).

    Example:
        >>> ramp = torch.arange(48.0).expand(24, 48, 48) / 48
        >>> hog3d(ramp, [[24, 24, 12]], [[1, 1]]).shape
        torch.Size([1, 300])

    Kläser et al. 2008, §3.
    """
    _require_clip(clip)
    middle = torch.as_tensor(centres, dtype=torch.float64, device=clip.device).reshape(-1, 3)
    scale = torch.as_tensor(scales, dtype=torch.float64, device=clip.device).reshape(-1, 2)
    if len(middle) != len(scale):
        raise AssayError(f"{len(middle)} centres have {len(scale)} scales")
    support = torch.tensor([settings.sigma0, settings.sigma0, settings.tau0], dtype=torch.float64, device=clip.device)
    sizes = scale[:, [0, 0, 1]] * support
    starts = middle - sizes / 2
    _require_inside(clip, starts, sizes)
    descriptors = torch.empty(len(middle), settings.dimensions, dtype=clip.dtype, device=clip.device)
    sums = integral_video(clip)
    for size in torch.unique(sizes, dim=0):
        chosen = (sizes == size).all(1).nonzero()[:, 0]
        axes = [_Axis.of(starts[chosen, a], float(size[a]), settings.blocks[a], settings.S) for a in range(3)]
        on_grid = math.prod(len(a.low) for a in axes) <= len(chosen) * math.prod(settings.blocks)
        cells = _cells_on_grid if on_grid else _cells_one_by_one
        descriptors[chosen] = _normalised(cells(sums, axes, settings, clip.dtype), settings)
    return descriptors


def _require_clip(clip: Tensor) -> None:
    if clip.ndim != 3 or 0 in clip.shape or not clip.is_floating_point():
        raise AssayError(f"clip is {clip.dtype} {tuple(clip.shape)}: give grey frames T×H×W as floats in [0, 1]")
    if not clip.isfinite().all():
        raise AssayError("clip has NaN or infinite pixels")


def _require_inside(clip: Tensor, starts: Tensor, sizes: Tensor) -> None:
    extent = torch.tensor(clip.shape[::-1], device=clip.device)
    inside = (sizes > 0) & (starts > -0.5) & (starts + sizes < extent + 0.5)
    if not inside.all():
        i = int((~inside.all(1)).nonzero()[0, 0])
        (x, y, t), (dx, dy, dt) = starts[i].tolist(), sizes[i].tolist()
        raise AssayError(
            f"box {i} at x={x:g}, y={y:g}, t={t:g} of {dx:g}×{dy:g} pixels and {dt:g} frames is not inside the clip "
            f"of {clip.shape[2]}×{clip.shape[1]} pixels and {clip.shape[0]} frames"
        )


@dataclass(frozen=True)
class _Axis:
    """Sub-blocks and cells of boxes along one axis; those that boxes on a grid share are held once."""

    edges: Tensor  # boxes × (sub-blocks + 1)
    low: Tensor  # of the different sub-blocks
    high: Tensor
    members: Tensor  # different cells × S: their sub-blocks
    cells: Tensor  # boxes × M (or N): their cells

    @classmethod
    def of(cls, starts: Tensor, size: float, blocks: int, per_cell: int) -> _Axis:
        steps = torch.arange(blocks + 1, dtype=torch.float64, device=starts.device) * (size / blocks)
        places, place = torch.unique(starts, return_inverse=True)
        # Half pixels go up, by a hair early: those on a half must not fall apart through rounding.
        edges = (places[:, None] + steps + (0.5 + 1e-9)).floor().long()
        pairs = torch.stack([edges[:, :-1], edges[:, 1:]], -1).flatten(0, 1)
        pairs[pairs[:, 0] == pairs[:, 1]] = 0  # all empty ones are the same
        different, block = torch.unique(pairs, dim=0, return_inverse=True)
        members, cell = torch.unique(block.view(-1, per_cell), dim=0, return_inverse=True)
        return cls(edges[place], different[:, 0], different[:, 1], members, cell.view(len(places), -1)[place])


def _cells_on_grid(sums: Tensor, axes: Sequence[_Axis], settings: Hog3D, dtype: torch.dtype) -> Tensor:
    """Compute the cells of boxes on a grid, boxes × M × M × N × bins; what boxes share is computed once."""
    x, y, t = axes
    table = []
    for members in torch.split(x.members, max(AT_ONCE // (settings.S * len(y.low) * len(t.low)), 1)):
        slabs = members.flatten()
        g = sums.index_select(1, x.high[slabs]) - sums.index_select(1, x.low[slabs])
        g = g.index_select(2, y.high) - g.index_select(2, y.low)
        g = g.index_select(3, t.high) - g.index_select(3, t.low)
        votes = settings.orientation(g.to(dtype))
        votes = votes.view(len(votes), -1, settings.S, *votes.shape[2:]).sum(2)
        votes = _gathered(votes, 2, y.members)
        table.append(_gathered(votes, 3, t.members))
    cells = torch.cat(table, 1).movedim(0, -1).contiguous()
    return cells[x.cells[:, :, None, None], y.cells[:, None, :, None], t.cells[:, None, None, :]]


def _gathered(votes: Tensor, axis: int, members: Tensor) -> Tensor:
    """Add up the votes of sub-blocks to those of their cells along one axis."""
    total = votes.index_select(axis, members[:, 0])
    for others in members.T[1:]:
        total += votes.index_select(axis, others)
    return total


def _cells_one_by_one(sums: Tensor, axes: Sequence[_Axis], settings: Hog3D, dtype: torch.dtype) -> Tensor:
    """Compute the cells of boxes anywhere, boxes × M × M × N × bins."""
    M, N, S = settings.M, settings.N, settings.S
    cells = []
    at_once = max(AT_ONCE // math.prod(settings.blocks), 1)
    for x, y, t in zip(*(torch.split(a.edges, at_once) for a in axes), strict=True):
        g = sums[:, x[:, :, None, None], y[:, None, :, None], t[:, None, None, :]].diff(dim=2).diff(dim=3).diff(dim=4)
        votes = settings.orientation(g.to(dtype))
        cells.append(votes.view(-1, len(x), M, S, M, S, N, S).sum((3, 5, 7)).movedim(0, -1))
    return torch.cat(cells)


def _normalised(cells: Tensor, settings: Hog3D) -> Tensor:
    descriptors: Tensor = cells.flatten(1)
    length = torch.linalg.vector_norm(descriptors, dim=1, keepdim=True)
    weak = length < settings.threshold
    if settings.normalise == "cells":
        descriptors = (cells / (torch.linalg.vector_norm(cells, dim=-1, keepdim=True) + 0.02 * settings.S**3)).flatten(
            1
        )
    else:
        descriptors = (descriptors / length).clamp(max=0.25)
        descriptors = descriptors / torch.linalg.vector_norm(descriptors, dim=1, keepdim=True)
    return descriptors.masked_fill(weak, math.nan)
