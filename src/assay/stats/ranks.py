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
        count, n = rows.shape
        self._order = np.argsort(rows, axis=1)
        ordered = np.take_along_axis(rows, self._order, axis=1)
        # Where in the sums of all rows, each from 0 on, the weight before and up to the group of each entry is.
        self._before, self._upto = np.empty((2, count, n), dtype=np.intp)
        self._tied = False
        for row, order in enumerate(self._order):
            begins = np.concatenate([[True], ordered[row, 1:] != ordered[row, :-1]])
            first = np.flatnonzero(begins)
            size = np.diff(np.append(first, n))
            self._before[row, order] = np.repeat(first, size) + row * (n + 1)
            self._upto[row, order] = np.repeat(first + size, size) + row * (n + 1)
            self._tied |= len(first) < n

    def doubled(self, weights: Array, entries: Array | None = None) -> Array:
        """Twice the mid-ranks in the resample in which entry e occurs ``weights[e]`` times, as whole numbers.

        Args:
            weights: How often each of the n entries occurs.
            entries: The entries whose ranks are wanted, by number; by default all.

        Returns:
            Rows × entries.
        """
        sums = np.zeros((len(self._order), self._order.shape[1] + 1), dtype=weights.dtype)
        np.cumsum(weights.take(self._order), axis=1, out=sums[:, 1:])
        upto = sums.ravel().take(self._upto if entries is None else self._upto.take(entries, axis=1))
        if not self._tied:
            return np.asarray(2 * upto - (weights if entries is None else weights[entries]) + 1)
        before = sums.ravel().take(self._before if entries is None else self._before.take(entries, axis=1))
        return np.asarray(before + upto + 1)


def doubled_ranks_of_whole_numbers(rows: Array, weights: Array) -> Array:
    """Twice the weighted mid-ranks of rows of whole numbers ≥ 0, such as sums of ranks: rows × n.

    The numbers and their places are sorted as one key, which takes a fraction of the time of an argsort.

    Args:
        rows: The rows to rank, rows × n, of whole numbers whose product with n is below 2⁶².
        weights: How often each of the n entries occurs.

    Example:
        >>> doubled_ranks_of_whole_numbers(np.array([[7, 3, 7, 5]]), np.array([1, 1, 2, 1])).tolist()
        [[8, 2, 8, 4]]
    """
    count, n = rows.shape
    shift = max(1, int(n - 1).bit_length())
    small = int(rows.max(initial=0)).bit_length() + shift < 32
    keys: Array = rows.astype(np.int32 if small else np.int64)  # keys of half the size are sorted twice as fast
    keys <<= shift
    keys |= np.arange(n, dtype=keys.dtype)
    keys.sort(axis=1)
    order = (keys & ((1 << shift) - 1)).astype(np.intp)
    keys >>= shift
    sums = np.zeros((count, n + 1), dtype=weights.dtype)
    np.cumsum(weights.take(order), axis=1, out=sums[:, 1:])
    in_order = sums[:, 1:] + sums[:, :-1]
    in_order += 1
    like_the_last = np.zeros((count, n), dtype=bool)  # never the first of a row
    np.equal(keys[:, 1:], keys[:, :-1], out=like_the_last[:, 1:])
    _share(in_order.ravel(), np.flatnonzero(like_the_last), sums.ravel(), n)
    doubled = np.empty(count * n, dtype=weights.dtype)
    order += n * np.arange(count)[:, None]
    doubled[order.ravel()] = in_order.ravel()
    return doubled.reshape(count, n)


def _share(doubled: Array, tied: Array, sums: Array, n: int) -> None:
    """Give the entries of each group of equal values the doubled rank of the group.

    Args:
        doubled: Doubled ranks of rows of n in sorted order, one row after the other, which are changed.
        tied: The places in them whose value is that of the place before.
        sums: Weights added up in each row, from 0 on, so that a row has n + 1 of them.
        n: Length of a row.
    """
    if not len(tied):
        return
    opening = np.flatnonzero(np.diff(tied, prepend=-2) > 1)
    first = tied[opening] - 1
    size = np.diff(np.append(opening, len(tied))) + 1
    start = first + first // n
    members = np.arange(size.sum()) + np.repeat(first - np.cumsum(size) + size, size)
    doubled[members] = np.repeat(sums[start] + sums[start + size] + 1, size)
