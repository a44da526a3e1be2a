"""What an observer answered in a discrimination experiment, and observers that are simulated."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from assay.core.errors import AssayError, shown
from assay.measures.straightness.observer import axb_probability, path

Array = np.ndarray[Any, Any]
_MOST = 1e12  # trials of a pair


@dataclass(frozen=True, eq=False)
class Discrimination:
    """How often an observer told two frames of one sequence apart, for each pair of frames.

    Args:
        correct: Number of correct answers for each pair of frames, T×T. What stands above and below the diagonal is
            added: frames shown in either order count for one pair. The diagonal must be 0.
        trials: Number of trials for each pair, T×T; 0 for pairs that were not shown.

    Example:
        >>> seen = Discrimination(np.array([[0, 30, 45], [0, 0, 28], [0, 0, 0]]), np.triu(np.full((3, 3), 50), 1))
        >>> seen.frames, seen.table().correct.tolist()
        (3, [30, 45, 28])
    """

    correct: Array
    trials: Array

    def __post_init__(self) -> None:
        for name in ("correct", "trials"):
            object.__setattr__(self, name, _counts(getattr(self, name), name))
        if self.correct.shape != self.trials.shape:
            raise AssayError(f"correct is {self.correct.shape} and trials {self.trials.shape}: give counts of the same")
        if len(self.trials) < 3:
            raise AssayError(f"correct is of {len(self.trials)} frames: curvature needs at least 3")
        above = np.argwhere(self.correct > self.trials)
        if len(above):
            i, j = above[0]
            raise AssayError(
                f"correct[{i}, {j}]={self.correct[i, j]:.0f} is above trials[{i}, {j}]={self.trials[i, j]:.0f}: "
                "of n trials at most n are correct"
            )
        if np.diagonal(self.trials).any():
            frame = int(np.flatnonzero(np.diagonal(self.trials))[0])
            raise AssayError(f"trials has a frame, {frame}, that was to be told from itself: leave such trials out")
        unseen = [t for t in range(self.frames) if not self.trials[t].any() and not self.trials[:, t].any()]
        if unseen:
            raise AssayError(f"trials has none of frame {unseen[0]}: leave the frame out, or show it")

    @classmethod
    def from_table(cls, table: pd.DataFrame, frames: Sequence[Hashable] | None = None) -> Discrimination:
        """Count the answers in a table with one row for each trial, or with one row for each pair of frames.

        Args:
            table: The two frames of a trial in the columns ``first`` and ``second``, in either order, and in
                ``correct`` whether the answer was correct (1 or 0). With a column ``trials``, each row is of so many
                trials and ``correct`` counts the correct ones, as in `table`.
            frames: The frames in the order of the sequence; by default the numbers that occur, from the smallest.
                Frames that have names must be given.

        Example:
            >>> answers = [(1, 2, 1), (1, 3, 1), (3, 2, 0), (2, 3, 1)]
            >>> seen = Discrimination.from_table(pd.DataFrame(answers, columns=["first", "second", "correct"]))
            >>> seen.table()[["first", "second", "correct", "trials"]].values.tolist()
            [[0, 1, 1, 1], [0, 2, 1, 1], [1, 2, 1, 2]]
        """
        if not isinstance(table, pd.DataFrame):
            raise AssayError(f"table={shown(table)} is no table: give pandas.read_csv(file)")
        if missing := [name for name in ("first", "second", "correct") if name not in table]:
            raise AssayError(
                f"the table has no column {missing[0]!r}, but {', '.join(map(repr, table.columns))}: "
                "rename its columns to 'first', 'second' and 'correct'"
            )
        pairs = table[["first", "second"]]
        if frames is None:
            if not all(pd.api.types.is_numeric_dtype(pairs[name]) for name in pairs) or pairs.isna().any(axis=None):
                raise AssayError("the table's frames are no numbers: give their names in order as frames=")
            frames = np.unique(pairs.to_numpy()).tolist()
        places = {frame: place for place, frame in enumerate(frames)}
        if unknown := [frame for frame in pairs.to_numpy().ravel().tolist() if frame not in places]:
            raise AssayError(f"the table has the frame {shown(unknown[0])}, which is not among frames={shown(frames)}")
        if "trials" not in table and not table["correct"].isin([0, 1]).all():
            raise AssayError("the table's 'correct' is not 1 or 0 in every trial: give a column 'trials' with counts")
        at = tuple(pairs[name].map(places).to_numpy() for name in pairs)
        correct, trials = np.zeros((2, len(places), len(places)))
        np.add.at(correct, at, table["correct"].to_numpy(dtype=np.float64))
        np.add.at(trials, at, table["trials"].to_numpy(dtype=np.float64) if "trials" in table else 1.0)
        return cls(correct, trials)

    @property
    def frames(self) -> int:
        """Number of frames of the sequence."""
        return len(self.trials)

    def table(self) -> pd.DataFrame:
        """One row per pair of frames that was shown: ``first``, ``second``, ``correct``, ``trials``, ``share``."""
        first, second = np.triu_indices(self.frames, 1)
        correct = self.correct[first, second] + self.correct[second, first]
        trials = self.trials[first, second] + self.trials[second, first]
        table = pd.DataFrame({"first": first, "second": second, "correct": correct, "trials": trials})
        table = table[table["trials"] > 0].reset_index(drop=True)
        return table.assign(share=table["correct"] / table["trials"])


def simulate_observer(
    trajectory: Array | Tensor, trials: int = 100, lapse: float = 0.0, seed: int = 0
) -> Discrimination:
    """Simulate an observer who sees the frames of a sequence as the points of a trajectory.

    The number of correct answers on frames i and j is binomial, with probability λ/2 + (1 − λ)·p(‖x_i − x_j‖) (see
    `axb_probability`).

    Args:
        trajectory: The points x, T × dimensions, in units of the standard deviation of the observer's noise.
        trials: Number of trials for each pair of frames.
        lapse: The share λ of trials that the observer guesses.
        seed: Seed of the random answers.

    Example:
        >>> seen = simulate_observer(np.array([[0.0], [1.0], [2.0], [3.0]]), trials=100_000)
        >>> [round(share, 2) for share in seen.table().share]       # p(1), p(2), p(3), p(1), p(2), p(1)
        [0.6, 0.79, 0.92, 0.6, 0.79, 0.6]
    """
    points = np.asarray(trajectory, dtype=np.float64)
    if points.ndim != 2 or len(points) < 3 or not np.isfinite(points).all():
        raise AssayError(f"trajectory of shape {points.shape} must be 3 or more finite points, T × dimensions")
    if not isinstance(trials, int) or trials < 1:
        raise AssayError(f"trials={shown(trials)} must be a whole number, at least 1")
    require_lapse(lapse)
    first, second = np.triu_indices(len(points), 1)
    apart = np.linalg.norm(points[first] - points[second], axis=1)
    p = lapse / 2 + (1 - lapse) * axb_probability(apart)
    correct, shown_pairs = np.zeros((2, len(points), len(points)))
    correct[first, second] = np.random.default_rng(seed).binomial(trials, p)
    shown_pairs[first, second] = trials
    return Discrimination(correct, shown_pairs)


def random_trajectory(
    curvature_deg: float, frames: int = 11, step: float = 1.0, *, spread_deg: float = 0.0, seed: int = 0
) -> Array:
    """Make a trajectory of known curvature that turns in random directions, in as many dimensions as it may need.

    Args:
        curvature_deg: The mean of its turning angles, between 0 and 180 degrees.
        frames: Number of points.
        step: Geometric mean of the lengths of its steps; they vary by about 20 %.
        spread_deg: Standard deviation of the turning angles before they are moved to their mean; angles that this
            would take beyond 0 or 180 degrees stay nearer to the mean.
        seed: Seed of the random directions, steps and angles.

    Example:
        >>> from assay import curvature
        >>> round(curvature(random_trajectory(40, frames=6, spread_deg=10)), 6)
        40.0
    """
    if not 0 <= curvature_deg <= 180:
        raise AssayError(f"curvature_deg={shown(curvature_deg)} must be between 0 and 180")
    if frames < 3:
        raise AssayError(f"frames={frames}: curvature needs at least 3")
    if not 0 < step < np.inf:
        raise AssayError(f"step={shown(step)} must be a positive length")
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=frames - 2)
    noise -= noise.mean()
    room = min(curvature_deg, 180 - curvature_deg)  # on the nearer side
    largest = np.abs(noise).max()
    scale = min(spread_deg, room / largest) if largest else 0.0
    angles = np.radians(np.clip(curvature_deg + scale * noise, 0, 180))
    steps = step * np.exp(0.2 * rng.normal(size=frames - 1))
    directions = rng.normal(size=(frames - 2, frames - 1))
    points: Array = path(*map(torch.from_numpy, (steps, angles, directions))).numpy()
    return points


def require_lapse(lapse: float) -> None:
    """Refuse a lapse rate that is not a share below 1."""
    if not isinstance(lapse, (int, float)) or not 0 <= lapse < 1:
        raise AssayError(f"lapse={shown(lapse)} must be a share of trials, at least 0 and below 1")


def _counts(values: Any, name: str) -> Array:
    """A square matrix of whole numbers, none of them negative."""
    try:
        counts = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise AssayError(f"{name}={shown(values)} holds no numbers: give counts, frames × frames") from error
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1]:
        raise AssayError(f"{name} of shape {counts.shape} must be frames × frames")
    if not np.isfinite(counts).all():
        raise AssayError(f"{name} has NaN or infinite counts: give 0 for pairs that were not shown")
    if counts.size and counts.max() > _MOST:
        raise AssayError(f"{name} has the count {counts.max():g}: give how often, at most {_MOST:g} times")
    if (counts < 0).any() or (counts != np.rint(counts)).any():
        raise AssayError(f"{name} has counts that are negative or no whole numbers: give how often, not which share")
    counts = counts.astype(np.int64)
    counts.setflags(write=False)
    return counts
