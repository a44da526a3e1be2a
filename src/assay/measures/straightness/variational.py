"""Variational inference: a Gaussian, fitted to the posterior of a model by the evidence lower bound."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.core.progress import report
from assay.measures.straightness.trajectory_model import TrajectoryModel

_LOWEST_RATE = 0.02  # of learning at the end, as a share of that at the beginning


class GaussianPosterior:
    """A Gaussian over z for each observer, with mean m and covariance L·Lᵀ.

    Args:
        mean: Where the means begin, observers × number of variables.
        generator: Source of the random draws.
    """

    def __init__(self, mean: Tensor, generator: torch.Generator) -> None:
        count = mean.shape[1]
        self.mean = mean.clone().requires_grad_()
        self.log_scale = torch.full_like(mean, -1.5).requires_grad_()
        self.below = mean.new_zeros(len(mean), count, count).requires_grad_()
        self.generator = generator

    def factor(self) -> Tensor:
        """The triangular factors L of the covariances."""
        return self.below.tril(-1) + torch.diag_embed(self.log_scale.exp())

    def draw(self, samples: int) -> Tensor:
        """Draws in pairs that mirror each other about the mean, whose noise partly cancels: observers × samples × z."""
        shape = (len(self.mean), (samples + 1) // 2, self.mean.shape[1])
        noise = torch.randn(shape, generator=self.generator, dtype=self.mean.dtype)
        noise = torch.cat([noise, -noise], 1)[:, :samples]
        return self.mean[:, None] + noise @ self.factor().mT

    def divergence(self) -> Tensor:
        """KL(q ‖ N(0, 1)) = ½(‖m‖² + ‖L‖² − K) − Σ log L_kk of each observer."""
        spread = self.factor().square().sum((1, 2)) - self.mean.shape[1]
        return 0.5 * (self.mean.square().sum(1) + spread) - self.log_scale.sum(1)


def maximise_bound(
    model: TrajectoryModel, posterior: GaussianPosterior, iterations: int, samples: int
) -> np.ndarray[Any, Any]:
    """Maximise the evidence lower bound E_q[log p(answers | z)] − KL(q ‖ prior) of all observers by Adam.

    Args:
        model: The model of the answers.
        posterior: The Gaussians q, which are moved.
        iterations: Number of steps.
        samples: Number of draws of each observer for each step.

    Returns:
        The bound at every step, in nats: iterations × observers.
    """
    groups = [
        {"params": [posterior.mean, posterior.log_scale], "lr": 0.03},
        {"params": [posterior.below], "lr": 0.005},  # there are many: together they move as far
    ]
    optimiser = torch.optim.Adam(groups)
    decay = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda i: _LOWEST_RATE + (1 - _LOWEST_RATE) * (1 + math.cos(math.pi * i / iterations)) / 2
    )
    bounds = np.zeros((iterations, len(posterior.mean)))
    for i in range(iterations):
        optimiser.zero_grad()
        bound = model.log_likelihood(posterior.draw(samples)).mean(1) - posterior.divergence()
        torch.autograd.backward(-bound.sum())
        optimiser.step()
        decay.step()
        bounds[i] = bound.detach().numpy()
        report("perceptual curvature: iterations", i + 1, iterations)
    return bounds
