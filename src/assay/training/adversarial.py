"""Adversarial training: each batch is replaced by adversarial examples of it, made with the network as it is.

Madry et al. 2018, "Towards deep learning models resistant to adversarial attacks": min_θ E max_{‖δ‖≤ε} L(θ, x + δ, y).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from assay.core.errors import AssayError, shown
from assay.training.attacks import (
    PIXELS,
    Bounds,
    Norm,
    Scores,
    StepSize,
    climb,
    loss_gradient,
    random_change,
    require_radius,
    require_within,
    step_sizes,
)

_ROUNDING = 1e-4  # of pixels that were standardised and are taken back, in pixels


@dataclass(frozen=True)
class Adversary:
    """The attack of an adversarial training: what a batch is changed by before the network learns from it.

    The network is attacked in eval mode, as in the package robustness (Engstrom et al. 2019), so that an attack
    changes no running statistics and draws no dropout, and learns from the examples in training mode.

    Args:
        epsilon: Radius ε of the ball in which each input may be changed, in pixels of [0, 1]; 0 for ordinary training.
        norm: ``"linf"`` or ``"l2"``, the distance of which ε is the largest.
        steps: Number of steps along the gradient; 1 without a random start is FGSM.
        step_size: Size of the steps, or a tuple with the size of each; by default 2.5·ε/steps, and ε for a single one.
        random_start: Whether each attack starts at a random place in the ball; drawn from the recipe's seed.
        mean: Mean of each channel by which the training inputs were standardised; by default they are pixels.
        std: Standard deviation of each channel by which they were standardised.
        bounds: Smallest and largest value of a pixel.

    Example:
        >>> from assay.training import Recipe, train
        >>> adversary = Adversary(epsilon=0.1, norm="l2", steps=2)
        >>> x, y = torch.eye(2).repeat(8, 1), torch.arange(2).repeat(8)
        >>> recipe = Recipe(learning_rate=0.5, batch_size=8, epochs=5, adversary=adversary)
        >>> train(nn.Linear(2, 2), x, y, recipe).status
        'ended'
    """

    epsilon: float
    norm: Norm = "linf"
    steps: int = 7
    step_size: StepSize = None
    random_start: bool = True
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    bounds: Bounds = PIXELS

    def __post_init__(self) -> None:
        step_sizes(self.norm, self.epsilon, self.steps, self.step_size)
        require_radius(self.norm, self.epsilon, self.bounds)
        for name, values in (("mean", self.mean), ("std", self.std)):
            if not isinstance(values, tuple | list):
                raise AssayError(f"{name}={shown(values)} is no tuple: give one for each channel, such as (0.5,)")
        if len(self.mean) != len(self.std) or not self.mean or not all(value > 0 for value in self.std):
            raise AssayError(f"mean={self.mean} and std={self.std}: give one of each a channel, every std above 0")

    @property
    def sizes(self) -> tuple[float, ...]:
        """The size of each step."""
        return step_sizes(self.norm, self.epsilon, self.steps, self.step_size)


def attacker(adversary: Adversary | None, inputs: Tensor) -> Attacker | None:
    """The attack of a training on these inputs; None where there is none, or its ε is 0."""
    return Attacker(adversary, inputs) if adversary is not None and adversary.epsilon > 0 else None


class Attacker:
    """An adversary on the device of a training, with nothing left to do there that a CUDA graph could not record.

    Args:
        adversary: The settings of the attack.
        inputs: The inputs of the training, standardised by the adversary's mean and std.
    """

    def __init__(self, adversary: Adversary, inputs: Tensor) -> None:
        channels = len(adversary.mean)
        if channels > 1 and (inputs.dim() < 2 or inputs.shape[1] != channels):
            raise AssayError(f"adversary has {channels} means, and the inputs are of shape {tuple(inputs.shape[1:])}")
        self.adversary = adversary
        axes = (-1, *(1,) * (inputs.dim() - 2)) if channels > 1 else ()
        self.mean, self.std = (
            torch.tensor(values, dtype=inputs.dtype, device=inputs.device).reshape(axes)
            for values in (adversary.mean, adversary.std)
        )
        require_within(self._pixels(inputs), adversary.bounds, _ROUNDING)
        require_radius(adversary.norm, adversary.epsilon, adversary.bounds, inputs[0].numel())

    def __call__(self, network: nn.Module, scores: Scores, x: Tensor, labels: Tensor) -> Tensor:
        """Adversarial examples of a batch, standardised as it is; the network is left in training mode.

        Args:
            network: The network that is attacked.
            scores: Function from standardised inputs to the network's class scores.
            x: The batch, standardised.
            labels: The class of each input.
        """
        adversary = self.adversary
        pixels = self._pixels(x).clamp(*adversary.bounds)
        start = pixels
        if adversary.random_start:
            start = pixels + random_change(pixels, adversary.norm, adversary.epsilon)

        def gradient(at: Tensor) -> Tensor:
            return loss_gradient(lambda shown: scores(self._standardised(shown)), at, labels)

        network.eval()
        try:
            examples = climb(
                gradient, pixels, start, adversary.norm, adversary.epsilon, adversary.sizes, adversary.bounds
            )
        finally:
            network.train()
        return self._standardised(examples)

    def _pixels(self, x: Tensor) -> Tensor:
        return x * self.std + self.mean

    def _standardised(self, pixels: Tensor) -> Tensor:
        return (pixels - self.mean) / self.std
