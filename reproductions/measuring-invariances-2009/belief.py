"""Convolutional deep belief networks of given settings: how well they reconstruct, and what their units combine."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.core.determinism import seeded
from assay.networks import ConvolutionalDeepBeliefNetwork
from assay.networks.learners.cdbn import ConvolutionalRBM

SWEPT = ("learning_rate", "sigma", "target_1", "target_2", "decay_1")
DECAY_2 = 1e-6
DIVERGED = {"diverged": True, "criterion": np.nan, "sparse": False}
SAMPLES = 16  # of detection units, for their mean
SPOT = 3  # side of the spot of one map below that a copy has most of its weight in
DIFFUSE = 1 / 6  # share of the weights that a diffuse unit is spread over, or more; Gaussian noise has a third


def belief_network(
    maps: tuple[int, int],
    sigma: float,
    target_1: float,
    target_2: float,
    decay_1: float,
    learning_rate: float = 0.0,
    seed: int = 0,
) -> ConvolutionalDeepBeliefNetwork:
    """A convolutional deep belief network of these settings; the learning rate is not its own."""
    return ConvolutionalDeepBeliefNetwork(
        maps=maps, sigma=sigma, sparsity=5.0, target=(target_1, target_2), weight_decay=(decay_1, DECAY_2), seed=seed
    )


@torch.no_grad()
def prepare(network: ConvolutionalDeepBeliefNetwork, pictures: Tensor) -> None:
    """Prepare every layer with the outputs of those below, as greedy learning does, without any learning."""
    for layer in network.stack:
        assert isinstance(layer, ConvolutionalRBM)
        layer.prepare(pictures)
        pictures = layer(pictures)


@torch.no_grad()
def reconstruction(network: ConvolutionalDeepBeliefNetwork, pictures: Tensor) -> dict[str, Any]:
    """Of each layer how much of the variance of its input its units tell, and how active they are."""
    found: dict[str, Any] = {"diverged": False}
    v, sparse = pictures, True
    for number, layer in enumerate(network.stack, start=1):
        assert isinstance(layer, ConvolutionalRBM)
        seen = layer.fitted(v)
        with seeded(0, seen.device):
            h = torch.stack([layer.sample(seen) for _ in range(SAMPLES)]).mean(0)  # about P(h = 1 | v)
        error = (seen - layer.reconstruct(h)).square().mean()
        active = float(layer.detection(v)[..., :-1].mean())
        found[f"explained_{number}"] = float(1 - error / seen.var())
        found[f"active_{number}"] = active
        sparse &= active <= 2 * float(layer.target)
        v = layer(v)
    found["criterion"] = (found["explained_1"] + found["explained_2"]) / 2
    return found | {"sparse": sparse}


class LogOdds(nn.Module):
    """A convolutional deep belief network whose layers respond with the log odds of their pooling units.

    Scores do not change under an increasing function of responses, but the probabilities themselves round to 1 in
    single precision: units then fire on more stimuli than they should, and their scores are lower.
    """

    layers = ("odds.0", "odds.1")

    def __init__(self, network: ConvolutionalDeepBeliefNetwork) -> None:
        super().__init__()
        self.network = network
        self.odds = nn.ModuleList(nn.Identity() for _ in network.stack)

    def forward(self, x: Tensor) -> Tensor:
        for layer, odds in zip(self.network.stack, self.odds, strict=True):
            response = odds(layer.log_odds(x))
            x = response.sigmoid()
        return x


@torch.no_grad()
def combinations(network: ConvolutionalDeepBeliefNetwork) -> dict[str, float]:
    """How the units of the second layer combine those of the first; the shares of the three kinds add up to 1.

    A unit is a copy if more than half of Σw² lies within 3×3 places of one map below; else it is diffuse if
    (Σw²)²/Σw⁴, the number of weights that its weight is spread over, is more than a sixth of all (Gaussian noise has a
    third); else it combines. ``maps_combined`` is the median over units of (Σe)²/Σe², with e the Σw² of each map below.
    """
    power = network.stack[1].get_parameter("weight").square().cpu()
    total = power.sum((1, 2, 3))
    inside = F.avg_pool2d(power, SPOT, 1) * SPOT**2
    copies = inside.amax((1, 2, 3)) > total / 2
    spread = total**2 / power.square().sum((1, 2, 3))
    diffuse = ~copies & (spread > DIFFUSE * power[0].numel())
    of_maps = power.sum((2, 3))
    effective = of_maps.sum(1) ** 2 / of_maps.square().sum(1)
    return {
        "copies": float(copies.double().mean()),
        "diffuse": float(diffuse.double().mean()),
        "combining": float((~copies & ~diffuse).double().mean()),
        "maps_combined": float(effective.median()),
    }


def on_border(filters: Tensor) -> float:
    """The share of filters n×H×W with more than half of Σw² in the outermost row or column on each side."""
    power = filters.square()
    inside = power[:, 1:-1, 1:-1].sum((1, 2))
    return float((inside < power.sum((1, 2)) / 2).double().mean())
