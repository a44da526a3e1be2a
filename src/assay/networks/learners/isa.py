"""Stacked convolutional independent subspace analysis (ISA): features of video blocks.

Hyvärinen & Hoyer 2000; stacked and convolutional: Le, Zou, Yeung, Ng 2011.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from assay.core.determinism import seeded
from assay.core.errors import AssayError
from assay.core.progress import report
from assay.networks.learners.stack import LearnedStack
from assay.training import Greedy

Size = tuple[int, int, int]
EPSILON = 1e-4
PACE = 4 / 3  # what a step is multiplied or divided by
SETTLED = (200, 50, 1e-3)  # after 200 steps, stop when the objective fell by less than 0.1 % in the last 50
BATCH = 256  # blocks at a time through the layers below
ROWS = 4096  # inputs at a time in a covariance


def subspace_energies(weight: Tensor, z: Tensor, group: int) -> Tensor:
    """√(ε + Σ_k (W_k·z)²), the sum over the ``group`` rows of each subspace; samples × subspaces, ε = 10⁻⁴.

    Args:
        weight: W, rows × dimensions; rows g·i … g·i + g − 1 span subspace i.
        z: Samples × dimensions.
        group: g.

    Example:
        >>> subspace_energies(torch.eye(4), torch.tensor([[3.0, 4.0, 0.0, 0.0]]), group=2)
        tensor([[5.0000, 0.0100]])
    """
    squared = (z @ weight.T).square()
    return (EPSILON + squared.reshape(len(z), -1, group).sum(2)).sqrt()


def subspace_objective(weight: Tensor, z: Tensor, group: int) -> float:
    """What ISA makes small: the energies of all subspaces, summed, in the mean over samples."""
    return float(subspace_energies(weight, z, group).sum(dtype=torch.float64)) / len(z)


def subspace_direction(weight: Tensor, z: Tensor, group: int) -> Tensor:
    """The way down along {W : WWᵀ = I}: G − W Gᵀ W, G the negative gradient of the objective.

    G = −(Y ∘ Vᵀ(ε + K)^{−½}) Zᵀ/N, with Y = WZ and K the summed squares of each subspace.
    """
    y = z @ weight.T
    scale = -1 / subspace_energies(weight, z, group)
    down = (y * scale.repeat_interleave(group, 1)).T @ z / len(z)
    return down - weight @ down.T @ weight


def orthogonalised(weight: Tensor) -> Tensor:
    """(WWᵀ)^{−½} W, the nearest matrix with orthonormal rows."""
    exact = weight.double()  # WWᵀ squares the condition of W: a long stride would cost all single precision has
    values, vectors = torch.linalg.eigh(exact @ exact.T)
    nearest: Tensor = vectors @ (vectors / values.sqrt()).T @ exact
    return nearest.to(weight.dtype)


def subspace_step(
    weight: Tensor, z: Tensor, group: int, step: float, objective: float
) -> tuple[Tensor, float, float, bool]:
    """One projected gradient step with a longer (× 4/3) and a shorter (÷ 4/3) stride; the better is taken.

    A stride that raises the objective is not taken: W stays, and the stride becomes shorter.

    Returns:
        W, the stride to go on with, the objective at W, and whether W moved.
    """
    direction = subspace_direction(weight, z, group)
    tried = []
    for stride in (step * PACE, step / PACE):
        moved = orthogonalised(weight + stride * direction)
        tried.append((subspace_objective(moved, z, group), stride, moved))
    value, stride, moved = min(tried, key=lambda found: found[0])
    if value > objective:
        return weight, step / PACE, objective, False
    return moved, stride, value, True


def whitening(x: Tensor, components: int) -> tuple[Tensor, Tensor]:
    """PCA-whitening of inputs whose own mean was removed: m and P so that P(x − m) has identity covariance.

    Args:
        x: Samples × inputs; the mean of each sample is taken from it first, so that P ignores it.
        components: Principal directions kept, the strongest.
    """
    mean = torch.zeros(x.shape[1], dtype=torch.float64, device=x.device)
    for part in torch.split(x, ROWS):
        mean += (part.double() - part.double().mean(1, keepdim=True)).sum(0) / len(x)
    covariance = torch.zeros(len(mean), len(mean), dtype=torch.float64, device=x.device)
    for part in torch.split(x, ROWS):
        centred = part.double() - part.double().mean(1, keepdim=True) - mean
        covariance += centred.T @ centred / len(x)
    values, vectors = torch.linalg.eigh(covariance)
    varying = int((values > 1e-10 * values[-1]).sum()) if values[-1] > 0 else 0
    if varying < components:
        raise AssayError(
            f"components={components}, but {len(x)} inputs vary in {varying} directions only: "
            "ask for fewer components, or learn from more blocks"
        )
    strongest = slice(-components, None)
    projection = (vectors[:, strongest] / values[strongest].sqrt()).T.flip(0)
    return mean.to(x.dtype), projection.to(x.dtype)


class SubspaceAnalysis(nn.Module):
    """One layer: blocks lose their mean, are PCA-whitened to z = P(x − m), and become √(ε + Σ_k (W_k·z)²).

    Learning finds P and m from the data, then W: min_W Σ_t Σ_i √(ε + Σ_k V_ik (W_k·z_t)²) subject to WWᵀ = I, V
    being fixed groups of neighbouring rows. Before it P is random and W as well.

    Args:
        channels: Of the input.
        size: Frames, height and width of a block.
        components: Directions z has; the number of rows of W.
        group: Rows of W in a subspace.
        stride: Between blocks, where the input is larger than one.
        clip: Whether inputs are clipped to [0, 1] (activations of a layer below).
    """

    mean: Tensor
    projection: Tensor

    def __init__(
        self, channels: int, size: Size, components: int, group: int = 1, stride: int = 1, clip: bool = False
    ) -> None:
        super().__init__()
        inputs = channels * prod(size)
        if min(channels, *size, components, group, stride) < 1 or components % group:
            raise AssayError(
                f"channels={channels}, size={size}, components={components}, group={group}, stride={stride}: "
                "all must be positive, and components a multiple of group"
            )
        if components >= inputs:
            raise AssayError(f"components={components} must be fewer than the {inputs} values of a block")
        self.size, self.group, self.stride, self.clip = size, group, stride, clip
        self.register_buffer("mean", torch.zeros(inputs))
        random = torch.randn(components, inputs)
        self.register_buffer("projection", orthogonalised(random - random.mean(1, keepdim=True)))
        self.weight = nn.Parameter(orthogonalised(torch.randn(components, components)), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        """N×(channels)×T×H×W → N×subspaces×T′×H′×W′, one place for each block."""
        blocks, grid = self.blocks(x)
        z = (blocks - self.mean) @ self.projection.T
        found = subspace_energies(self.weight, z, self.group)
        return found.reshape(len(x), *grid, -1).movedim(-1, 1)

    def blocks(self, x: Tensor) -> tuple[Tensor, list[int]]:
        """All blocks of the inputs as rows, and how many there are in time, height and width."""
        x = x.unsqueeze(1) if x.dim() == 4 else x
        if x.dim() != 5 or any(have < need for have, need in zip(x.shape[2:], self.size, strict=True)):
            raise AssayError(f"inputs of {tuple(x.shape)} hold no block of {self.size} (frames, height, width)")
        x = x.clamp(0, 1) if self.clip else x
        for axis, side in enumerate(self.size, 2):
            x = x.unfold(axis, side, self.stride)
        rows = x.permute(0, 2, 3, 4, 1, 5, 6, 7)
        return rows.reshape(-1, len(self.mean)), list(rows.shape[1:4])

    @torch.no_grad()
    def learn(self, x: Tensor, iterations: int = 2000, what: str = "learning subspaces") -> list[float]:
        """Find P, m and W from inputs of one block each; returns the objective before and after each step."""
        rows, _ = self.blocks(x)
        mean, projection = whitening(rows, len(self.weight))
        self.mean.copy_(mean)
        self.projection.copy_(projection)
        z = (rows - mean) @ projection.T
        weight, step = self.weight.clone(), 1.0
        values = [subspace_objective(weight, z, self.group)]
        least, span, fall = SETTLED
        for i in range(1, iterations + 1):
            weight, step, value, _ = subspace_step(weight, z, self.group, step, values[-1])
            values.append(value)
            report(what, i, iterations)
            if i >= least and values[-span - 1] - value < fall * values[-span - 1]:
                break
        self.weight.copy_(weight)
        return values


class StackedISA(LearnedStack):
    """Layers of ISA on video blocks; a block of one layer is covered by blocks of the layer below, at a stride.

    Blocks of 16×16 pixels × 10 frames at a stride of 4 cover one of 20×20×14 by 2·2·2 = 8, whose activations, clipped
    to [0, 1], are what the second layer learns from; and so on. Shown more than one block, it describes all of them.

    Args:
        sizes: Frames, height and width of a block of each layer.
        components: Directions that the inputs of each layer are whitened to.
        groups: Rows of W in a subspace, for each layer; it gives components / group activations.
        stride: Between neighbouring blocks, in pixels and frames.
        iterations: Steps of learning for each layer, at most.
        seed: Of the initial weights, and of where in a block the lower layers look while they learn.

    Example:
        >>> network = StackedISA()
        >>> network.stack[1].size, network(torch.zeros(2, 18, 24, 24)).shape
        ((2, 2, 2), torch.Size([2, 100, 1, 1, 1]))

    Sizes, components and groups of the first two layers are those of the released system, which has a third as well.
    """

    def __init__(
        self,
        sizes: Sequence[Size] = ((10, 16, 16), (14, 20, 20), (18, 24, 24)),
        components: Sequence[int] = (300, 200, 200),
        groups: Sequence[int] = (1, 2, 2),
        stride: int = 4,
        iterations: int = 2000,
        seed: int = 0,
    ) -> None:
        if not len(sizes) == len(components) == len(groups):
            raise AssayError(
                f"sizes={sizes}, components={components}, groups={groups}: all must have a value for each layer"
            )
        if iterations < 1:
            raise AssayError(f"iterations={iterations} must be positive")
        windows = [_covering(sizes, i, stride) for i in range(len(sizes))]
        with seeded(seed):
            layers = []
            for i, (size, d, group) in enumerate(zip(windows, components, groups, strict=True)):
                channels = components[i - 1] // groups[i - 1] if i else 1
                layers.append(SubspaceAnalysis(channels, size, d, group, 1 if i else stride, clip=i > 0))
            super().__init__(layers)
        self.sizes: list[Size] = [(t, h, w) for t, h, w in sizes]
        self.iterations, self.seed = iterations, seed

    def fit(self, X: Tensor | np.ndarray[Any, Any], y: None = None, settings: Greedy | None = None) -> Self:
        """Learn from blocks alone, N×T×H×W, from the initial weights on; labels are not taken.

        Each layer learns from one block of its own size inside each of these, wherever chance puts it.
        """
        if y is not None or settings is not None:
            raise AssayError("StackedISA learns without labels, by its own steps: fit(X) only")
        blocks = torch.as_tensor(X)
        blocks = blocks.unsqueeze(1) if blocks.dim() == 4 else blocks
        size = self.sizes[len(self.stack) - 1]
        if blocks.dim() != 5 or any(have < need for have, need in zip(blocks.shape[2:], size, strict=True)):
            raise AssayError(f"blocks of {tuple(X.shape)} are not blocks × {size} (frames, height, width) or larger")
        if not torch.isfinite(blocks).all():
            raise AssayError("the blocks to learn from have NaN or infinite values")
        self.stack.load_state_dict(self.start)
        rng = np.random.default_rng(self.seed)
        for depth, layer in enumerate(self.stack):
            assert isinstance(layer, SubspaceAnalysis)
            what = f"learning layer {depth + 1} of {len(self.stack)}"
            layer.learn(self._seen(blocks, depth, rng), self.iterations, what)
        return self

    @torch.no_grad()
    def _seen(self, blocks: Tensor, depth: int, rng: np.random.Generator) -> Tensor:
        """What a layer sees of the blocks: one block of its own size in each, as the layers below represent it."""
        t, h, w = self.sizes[depth]
        room = [have - need + 1 for have, need in zip(blocks.shape[2:], (t, h, w), strict=True)]
        starts = rng.integers(0, room, (len(blocks), 3)).tolist()
        parameter = next(self.parameters())
        found = []
        for first in range(0, len(blocks), BATCH):
            here = slice(first, first + BATCH)
            cut = [
                block[:, a : a + t, b : b + h, c : c + w]
                for block, (a, b, c) in zip(blocks[here], starts[here], strict=True)
            ]
            x = torch.stack(cut).to(parameter.device, parameter.dtype)
            for below in self.stack[:depth]:
                x = below(x)
            found.append(x)
        return torch.cat(found)


def _covering(sizes: Sequence[Size], layer: int, stride: int) -> Size:
    """How many blocks of the layer below, in time, height and width, cover one of this layer; pixels for the first."""
    if stride < 1:
        raise AssayError(f"stride={stride} must be positive")
    if layer == 0:
        frames, height, width = sizes[0]
        return frames, height, width
    more = [above - below for above, below in zip(sizes[layer], sizes[layer - 1], strict=True)]
    if min(more) < 0 or any(m % stride for m in more):
        raise AssayError(
            f"sizes={sizes}: blocks of {sizes[layer - 1]} at stride={stride} do not cover one of {sizes[layer]}"
        )
    frames, height, width = (m // stride + 1 for m in more)
    return frames, height, width
