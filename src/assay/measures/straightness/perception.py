"""Perceptual curvature: how curved a sequence is to an observer, from what the observer could tell apart.

Hénaff, Goris & Simoncelli 2019.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch

from assay.core.errors import AssayError, shown
from assay.measures.straightness.discrimination import Discrimination, require_lapse
from assay.measures.straightness.hamiltonian import hamiltonian_draws, potential_scale_reduction
from assay.measures.straightness.observer import axb_log_probabilities, distances
from assay.measures.straightness.trajectory_model import Trajectories, TrajectoryModel
from assay.measures.straightness.variational import GaussianPosterior, maximise_bound
from assay.stats.bootstrap import percentile_interval

Array = np.ndarray[Any, Any]
_GAUSSIAN_DRAWS = 2000  # from which estimates and intervals are read where the Gaussian serves by itself
_CHAINS = 4
_SAMPLES = 8  # trajectories of each observer for each step of the variational fit
_FEWEST_DRAWS = 4  # of a chain: its halves need two each to vary
_AGREE = 1.05  # the largest R̂ of chains that agree


@dataclass(frozen=True, eq=False)
class PerceptualCurvature:
    """The perceptual curvature of one sequence, and the trajectory behind it.

    Attributes:
        curvature_deg: Posterior mean of the mean turning angle, in degrees.
        low: Lower end of its 95 % interval.
        high: Upper end of its 95 % interval.
        angles: One row per turning angle: ``frame`` (the middle one), ``angle_deg``, ``low``, ``high``.
        steps: One row per step: ``frame`` (its first), ``distance``, ``low``, ``high``.
        pairs: One row per pair of frames that was shown: ``first``, ``second``, ``correct``, ``trials``, ``share``, and
            the share that was ``predicted``.
        lapse: The share of trials that were guessed, as fitted or given.
        elbo: The evidence lower bound, in nats, at about a hundred points of the variational fit.
        settled: Whether the chains agree (R̂ ≤ 1.05) or, of a variational fit alone, whether the bound no longer rose at
            the end by more than it fluctuates; if not, ask for more ``draws`` or ``iterations``.
    """

    curvature_deg: float
    low: float
    high: float
    angles: pd.DataFrame
    steps: pd.DataFrame
    pairs: pd.DataFrame
    lapse: float
    elbo: Array
    settled: bool

    def __repr__(self) -> str:
        unsettled = "" if self.settled else ", not settled"
        return f"PerceptualCurvature({self.curvature_deg:.1f}°, {self.low:.1f}° to {self.high:.1f}°{unsettled})"


def perceptual_curvature(
    seen: Discrimination,
    *,
    lapse: float | None = None,
    draws: int = 300,
    iterations: int = 800,
    seed: int = 0,
) -> PerceptualCurvature:
    """Infer the curvature of a perceived sequence from which of its frames an observer could tell apart.

    See `perceptual_curvatures`, which takes several observers at once.

    Args:
        seen: The observer's answers.
        lapse: The share of trials that the observer guesses; None to infer it.
        draws: Number of draws of each of four Markov chains that refine the variational fit; 0 for the fit alone.
        iterations: Number of steps of the variational fit.
        seed: Seed of the random draws.

    Example:
        ```python
        seen = assay.simulate_observer(assay.random_trajectory(40), trials=200)
        assay.perceptual_curvature(seen)        # 40 degrees lie in its interval
        ```
    """
    if not isinstance(seen, Discrimination):
        raise AssayError(
            f"seen={shown(seen)} is no Discrimination: give Discrimination(correct, trials), or for a table of answers "
            "Discrimination.from_table(table)"
        )
    return perceptual_curvatures([seen], lapse=lapse, draws=draws, iterations=iterations, seed=seed)[0]


def perceptual_curvatures(
    observers: Sequence[Discrimination],
    *,
    lapse: float | None = None,
    draws: int = 300,
    iterations: int = 800,
    seed: int = 0,
) -> list[PerceptualCurvature]:
    """Infer the perceptual curvature of several sequences or observers, side by side.

    A trajectory is T − 1 step lengths, T − 2 turning angles and the directions of the turns (see `observer.path`).
    Steps vary (log-normally) about a typical step, angles (normally) about a typical angle, directions are isotropic,
    and the typical values have priors of their own, that of the angle flat from 0 to 180 degrees. The answers are
    binomial, with `axb_probability` of the distances, and lapses.

    The posterior is first approximated by a Gaussian with a full covariance, fitted by maximising the evidence lower
    bound (see `maximise_bound`). A Gaussian is too narrow where directions of turns are uncertain, and leans towards
    straight trajectories. So by default it serves as the start and the metric of Hamiltonian Monte Carlo, from whose
    draws estimates and intervals are read. Curvature is not read off the one trajectory that fits best: noise curves
    that. All plausible trajectories count.

    Args:
        observers: Answers on sequences of one length, with any pairs of frames.
        lapse: The share of trials that are guessed; None to infer it for each observer.
        draws: Number of draws of each of four Markov chains for each observer; 0 for the variational fit alone, whose
            intervals are too narrow.
        iterations: Number of steps of the variational fit.
        seed: Seed of the random draws.

    Hénaff, Goris & Simoncelli 2019.
    """
    if not isinstance(observers, Sequence) or not all(isinstance(seen, Discrimination) for seen in observers):
        raise AssayError(f"observers={shown(observers)} does not fit: give a list, each of which is a Discrimination")
    lengths = sorted({seen.frames for seen in observers})
    if len(lengths) != 1:
        what = f"saw sequences of {lengths[0]} and {lengths[-1]} frames" if lengths else "are none"
        raise AssayError(f"observers {what}: give one or more who saw sequences of one length")
    if lapse is not None:
        require_lapse(lapse)
    for name, value, least in (("iterations", iterations, 1), ("draws", draws, 0)):
        if not isinstance(value, int) or value < least:
            raise AssayError(f"{name}={shown(value)} must be a whole number, at least {least}")
    if 0 < draws < _FEWEST_DRAWS:
        raise AssayError(f"draws={draws} are too few to compare chains: give {_FEWEST_DRAWS} or more, or 0 for none")
    model = TrajectoryModel(observers, lapse)
    generator = torch.Generator().manual_seed(seed)
    gaussian = GaussianPosterior(model.start(), generator)
    bounds = maximise_bound(model, gaussian, iterations, _SAMPLES)
    if draws:
        mean, factor = gaussian.mean.detach(), gaussian.factor().detach()
        z = hamiltonian_draws(model.log_density, mean, factor, chains=_CHAINS, draws=draws, generator=generator)
    else:
        z = gaussian.draw(_GAUSSIAN_DRAWS).detach()[None].transpose(0, 2)  # as those of one chain
    every = max(1, iterations // 100)
    with torch.no_grad():
        drawn = model.trajectories(z)
        return [_result(seen, model, drawn.of(i), bounds[:, i], every) for i, seen in enumerate(observers)]


def _result(
    seen: Discrimination, model: TrajectoryModel, drawn: Trajectories, bounds: Array, every: int
) -> PerceptualCurvature:
    """Estimates and intervals of one observer, from draws × chains of trajectories."""
    settled = _settled(bounds)
    if drawn.angles.shape[1] > 1:
        settled = potential_scale_reduction(drawn.angles.mean(-1).T) <= _AGREE
    drawn = drawn.pooled()
    angles = np.degrees(drawn.angles.numpy())
    mean, low, high = _read(angles.mean(1))
    right, _ = axb_log_probabilities(distances(drawn.points, model.first, model.second), drawn.lapse)
    predicted = np.zeros((seen.frames, seen.frames))
    predicted[model.first, model.second] = right.exp().mean(0)
    pairs = seen.table()
    return PerceptualCurvature(
        curvature_deg=float(mean),
        low=float(low),
        high=float(high),
        angles=_rows("angle_deg", angles, first=1),
        steps=_rows("distance", drawn.steps.numpy(), first=0),
        pairs=pairs.assign(predicted=predicted[pairs["first"], pairs["second"]]),
        lapse=float(drawn.lapse.mean()),
        elbo=bounds[::every],
        settled=settled,
    )


def _rows(value: str, draws: Array, first: int) -> pd.DataFrame:
    mean, low, high = _read(draws)
    return pd.DataFrame({"frame": np.arange(len(mean)) + first, value: mean, "low": low, "high": high})


def _read(draws: Array) -> tuple[Any, Any, Any]:
    """Mean and 95 % interval over draws."""
    return draws.mean(axis=0), *percentile_interval(draws)


def _settled(bounds: Array) -> bool:
    """Whether the last tenth of the bound is no higher than the tenth before by more than its fluctuation allows."""
    tenth = len(bounds) // 10
    if tenth < 2:
        return False
    before, last = bounds[-2 * tenth : -tenth], bounds[-tenth:]
    error = math.sqrt((before.var(ddof=1) + last.var(ddof=1)) / tenth)
    return bool(last.mean() - before.mean() < max(3 * error, 0.5))
