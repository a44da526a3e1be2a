"""The observer of a discrimination experiment: how often two frames are told apart that lie a distance apart.

An observer is shown three frames, A, X and B, where X is A or B, and says which. Each frame is seen as a point with
standard normal noise in every direction of a perceptual space.
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np
import torch
from scipy.special import ndtr
from torch import Tensor

from assay.core.errors import AssayError, shown

Array = np.ndarray[Any, Any]
_SMALLEST = 1e-300  # of a probability, so that its logarithm is a number


@overload
def axb_probability(distance: float) -> float: ...
@overload
def axb_probability(distance: Array | Tensor) -> Array: ...
def axb_probability(distance: float | Array | Tensor) -> float | Array:
    """Probability of a correct answer in an AXB task on two frames that lie a perceptual distance d apart.

    p(d) = Φ(d/√2)·Φ(d/2) + Φ(−d/√2)·Φ(−d/2), where Φ is the standard normal distribution function: chance at d = 0, and
    1 for frames that are far apart.

    Args:
        distance: The distance d ≥ 0, in units of the standard deviation of the observer's noise; a number or an array.

    Example:
        >>> round(axb_probability(1.0), 10), round(axb_probability(2.0), 10)
        (0.5996561877, 0.7876514882)
        >>> axb_probability(np.array([0.0, 40.0])).tolist()
        [0.5, 1.0]

    Hénaff, Goris & Simoncelli 2019.
    """
    try:
        d = np.asarray(distance, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise AssayError(f"distance={shown(distance)} is no number: give one, or an array of numbers") from error
    if not (d >= 0).all():  # NaN is not
        raise AssayError(f"distance={shown(distance)} has values that are negative or NaN: a distance is at least 0")
    p = ndtr(d / np.sqrt(2)) * ndtr(d / 2) + ndtr(-d / np.sqrt(2)) * ndtr(-d / 2)
    return float(p) if p.ndim == 0 else np.asarray(p)


def axb_log_probabilities(distance: Tensor, lapse: Tensor | float = 0.0) -> tuple[Tensor, Tensor]:
    """Logarithms of the probabilities of a correct and of a wrong answer, with gradients.

    An observer who does not attend guesses: p = λ/2 + (1 − λ)·p(d), with p(d) as in `axb_probability`. The probability
    of a wrong answer is a sum of products of tails, so that it keeps its digits where it is small.

    Args:
        distance: Distances d.
        lapse: The share λ of trials that are guessed.
    """
    # Φ(x) = erfc(−x/√2)/2; torch's own Φ is 0 below −9.
    above, below = torch.special.erfc(-distance / 2) / 2, torch.special.erfc(distance / 2) / 2
    over, under = torch.special.erfc(-distance / 8**0.5) / 2, torch.special.erfc(distance / 8**0.5) / 2
    right = lapse / 2 + (1 - lapse) * (above * over + below * under)
    wrong = lapse / 2 + (1 - lapse) * (above * under + below * over)
    return right.log(), wrong.clamp_min(_SMALLEST).log()


def path(steps: Tensor, angles: Tensor, directions: Tensor) -> Tensor:
    """The trajectory that steps of these lengths make, each turned from the last by an angle.

    With unit vectors u: x_{t+1} = x_t + s_t·u_t and u_{t+1} = cos(c_t)·u_t + sin(c_t)·a_t, where a_t is the part of
    direction t that is orthogonal to u_t, made a unit vector. The first step goes along the first axis. Any trajectory
    of T points can be written so in T − 1 dimensions, up to a rotation.

    Args:
        steps: Lengths s of the T − 1 steps: … × (T − 1).
        angles: Turning angles c in radians: … × (T − 2).
        directions: Where the path turns to: … × (T − 2) × dimensions.

    Returns:
        The points, … × T × dimensions; the first is the origin.

    Example:
        >>> to_left = torch.tensor([[0.0, 1.0], [0.0, 1.0]])
        >>> path(torch.ones(3), torch.tensor([torch.pi / 2, 0.0]), to_left).round().tolist()
        [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]
    """
    ahead = torch.zeros_like(directions[..., 0, :])
    ahead[..., 0] = 1
    units = [ahead]
    along, aside = angles.cos().unsqueeze(-1), angles.sin().unsqueeze(-1)
    for t in range(angles.shape[-1]):
        towards = directions[..., t, :]
        towards = towards - (towards * ahead).sum(-1, keepdim=True) * ahead
        towards = towards * (towards.square().sum(-1, keepdim=True) + 1e-24).rsqrt()
        ahead = along[..., t, :] * ahead + aside[..., t, :] * towards
        units.append(ahead)
    moves = torch.stack(units, -2) * steps.unsqueeze(-1)
    return torch.cat([torch.zeros_like(moves[..., :1, :]), moves.cumsum(-2)], -2)


def distances(points: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Euclidean distances of pairs of points, with a gradient where two points coincide.

    Args:
        points: Points, … × T × dimensions.
        first: Index of one point of each pair.
        second: Index of the other.
    """
    apart = points[..., first, :] - points[..., second, :]
    return (apart.square().sum(-1) + 1e-18).sqrt()
