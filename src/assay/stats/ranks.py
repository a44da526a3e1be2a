"""Ranks of rows of numbers, and of resamples of them that are given as weights, without sorting again."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def ranks(values: Array) -> Array:
    """Ranks from 1 to n along the last axis, equal values sharing the mean of theirs (mid-ranks).

    One argsort, one scatter, and sharing only in rows that have equal values: `scipy.stats.rankdata` is several times
    slower.

    Example:
        >>> ranks(np.array([[0.3, 0.1, 0.2], [5.0, 7.0, 5.0]])).tolist()
        [[3.0, 1.0, 2.0], [1.5, 3.0, 1.5]]
    """
    values = np.asarray(values)
    rows = values.reshape(-1, values.shape[-1])
    ranked = np.empty(rows.shape)
    in_order = np.arange(1.0, rows.shape[1] + 1)
    for row, target in zip(rows, ranked, strict=True):
        order = np.argsort(row)
        ordered = row[order]
        begins = ordered[1:] != ordered[:-1]
        target[order] = in_order if begins.all() else _shared(begins)
    return ranked.reshape(values.shape)


def _shared(begins: Array) -> Array:
    """Mid-ranks of a sorted row, from where in it a new value begins."""
    first = np.flatnonzero(np.concatenate([[True], begins]))
    last = np.append(first[1:], len(begins) + 1)
    return np.repeat((first + last + 1) / 2, last - first)


class WeightedRanks:
    """Ranks of fixed rows in any number of resamples: the rows are sorted once, and each resample only adds up weights.

    Where entry e occurs w_e times, the entries of a group g of equal values have the mid-rank

    r_g = (weight up to and including g) − w_g/2 + ½,

    with w_g the weight of the group. Twice that is a whole number and is computed in whole numbers, so that ranks equal
    those of the list in which each entry is repeated w_e times, to the last bit.

    Args:
        rows: The rows to rank, rows × n.

    Example:
        >>> resampled = WeightedRanks(np.array([[0.3, 0.1, 0.2]])).doubled(np.array([2, 0, 1]))
        >>> (resampled / 2).tolist()      # of the list 0.3, 0.3, 0.2; the entry that does not occur is between
        [[2.5, 0.5, 1.0]]
    """

    def __init__(self, rows: Array) -> None:
        self._order = np.argsort(rows, axis=1)
        ordered = np.take_along_axis(rows, self._order, axis=1)
        same = ordered[:, 1:] == ordered[:, :-1]
        self._tied = [
            (row, *_groups(same[row])) for row in np.flatnonzero(same.any(axis=1))
        ]  # row, first and last place of each entry's group in sorted order

    def doubled(self, weights: Array) -> Array:
        """Twice the mid-ranks of every row where entry e occurs ``weights[e]`` times, as whole numbers: rows × n."""
        in_order = weights[self._order]
        upto = np.cumsum(in_order, axis=1)
        doubled_in_order = 2 * upto - in_order + 1
        for row, first, last in self._tied:
            end = upto[row, last]
            begin = upto[row, first] - in_order[row, first]
            doubled_in_order[row] = end + begin + 1
        doubled = np.empty_like(doubled_in_order)
        np.put_along_axis(doubled, self._order, doubled_in_order, axis=1)
        return doubled


def _groups(same: Array) -> tuple[Array, Array]:
    """First and last place of the group of equal values that each entry of a sorted row belongs to."""
    first = np.flatnonzero(np.concatenate([[True], ~same]))
    last = np.append(first[1:], len(same) + 1) - 1
    size = last - first + 1
    return np.repeat(first, size), np.repeat(last, size)


def doubled_ranks_of_whole_numbers(rows: Array, weights: Array) -> Array:
    """Twice the weighted mid-ranks of rows of whole numbers ≥ 0, such as sums of ranks: rows × n.

    The numbers and their places are sorted as one key, which takes a fraction of the time of an argsort.

    Args:
        rows: The rows to rank, rows × n, of whole numbers whose product with n is below 2⁶³.
        weights: How often each of the n entries occurs.

    Example:
        >>> doubled_ranks_of_whole_numbers(np.array([[7, 3, 7, 5]]), np.array([1, 1, 2, 1])).tolist()
        [[8, 2, 8, 4]]
    """
    n = rows.shape[1]
    shift = max(1, int(n - 1).bit_length())
    keys = (rows.astype(np.int64) << shift) | np.arange(n)
    keys.sort(axis=1)
    order = keys & ((1 << shift) - 1)
    ordered = keys >> shift
    in_order = weights[order]
    upto = np.cumsum(in_order, axis=1)
    before = upto - in_order
    begins = np.ones(rows.shape, dtype=bool)
    begins[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    if not begins.all():
        flat = np.flatnonzero(begins)
        size = np.diff(np.append(flat, begins.size))  # a row begins a group of its own
        before = np.repeat(before.ravel()[flat], size).reshape(rows.shape)
        upto = np.repeat(upto.ravel()[flat + size - 1], size).reshape(rows.shape)
    doubled = np.empty_like(upto)
    np.put_along_axis(doubled, order, before + upto + 1, axis=1)
    return doubled
