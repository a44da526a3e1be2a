"""Stacked denoising autoencoder of rectifiers.

Vincent et al. 2008; rectifiers, and their use on reviews: Glorot, Bordes, Bengio 2011.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.core.determinism import seeded
from assay.core.errors import AssayError
from assay.networks.learners.stack import LearnedStack, per_layer

Noise = Literal["masking", "gaussian"]


class DenoisingAutoencoder(nn.Module):
    """One layer that learns to reconstruct x from h = max(0, W₁x̃ + b₁), where x̃ is x with noise.

    Masking noise sets each value to 0 with probability ν; then x̂ = logistic(W₂h + b₂) and the error is the
    cross-entropy −Σ_i (x_i log x̂_i + (1 − x_i) log(1 − x̂_i)), for x in [0, 1]. Gaussian noise adds N(0, ν²); then
    x̂ = softplus(W₂h + b₂) and the error is ‖x − x̂‖², for x ≥ 0 without an upper bound. ``loss`` is the mean of the
    error over the batch, plus λ times the mean of Σ_j |h_j|. The representation is h of x itself.

    Args:
        inputs: Size of the input x.
        hidden: Size of the representation h.
        kind: Kind of noise: ``"masking"`` or ``"gaussian"``.
        noise: Strength ν of the noise.
        sparsity: Weight λ of the sparsity penalty.
    """

    noise: Tensor
    sparsity: Tensor

    def __init__(
        self, inputs: int, hidden: int, kind: Noise = "masking", noise: float = 0.8, sparsity: float = 0.0
    ) -> None:
        super().__init__()
        if kind not in ("masking", "gaussian"):
            raise AssayError(f"kind={kind!r} is not 'masking' or 'gaussian'")
        if min(inputs, hidden) < 1 or sparsity < 0:
            raise AssayError(
                f"inputs={inputs}, hidden={hidden} must be positive, sparsity={sparsity} must not be negative"
            )
        if noise < 0 or (kind == "masking" and noise >= 1):
            raise AssayError(
                f"noise={noise}: masking noise is a probability in [0, 1), Gaussian noise a standard deviation ≥ 0"
            )
        self.kind = kind
        self.encoder = nn.Linear(inputs, hidden)
        self.decoder = nn.Linear(hidden, inputs)
        for name, value in {"noise": noise, "sparsity": sparsity}.items():
            self.register_buffer(name, torch.tensor(float(value)))

    def prepare(self, x: Tensor) -> None:
        """Refuse inputs that the reconstruction cannot reach."""
        if self.kind == "masking" and (x.min() < 0 or x.max() > 1):
            raise AssayError(
                f"inputs are in [{float(x.min()):g}, {float(x.max()):g}]: "
                "a denoising autoencoder learns from values scaled to [0, 1]"
            )

    def forward(self, x: Tensor) -> Tensor:
        """Return the representation h of an input without noise."""
        return torch.relu(self.encoder(x.flatten(1)))

    def corrupt(self, x: Tensor) -> Tensor:
        """Return the input with noise, x̃, which is drawn anew at each call."""
        if self.kind == "masking":
            return x * (torch.rand_like(x) >= self.noise)
        return x + self.noise * torch.randn_like(x)

    def loss(self, x: Tensor) -> Tensor:
        """Return the mean error of the reconstruction plus the penalty, which learning minimises."""
        x = x.flatten(1)
        h = self(self.corrupt(x))
        decoded = self.decoder(h)
        if self.kind == "masking":
            errors = F.binary_cross_entropy_with_logits(decoded, x, reduction="none")
        else:
            errors = (x - F.softplus(decoded)).square()
        total: Tensor = errors.sum(1).mean() + self.sparsity * h.sum(1).mean()  # |h| = h, as h ≥ 0
        return total


class StackedDenoisingAutoencoder(LearnedStack):
    """Denoising autoencoders on top of each other: masking noise in the first, Gaussian noise above.

    Args:
        inputs: Size of the input, whose values are in [0, 1].
        hidden: Number of units of each layer.
        masking: Share of the input that is set to 0 while the first layer learns.
        gaussian: Standard deviation of the noise while the other layers learn.
        sparsity: Weight λ of the sparsity penalty, for each layer or one for all.
        seed: Seed of the initial weights (uniform in ±1/√inputs).

    Example:
        >>> network = StackedDenoisingAutoencoder(30, (20, 10, 5))
        >>> network.layers, network.transform(torch.zeros(3, 30)).shape, network.shallow().layers
        (['stack.0', 'stack.1', 'stack.2'], (3, 5), ['stack.0'])

    Glorot, Bordes, Bengio 2011 use three layers of 5,000 units on the 5,000 most frequent words.
    """

    def __init__(
        self,
        inputs: int,
        hidden: Sequence[int],
        masking: float = 0.8,
        gaussian: float = 0.1,
        sparsity: float | Sequence[float] = 1e-3,
        seed: int = 0,
    ) -> None:
        penalties = per_layer("sparsity", sparsity, len(hidden))
        with seeded(seed):
            layers = []
            for i, (below, units) in enumerate(zip((inputs, *hidden), hidden, strict=False)):
                kind: Noise = "gaussian" if i else "masking"
                layers.append(DenoisingAutoencoder(below, units, kind, gaussian if i else masking, penalties[i]))
            super().__init__(layers)
