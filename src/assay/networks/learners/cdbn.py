"""Convolutional deep belief network with probabilistic max-pooling.

Lee, Grosse, Ranganath, Ng 2009, "Convolutional deep belief networks for scalable unsupervised learning of
hierarchical representations"; as used by Goodfellow et al. 2009, §3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.core.determinism import seeded
from assay.core.errors import AssayError
from assay.networks.learners.stack import LearnedStack, per_layer

Visible = Literal["gaussian", "binary"]


class ConvolutionalRBM(nn.Module):
    """One layer of K feature maps of detection units h, each pool×pool block of which shares one pooling unit p.

    With a = (W * v + b)/σ² (valid convolution), a block is a softmax over its units and "all off":
    P(h_i = 1 | v) = e^{a_i} / (1 + Σ_j e^{a_j}),  P(p = 1 | v) = Σ_j e^{a_j} / (1 + Σ_j e^{a_j}).

    Visible units are Gaussian (mean Wᵀh + c, standard deviation σ) or binary (logistic(Wᵀh + c), σ = 1). The free
    energy is F(v) = ‖v − c‖²/2σ² − Σ_blocks log(1 + Σ_j e^{a_j}), for binary units −c·v in place of the first term.
    ``loss`` is F(v) − F(v′) for the reconstruction v′ after one step of Gibbs sampling, held fixed, so that its
    gradient is that of contrastive divergence (CD-1), per detection unit; plus λ‖W‖²; plus a term whose gradient
    changes only the biases b, by β(ρ − mean P(h = 1)).

    Args:
        channels: Number of channels of the input.
        maps: Number K of feature maps.
        size: Side of the filters in pixels.
        pool: Side of the pooling blocks in detection units.
        visible: Kind of visible units: ``"gaussian"`` or ``"binary"``.
        sigma: Standard deviation σ of Gaussian units.
        weight_decay: Weight decay λ.
        sparsity: Weight β of the sparsity penalty; 0 for no penalty.
        target: Target ρ of the mean activation of detection units.
    """

    sigma: Tensor
    weight_decay: Tensor
    sparsity: Tensor
    target: Tensor

    def __init__(
        self,
        channels: int,
        maps: int,
        size: int = 10,
        pool: int = 2,
        visible: Visible = "gaussian",
        sigma: float = 0.2,
        weight_decay: float = 0.01,
        sparsity: float = 5.0,
        target: float = 0.003,
    ) -> None:
        super().__init__()
        if visible not in ("gaussian", "binary"):
            raise AssayError(f"visible={visible!r} is not 'gaussian' or 'binary'")
        if min(channels, maps, size, pool) < 1 or sigma <= 0:
            raise AssayError(
                f"channels={channels}, maps={maps}, size={size}, pool={pool}, sigma={sigma}: all must be positive"
            )
        if min(weight_decay, sparsity) < 0 or not 0 <= target < 1:
            raise AssayError(
                f"weight_decay={weight_decay}, sparsity={sparsity} must not be negative, target={target} is in [0, 1)"
            )
        self.pool = pool
        self.visible = visible
        self.weight = nn.Parameter(0.01 * torch.randn(maps, channels, size, size))
        self.bias = nn.Parameter(torch.full((maps,), -0.01))
        self.visible_bias = nn.Parameter(torch.zeros(channels))
        settings = {"weight_decay": weight_decay, "sparsity": sparsity, "target": target}
        for name, value in {"sigma": sigma if visible == "gaussian" else 1.0, **settings}.items():
            self.register_buffer(name, torch.tensor(float(value)))

    def prepare(self, v: Tensor) -> None:
        """Set biases and the scale of the weights from some inputs before learning.

        Visible biases are set to the mean of the data and detection units to their target; otherwise all units would
        first learn the mean, all in the same way (Hinton 2010, "A practical guide to training restricted Boltzmann
        machines", §8). The random weights are scaled so that a has a standard deviation of 1, so that units differ.
        """
        mean = v.mean((0, 2, 3))
        self.visible_bias.copy_(mean if self.visible == "gaussian" else torch.logit(mean, 1e-4))
        spread = F.conv2d(v, self.weight).std() / self.sigma**2
        if spread > 0:
            self.weight.div_(spread)
        all_off = 1 - self.pool**2 * self.target
        if self.target > 0 and all_off > 0:
            self.bias.fill_(float(self.sigma**2 * torch.log(self.target / all_off)))

    def forward(self, v: Tensor) -> Tensor:
        """Return the probabilities P(p = 1 | v) of the pooling units, N×K×⌊(H−size+1)/pool⌋×…"""
        return self.detection(v)[..., :-1].sum(-1)

    def log_odds(self, v: Tensor) -> Tensor:
        """Return the log odds log P/(1 − P) = log Σ_j e^{a_j} of the pooling units; P itself soon rounds to 1."""
        return self._blocks(self.fitted(v)).logsumexp(-1)

    def detection(self, v: Tensor) -> Tensor:
        """Return the softmax of every block, N×K×rows×columns×(pool² + 1); the last entry is "all off"."""
        return _probabilities(self._blocks(self.fitted(v)))

    def fitted(self, v: Tensor) -> Tensor:
        """Return the input without the last rows and columns, which fill no block."""
        size, pool = self.weight.shape[-1], self.pool
        height, width = ((side - size + 1) // pool * pool + size - 1 for side in v.shape[-2:])
        if min(height, width) < size + pool - 1:
            raise AssayError(
                f"an input of {v.shape[-2]}×{v.shape[-1]} is too small for filters of {size} pooled by {pool}"
            )
        return v[..., :height, :width]

    def free_energy(self, v: Tensor) -> Tensor:
        """Return the free energy F(v) of each input."""
        return self._free_energy(v, self._blocks(v))

    def _free_energy(self, v: Tensor, blocks: Tensor) -> Tensor:
        c = self.visible_bias[:, None, None]
        soft = F.softplus(blocks.logsumexp(-1)).flatten(1).sum(1)
        if self.visible == "gaussian":
            return (v - c).square().flatten(1).sum(1) / (2 * self.sigma**2) - soft
        return -(c * v).flatten(1).sum(1) - soft

    def reconstruct(self, h: Tensor) -> Tensor:
        """Return the mean of the visible units given detection units N×K×rows×columns."""
        v = F.conv_transpose2d(h, self.weight) + self.visible_bias[:, None, None]
        return v if self.visible == "gaussian" else torch.sigmoid(v)

    def sample(self, v: Tensor) -> Tensor:
        """Draw detection units N×K×rows×columns given visible units: at most one in each block is on."""
        return self._drawn(self.detection(v))

    def _drawn(self, probabilities: Tensor) -> Tensor:
        # Of so few entries torch's cumsum is slow on a GPU: it took two thirds of the time of learning.
        cumulative = torch.stack(list(accumulate(probabilities[..., :-1].unbind(-1))), -1)
        chance = torch.rand_like(cumulative[..., :1])
        on = (chance < cumulative) & (chance >= F.pad(cumulative, (1, 0))[..., :-1])
        return self._unblocks(on.to(probabilities.dtype))

    def loss(self, v: Tensor) -> Tensor:
        """Return a scalar whose gradient learning follows; its value has no meaning of its own."""
        v = self.fitted(v)
        blocks = self._blocks(v)
        with torch.no_grad():
            probabilities = _probabilities(blocks)
            reconstruction = self.reconstruct(self._drawn(probabilities))
            mean_activation = probabilities[..., :-1].mean((0, 2, 3, 4))
        units = blocks[0, 0].numel()
        divergence = (self._free_energy(v, blocks) - self.free_energy(reconstruction)).mean() / units
        towards_target = ((self.target - mean_activation) * self.bias).sum()
        total: Tensor = divergence + self.weight_decay * self.weight.square().sum() - self.sparsity * towards_target
        return total

    def _blocks(self, v: Tensor) -> Tensor:
        """Return a = (W * v + b)/σ² by block, N×K×rows×columns×pool²."""
        a = F.conv2d(v, self.weight, self.bias) / self.sigma**2
        n, k, height, width = a.shape
        pool = self.pool
        split = a.reshape(n, k, height // pool, pool, width // pool, pool)
        return split.permute(0, 1, 2, 4, 3, 5).flatten(-2)

    def _unblocks(self, blocks: Tensor) -> Tensor:
        """Return the units of blocks N×K×rows×columns×pool² as maps N×K×(rows·pool)×(columns·pool)."""
        n, k, rows, columns, _ = blocks.shape
        pool = self.pool
        split = blocks.reshape(n, k, rows, columns, pool, pool).permute(0, 1, 2, 4, 3, 5)
        return split.reshape(n, k, rows * pool, columns * pool)


def _probabilities(blocks: Tensor) -> Tensor:
    """The softmax of every block over its units and "all off", the last entry."""
    return torch.softmax(F.pad(blocks, (0, 1)), -1)


class ConvolutionalDeepBeliefNetwork(LearnedStack):
    """Convolutional RBMs on top of each other: Gaussian visible units in the first, pooled probabilities above.

    Args:
        channels: Number of colour channels of the pictures.
        maps: Number of feature maps of each layer.
        size: Side of the filters.
        pool: Side of the pooling blocks.
        sigma: Standard deviation σ of the pixels.
        weight_decay: Weight decay λ, for each layer or one for all.
        sparsity: Weight β of the sparsity penalty.
        target: Target ρ of the mean activation, for each layer or one for all.
        seed: Seed of the initial weights (normal, standard deviation 0.01).

    Example:
        >>> network = ConvolutionalDeepBeliefNetwork(maps=(24, 100))
        >>> network(torch.zeros(2, 1, 31, 31)).shape, network.filters(1).shape
        (torch.Size([2, 100, 1, 1]), torch.Size([100, 1, 28, 28]))

    For natural images: 24 maps, then 100, of 10×10 filters (Lee et al. 2009, §4.1).
    """

    def __init__(
        self,
        channels: int = 1,
        maps: Sequence[int] = (24, 100),
        size: int = 10,
        pool: int = 2,
        sigma: float = 0.2,
        weight_decay: float | Sequence[float] = 0.001,
        sparsity: float = 5.0,
        target: float | Sequence[float] = 0.003,
        seed: int = 0,
    ) -> None:
        targets, decays = per_layer("target", target, len(maps)), per_layer("weight_decay", weight_decay, len(maps))
        with seeded(seed):
            layers = []
            for i, (below, k) in enumerate(zip((channels, *maps), maps, strict=False)):
                kind: Visible = "gaussian" if i == 0 else "binary"
                layers.append(ConvolutionalRBM(below, k, size, pool, kind, sigma, decays[i], sparsity, targets[i]))
            super().__init__(layers)
        self.pool = pool

    def filters(self, layer: int = 0) -> Tensor:
        """Return the filters of a layer in pixels, maps × channels × H × W; above the first, combinations of it."""
        self.require_layer(layer)
        weights = [part.get_parameter("weight").detach() for part in self.stack]
        combined = weights[layer]
        for below in reversed(weights[: layer % len(weights)]):
            combined = F.conv_transpose2d(combined, below, stride=self.pool)
        return combined
