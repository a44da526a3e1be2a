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
PACE = 4 / 3  # factor by which a stride becomes longer or shorter
SETTLED = (200, 50, 1e-3)  # after 200 steps, stop when the objective fell by less than 0.1 % in the last 50
BATCH = 256  # blocks at a time through the layers below
ROWS = 4096  # inputs at a time in a covariance


def subspace_energies(weight: Tensor, z: Tensor, group: int) -> Tensor:
    """Return √(ε + Σ_k (W_k·z)²), samples × subspaces, the sum taken over the rows of each subspace; ε = 10⁻⁴.

    Args:
        weight: The weights W, rows × dimensions; rows g·i … g·i + g − 1 span subspace i.
        z: The whitened inputs, samples × dimensions.
        group: The number g of rows in a subspace.

    Example:
        >>> subspace_energies(torch.eye(4), torch.tensor([[3.0, 4.0, 0.0, 0.0]]), group=2)
        tensor([[5.0000, 0.0100]])
    """
    squared = (z @ weight.T).square()
    return (EPSILON + squared.reshape(len(z), -1, group).sum(2)).sqrt()


def subspace_objective(weight: Tensor, z: Tensor, group: int) -> float:
    """Return what ISA minimises: the sum of the energies of all subspaces, averaged over samples."""
    return float(subspace_energies(weight, z, group).sum(dtype=torch.float64)) / len(z)


def subspace_direction(weight: Tensor, z: Tensor, group: int) -> Tensor:
    """Return the direction of descent along {W : WWᵀ = I}: G − W Gᵀ W, G the negative gradient of the objective.

    G = −(Y ∘ Vᵀ(ε + K)^{−½}) Zᵀ/N, with Y = WZ and K the summed squares of each subspace.
    """
    y = z @ weight.T
    scale = -1 / subspace_energies(weight, z, group)
    down = (y * scale.repeat_interleave(group, 1)).T @ z / len(z)
    return down - weight @ down.T @ weight


def orthogonalised(weight: Tensor) -> Tensor:
    """Return (WWᵀ)^{−½} W, the nearest matrix with orthonormal rows."""
    exact = weight.double()  # WWᵀ squares the condition number of W: single precision fails after a long stride
    values, vectors = torch.linalg.eigh(exact @ exact.T)
    nearest: Tensor = vectors @ (vectors / values.sqrt()).T @ exact
    return nearest.to(weight.dtype)


def subspace_step(
    weight: Tensor, z: Tensor, group: int, step: float, objective: float
) -> tuple[Tensor, float, float, bool]:
    """Take the better of two projected gradient steps, with a longer (× 4/3) and a shorter (÷ 4/3) stride.

    A stride that raises the objective is not taken: W stays, and the stride becomes shorter.

    Returns:
        W, the next stride, the objective at W, and whether W changed.
    """
    direction = subspace_direction(weight, z, group)
    candidates = []
    for stride in (step * PACE, step / PACE):
        candidate = orthogonalised(weight + stride * direction)
        candidates.append((subspace_objective(candidate, z, group), stride, candidate))
    value, stride, better = min(candidates, key=lambda candidate: candidate[0])
    if value > objective:
        return weight, step / PACE, objective, False
    return better, stride, value, True


