"""Stacked autoencoder with tanh units, untied weights, weight decay and optional sparsity.

Bengio et al. 2007; sparsity as in Lee, Ekanadham, Ng 2008; as used by Goodfellow et al. 2009, §3.1.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from assay.core.determinism import seeded
from assay.core.errors import AssayError
from assay.networks.learners.stack import LearnedStack, per_layer


class Autoencoder(nn.Module):
    """One layer of a stack: the representation is h = tanh(W₁x + b₁), the reconstruction x̂ = tanh(W₂h + b₂).

    ``loss`` is the mean over the batch of ‖x − x̂‖², plus λ(‖W₁‖² + ‖W₂‖²), plus β Σ_j (mean h_j − ρ)².

    Args:
        inputs: Size of the input x.
        hidden: Size of the representation h.
        weight_decay: Weight decay λ.
        sparsity: Weight β of the sparsity penalty; 0 for no penalty.
        target: Target ρ of the mean activation; tanh units are silent near −1.
    """

    weight_decay: Tensor
    sparsity: Tensor
    target: Tensor

    def __init__(
        self, inputs: int, hidden: int, weight_decay: float = 0.0, sparsity: float = 0.0, target: float = 0.0
    ) -> None:
        super().__init__()
        self.encoder = nn.Linear(inputs, hidden)
        self.decoder = nn.Linear(hidden, inputs)
        for name, value in {"weight_decay": weight_decay, "sparsity": sparsity, "target": target}.items():
            self.register_buffer(name, torch.tensor(float(value)))

    def forward(self, x: Tensor) -> Tensor:
        """Return the representation h of an input."""
        return torch.tanh(self.encoder(x.flatten(1)))

    def loss(self, x: Tensor) -> Tensor:
        """Return the mean error of the reconstruction plus the penalties, which learning minimises."""
        x = x.flatten(1)
        h = self(x)
        error = (x - torch.tanh(self.decoder(h))).square().sum(1).mean()
        decay = self.encoder.weight.square().sum() + self.decoder.weight.square().sum()
        off_target = (h.mean(0) - self.target).square().sum()
        total: Tensor = error + self.weight_decay * decay + self.sparsity * off_target
        return total


class StackedAutoencoder(LearnedStack):
    """Autoencoders on top of each other, each learning to reconstruct what the one below represents.

    Args:
        inputs: Size of the input (196 for 14×14 patches); pictures are flattened.
        hidden: Number of units of each layer.
        weight_decay: Weight decay λ, for each layer or one for all.
        sparsity: Weight β of the sparsity penalty.
        target: Target ρ of the mean activation.
        seed: Seed of the initial weights (uniform in ±1/√inputs).

    Example:
        >>> network = StackedAutoencoder(196, (100, 50), weight_decay=0.01, seed=1)
        >>> network.layers, network.transform(torch.zeros(3, 1, 14, 14)).shape, network.shallow().layers
        (['stack.0', 'stack.1'], (3, 50), ['stack.0'])
    """

    def __init__(
        self,
        inputs: int,
        hidden: Sequence[int],
        weight_decay: float | Sequence[float] = 0.0,
        sparsity: float = 0.0,
        target: float = 0.0,
        seed: int = 0,
    ) -> None:
        decays = per_layer("weight_decay", weight_decay, len(hidden))
        if min(decays, default=0.0) < 0 or sparsity < 0 or not -1 <= target <= 1:
            raise AssayError(
                f"weight_decay={weight_decay}, sparsity={sparsity} must not be negative, target={target} is in [−1, 1]"
            )
        with seeded(seed):
            sizes = [inputs, *hidden]
            super().__init__(
                [Autoencoder(n, m, decay, sparsity, target) for n, m, decay in zip(sizes, hidden, decays, strict=False)]
            )

    def filters(self, layer: int = 0) -> Tensor:
        """Return the weights of each unit of a layer, units × inputs: W₁ of the first, linear combinations of it above.

        "Weight images in deeper layers are formed by making linear combinations of weight images in shallower
        layers. This approximates the function computed by each unit as a linear function." (§7.1.3)
        """
        self.require_layer(layer)
        weights = [part.get_parameter("encoder.weight").detach() for part in self.stack]
        combined = weights[0]
        for above in weights[1 : layer % len(weights) + 1]:
            combined = above @ combined
        return combined
