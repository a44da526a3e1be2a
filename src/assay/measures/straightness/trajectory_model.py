"""The model behind perceptual curvature: which trajectories are likely, and which answers they lead to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from assay.measures.straightness.discrimination import Discrimination
from assay.measures.straightness.observer import axb_log_probabilities, axb_probability, distances, path

# Prior medians and log standard deviations of: the typical step, how much steps vary, how much angles vary.
_STEP, _STEP_SPREAD, _ANGLE_SPREAD = (1.0, 1.0), (0.2, 0.7), (math.radians(15), 0.7)


@dataclass(frozen=True)
class Trajectories:
    """Trajectories that were drawn, and the lapses that go with them.

    Attributes:
        steps: Lengths of the steps, … × (T − 1).
        angles: Turning angles in radians, from 0 to π: … × (T − 2).
        points: The points, … × T × dimensions.
        lapse: The share of trials that are guessed, … × 1.
    """

    steps: Tensor
    angles: Tensor
    points: Tensor
    lapse: Tensor

    def of(self, observer: int) -> Trajectories:
        """Those of one observer, of draws × observers × chains."""
        return Trajectories(*(part[:, observer] for part in (self.steps, self.angles, self.points, self.lapse)))

    def pooled(self) -> Trajectories:
        """The draws of all chains together, of draws × chains."""
        return Trajectories(*(part.flatten(0, 1) for part in (self.steps, self.angles, self.points, self.lapse)))


class TrajectoryModel:
    """Standard normal variables z, and the trajectories, lapses and answers that follow from them.

    Args:
        observers: Answers on sequences of one length.
        lapse: The share of trials that are guessed; None where it is one of the variables.
    """

    def __init__(self, observers: Sequence[Discrimination], lapse: float | None) -> None:
        self.frames = observers[0].frames
        self.first, self.second = torch.triu_indices(self.frames, self.frames, 1)
        upper = (self.first.numpy(), self.second.numpy())
        self.correct, self.trials = (
            torch.from_numpy(np.stack([(m + m.T)[upper] for m in matrices]).astype(np.float64))[:, None]
            for matrices in ([seen.correct for seen in observers], [seen.trials for seen in observers])
        )
        self.lapse = lapse
        turns = self.frames - 2
        self.sizes = [5, self.frames - 1, turns, turns * (self.frames - 1)]  # typical values, steps, angles, directions

    def start(self) -> Tensor:
        """Where the fit begins: steps as long as neighbouring frames are apart, if all were alike; angles of 60°."""
        neighbours = self.second == self.first + 1
        correct, trials = self.correct[:, 0, neighbours].sum(1), self.trials[:, 0, neighbours].sum(1)
        grid = np.linspace(0.3, 3, 200)
        share = ((correct + 1) / (trials + 2)).numpy()  # never 0 or 1, whatever was shown
        step = torch.from_numpy(np.interp(share, axb_probability(grid), grid))
        z = torch.zeros(len(self.correct), sum(self.sizes), dtype=torch.float64)
        z[:, 0] = (step / _STEP[0]).log() / _STEP[1]
        z[:, 2] = torch.special.ndtri(torch.tensor(1 / 3, dtype=torch.float64))
        directions = torch.randn(self.sizes[3], generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        z[:, -self.sizes[3] :] = directions  # apart from 0, where they have no direction
        return z

    def trajectories(self, z: Tensor) -> Trajectories:
        """The trajectories and lapses that variables z, observers × samples × number, stand for."""
        typical, step, angle, direction = torch.split(z, self.sizes, -1)
        median, step_spread, angle_mean, angle_spread, lapsing = (t.unsqueeze(-1) for t in typical.unbind(-1))
        step_spread = _STEP_SPREAD[0] * (_STEP_SPREAD[1] * step_spread).exp()
        angle_spread = _ANGLE_SPREAD[0] * (_ANGLE_SPREAD[1] * angle_spread).exp()
        steps = _STEP[0] * (_STEP[1] * median + step_spread * step).exp()
        angles = math.pi * torch.special.ndtr(angle_mean) + angle_spread * angle
        directions = direction.reshape(*z.shape[:-1], self.frames - 2, self.frames - 1)
        # An angle beyond 0 or π is one within them, in the opposite direction.
        folded = math.pi - ((angles % (2 * math.pi)) - math.pi).abs()
        lapse = 0.5 * torch.special.ndtr(lapsing - 2) if self.lapse is None else torch.full_like(lapsing, self.lapse)
        return Trajectories(steps, folded, path(steps, angles, directions), lapse)

    def log_likelihood(self, z: Tensor) -> Tensor:
        """The logarithm of the binomial probability of the answers, less its constant: observers × samples."""
        drawn = self.trajectories(z)
        right, wrong = axb_log_probabilities(distances(drawn.points, self.first, self.second), drawn.lapse)
        return (self.correct * right + (self.trials - self.correct) * wrong).sum(-1)

    def log_density(self, z: Tensor) -> Tensor:
        """The logarithm of the posterior density of z, less its constant: observers × samples."""
        return self.log_likelihood(z) - 0.5 * z.square().sum(-1)