def whitening(x: Tensor, components: int) -> tuple[Tensor, Tensor]:
    """Whiten by PCA: return m and P so that P(x − m) has identity covariance, for inputs without their own means.

    Args:
        x: Samples × inputs; the mean of each sample is first subtracted from it, so that P ignores it.
        components: Number of principal directions that are kept, the strongest.
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
    """One layer of ISA: blocks lose their mean, are whitened to z = P(x − m), and become √(ε + Σ_k (W_k·z)²).

    Learning finds P and m from the data, then W: min_W Σ_t Σ_i √(ε + Σ_k V_ik (W_k·z_t)²) subject to WWᵀ = I, where V
    assigns neighbouring rows to fixed groups. Before learning P and W are random.

    Args:
        channels: Number of channels of the input.
        size: Frames, height and width of a block.
        components: Number of dimensions of z, and of rows of W.
        group: Number of rows of W in a subspace.
        stride: Distance between blocks, where the input is larger than one block.
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
        self.size = size
        self.group = group
        self.stride = stride
        self.clip = clip
        self.register_buffer("mean", torch.zeros(inputs))
        random = torch.randn(components, inputs)
        self.register_buffer("projection", orthogonalised(random - random.mean(1, keepdim=True)))
        self.weight = nn.Parameter(orthogonalised(torch.randn(components, components)), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the energies N×subspaces×T′×H′×W′, one place for each block, of inputs N×(channels)×T×H×W."""
        blocks, grid = self.blocks(x)
        z = (blocks - self.mean) @ self.projection.T
        energies = subspace_energies(self.weight, z, self.group)
        return energies.reshape(len(x), *grid, -1).movedim(-1, 1)

    def blocks(self, x: Tensor) -> tuple[Tensor, list[int]]:
        """Return all blocks of the inputs as rows, and their number in time, height and width."""
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
        """Learn P, m and W from inputs of one block each; return the objective before and after each step."""
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

    With a stride of 4, a block of 20×20 pixels × 14 frames is covered by 2·2·2 = 8 blocks of 16×16×10, whose
    activations, clipped to [0, 1], are what the second layer learns from; and so on. An input that is larger than one
    block gives activations for all its blocks.

    Args:
        sizes: Frames, height and width of a block of each layer.
        components: Number of dimensions that the inputs of each layer are whitened to.
        groups: Number of rows of W in a subspace, for each layer, which has components / group activations.
        stride: Distance between neighbouring blocks, in pixels and frames.
        iterations: Largest number of steps of learning for each layer.
        seed: Seed of the initial weights, and of where in a block the lower layers look while they learn.

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
        self.iterations = iterations
        self.seed = seed

    def fit(self, X: Tensor | np.ndarray[Any, Any], y: None = None, settings: Greedy | None = None) -> Self:
        """Learn from blocks N×T×H×W alone, starting from the initial weights; labels are refused.

        Each layer learns from one block of its own size at a random place inside each of these.
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
            layer.learn(self._inputs_of_layer(blocks, depth, rng), self.iterations, what)
        return self

    @torch.no_grad()
    def _inputs_of_layer(self, blocks: Tensor, depth: int, rng: np.random.Generator) -> Tensor:
        """Return what a layer learns from: a block of its size from each block, as the layers below represent it."""
        t, h, w = self.sizes[depth]
        room = [have - need + 1 for have, need in zip(blocks.shape[2:], (t, h, w), strict=True)]
        starts = rng.integers(0, room, (len(blocks), 3)).tolist()
        parameter = next(self.parameters())
        representations = []
        for first in range(0, len(blocks), BATCH):
            batch = slice(first, first + BATCH)
            parts = [
                block[:, a : a + t, b : b + h, c : c + w]
                for block, (a, b, c) in zip(blocks[batch], starts[batch], strict=True)
            ]
            x = torch.stack(parts).to(parameter.device, parameter.dtype)
            for below in self.stack[:depth]:
                x = below(x)
            representations.append(x)
        return torch.cat(representations)


def _covering(sizes: Sequence[Size], layer: int, stride: int) -> Size:
    """Return how many blocks of the layer below (or pixels) cover one of this layer in time, height and width."""
    if stride < 1:
        raise AssayError(f"stride={stride} must be positive")
    if layer == 0:
        frames, height, width = sizes[0]
        return frames, height, width
    differences = [above - below for above, below in zip(sizes[layer], sizes[layer - 1], strict=True)]
    if min(differences) < 0 or any(difference % stride for difference in differences):
        raise AssayError(
            f"sizes={sizes}: blocks of {sizes[layer - 1]} at stride={stride} do not cover one of {sizes[layer]}"
        )
    frames, height, width = (difference // stride + 1 for difference in differences)
    return frames, height, width
