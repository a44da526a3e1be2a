"""Values that are equal but for rounding, made equal again, so that ranks give them one rank.

In exact arithmetic many numbers are ties: the dissimilarities of one-hot codes, or means of ratings in steps of 0.1.
Sums in floating point depend on their order, and so break ties at random, in the last digits. Where it is known how far
rounding can move each value, ties can be told from values that differ: values that rounding could have made of one lie
together, and apart from the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

Array = np.ndarray[Any, Any]
UNIT = 2.0**-53  # half of the distance from 1 to the next float64: the largest relative error of one operation


def restore_ties(values: Tensor, error: float | Tensor) -> Tensor:
    """Give values that differ by no more than rounding one value, and leave all others as they are.

    Sorted, values within one another's errors form runs. A run becomes one value (its median, or 0 where that is in it)
    if one number is within the error of all of its values. A longer run, as values of continuous data form where they
    are many, is left alone: there is no telling which of them are ties.

    Args:
        values: The values, in a row.
        error: How far rounding may have moved each value: a number, or one for each.

    Example:
        >>> restore_ties(torch.tensor([0.3, 0.1 + 0.2, 0.5], dtype=torch.float64), 1e-15).unique().tolist()
        [0.3, 0.5]
        >>> restore_ties(torch.tensor([0.0, 1.0, 2.0, 3.0]), 0.6).tolist()      # a run, but no number is near to all
        [0.0, 1.0, 2.0, 3.0]
    """
    if len(values) < 2:
        return values
    return _within_each(values, error) if isinstance(error, Tensor) else _within_one(values, error)


def mean_with_ties(rows: Array) -> Array:
    """The mean of rows of numbers, entry by entry, in which equal means are equal; errors as in `sums_with_ties`.

    Example:
        >>> ratings = np.array([[0.1, 0.3], [0.2, 0.2], [0.3, 0.1]])
        >>> ratings.mean(axis=0).tolist(), mean_with_ties(ratings).tolist()
        ([0.20000000000000004, 0.19999999999999998], [0.19999999999999998, 0.19999999999999998])
    """
    return _with_ties(rows.mean(axis=0), np.abs(rows).mean(axis=0), len(rows))


def sums_with_ties(weights: Array, rows: Array) -> Array:
    """Weighted sums of rows of numbers, sums × entries, in each of which equal sums are equal.

    A sum of n products has an error of at most n·u·Σ |w·x| with u = 2⁻⁵³, and the numbers themselves, decimal fractions
    or means of such, of a few u; 2(n + 1)·u·Σ |w·x| is allowed.

    Args:
        weights: How often each row is in each sum, sums × rows.
        rows: The rows of numbers, rows × entries.
    """
    sizes = np.abs(weights) @ np.abs(rows)
    return np.stack([_with_ties(*each, len(rows)) for each in zip(weights @ rows, sizes, strict=True)])


def _with_ties(sums: Array, sizes: Array, terms: int) -> Array:
    errors = torch.from_numpy(2 * (terms + 1) * UNIT * sizes)
    return np.asarray(restore_ties(torch.from_numpy(sums), errors))


def _within_one(values: Tensor, error: float) -> Tensor:
    """Restore ties of values with the same error: sorted without their places, which takes a third of the time."""
    ordered = values.sort().values if values.device.type != "cpu" else torch.from_numpy(np.sort(values.numpy()))
    first, last = _runs(ordered[1:] - ordered[:-1] > 2 * error)
    low, high = ordered[first], ordered[last]
    near = (high > low) & (high - low <= 2 * error)
    if not bool(near.any()):
        return values
    low, high, first, last = low[near], high[near], first[near], last[near]
    run = (torch.searchsorted(low, values, right=True) - 1).clamp_(min=0)
    inside = (values >= low[run]) & (values <= high[run])
    return torch.where(inside, _middle(ordered, first, last)[run], values)


def _within_each(values: Tensor, error: Tensor) -> Tensor:
    """Restore ties of values with errors of their own."""
    ordered, order = values.sort()
    least, most = ordered - error[order], ordered + error[order]
    begins = least[1:] > most[:-1]
    first, last = _runs(begins)
    run = torch.nn.functional.pad(begins.cumsum(0), (1, 0))
    low = torch.full_like(ordered[first], -torch.inf).scatter_reduce_(0, run, least, "amax")
    high = torch.full_like(low, torch.inf).scatter_reduce_(0, run, most, "amin")
    middle = _middle(ordered, first, last)
    restored = torch.empty_like(values)
    restored[order] = torch.where((low <= high)[run], middle[run], ordered)
    return restored


def _runs(begins: Tensor) -> tuple[Tensor, Tensor]:
    """The first and the last place of each run of a sorted row, from whether each place but the first begins one."""
    starts = torch.nonzero(begins).flatten()
    zero, end = starts.new_zeros(1), starts.new_full((1,), len(begins))
    return torch.cat([zero, starts + 1]), torch.cat([starts, end])


def _middle(ordered: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """The value of each run: 0 where it holds 0, else its lower median, so that a run of one value keeps it."""
    median = ordered[(first + last) // 2]
    return torch.where((ordered[first] <= 0) & (ordered[last] >= 0), torch.zeros_like(median), median)
