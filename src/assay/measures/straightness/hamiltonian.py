"""Hamiltonian Monte Carlo: draws from a posterior, with a Gaussian approximation of it as the metric."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from assay.core.progress import report

_LEAPS = 10  # of the leapfrog integrator, for each draw
_ACCEPTED = 0.75  # the share of proposals to accept, to which the step size is adapted


def hamiltonian_draws(
    log_density: Callable[[Tensor], Tensor],
    mean: Tensor,
    factor: Tensor,
    *,
    chains: int,
    draws: int,
    generator: torch.Generator,
) -> Tensor:
    """Draw from several posteriors side by side, in several chains each.

    With z = m + L·w, the chains move in w, in which the posterior has about the spread 1 in every direction. Each
    begins at a draw of the Gaussian. The step size of each posterior is adapted in as many rounds as are then kept, and
    varies at random by a fifth, so that no orbit closes.

    Args:
        log_density: The logarithm of the density at z (posteriors × chains × variables), up to a constant, with a
            gradient: posteriors × chains.
        mean: Means m of the Gaussians: posteriors × variables.
        factor: Triangular factors L of their covariances: posteriors × variables × variables.
        chains: Number of chains of each posterior.
        draws: Number of draws that are kept of each chain.
        generator: Source of the random draws.

    Returns:
        Draws z: draws × posteriors × chains × variables.

    Neal 2011.
    """

    def at(w: Tensor) -> Tensor:
        return mean[:, None] + w @ factor.mT

    def density_and_gradient(w: Tensor) -> tuple[Tensor, Tensor]:
        w = w.detach().requires_grad_()
        value = log_density(at(w))
        (gradient,) = torch.autograd.grad(value.sum(), w)
        return value.detach(), gradient

    def normal() -> Tensor:
        shape = (len(mean), chains, mean.shape[1])
        return torch.randn(shape, generator=generator, dtype=mean.dtype)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator, dtype=mean.dtype)

    w = normal()
    density, gradient = density_and_gradient(w)
    step = torch.full((len(mean), 1, 1), 0.1, dtype=mean.dtype)
    kept = []
    for i in range(2 * draws):
        momentum = normal()
        energy = density - 0.5 * momentum.square().sum(-1)
        place, slope, value = w, gradient, density
        size = step * (0.8 + 0.4 * uniform(len(mean), 1, 1))
        momentum = momentum + 0.5 * size * slope
        for leap in range(_LEAPS):
            place = place + size * momentum
            value, slope = density_and_gradient(place)
            momentum = momentum + (size if leap < _LEAPS - 1 else 0.5 * size) * slope
        gain = value - 0.5 * momentum.square().sum(-1) - energy
        chance = gain.clamp_max(0).exp().nan_to_num(0.0)  # an orbit that leaves the numbers is not accepted
        accepted = uniform(*chance.shape) < chance
        w = torch.where(accepted[..., None], place, w)
        gradient = torch.where(accepted[..., None], slope, gradient)
        density = torch.where(accepted, value, density)
        if i < draws:
            step = step * ((chance.mean(1) - _ACCEPTED) * 0.1).exp()[:, None, None]
        else:
            kept.append(at(w))
        report("posterior: draws", i + 1, 2 * draws)
    return torch.stack(kept)


def potential_scale_reduction(chains: Tensor) -> float:
    """R̂: how far chains disagree, relative to how far each varies; 1 where they agree.

    R̂ = √(((n − 1)/n·W + B)/W), with W the mean variance within chains, and B the variance of their means. Each chain is
    cut in two, so that a drift counts too.

    Args:
        chains: Draws of one number, chains × draws.

    Example:
        >>> drawn = torch.randn(4, 1000, generator=torch.Generator().manual_seed(0))
        >>> apart = drawn + 3 * torch.eye(4)[:, :1]
        >>> round(potential_scale_reduction(drawn), 1), round(potential_scale_reduction(apart), 1)
        (1.0, 1.7)

    Gelman & Rubin 1992.
    """
    half = chains.shape[1] // 2
    halves = torch.cat([chains[:, :half], chains[:, -half:]])
    within = halves.var(1).mean()
    between = halves.mean(1).var()
    return float((((half - 1) / half * within + between) / within).sqrt())
