"""Spearman's ρ under chance, exactly: how many of the n! orders of one row give each value of it, ties included."""

from __future__ import annotations

import functools
from math import exp, factorial
from typing import Any

import numpy as np
import scipy

from assay.stats.ranks import ranks

Array = np.ndarray[Any, Any]


def exact_spearman_p(x: Array, y: Array) -> float:
    """Two-sided p of Spearman's ρ of few pairs: the share of all n! orders of y in which |ρ| is as large or larger.

    Ranks, which equal values share, are doubled, so that everything is counted in whole numbers. The time doubles with
    every pair: 10 pairs take a tenth of a second.

    Example:
        >>> exact_spearman_p(np.arange(4), np.arange(4))      # 2 of 24 orders
        0.08333333333333333
    """
    first, second = _doubled(x), _doubled(y)
    sums, counts = _null(tuple(sorted(first)), tuple(sorted(second)))
    n, middle = len(first), sum(first) * sum(second)
    observed = abs(n * int(np.dot(first, second)) - middle)
    reached = counts[np.abs(n * sums - middle) >= observed].sum()
    return int(reached) / factorial(n)


def least_spearman_p(x: Array, y: Array) -> float:
    """Two-sided p of the most extreme ρ that the ranks of x and y can have: no p of theirs is smaller.

    Of n! orders, Π a_i!·Π b_j!/Π c_ij! give the largest ρ, where a_i and b_j are the numbers of equal values in x and
    in y, and c_ij those of both when x and y are sorted alike; likewise the smallest, when they are sorted contrarily.

    Example:
        >>> one_of_13 = np.arange(13) == 12
        >>> round(least_spearman_p(one_of_13, one_of_13) * 13, 9)      # the one may be anywhere
        1.0
    """
    first, second = np.sort(_doubled(x)), np.sort(_doubled(y))
    n, middle = len(first), int(first.sum()) * int(second.sum())
    ends = [second, second[::-1]]
    distances = [abs(n * int(first @ end) - middle) for end in ends]
    return sum(_share(first, end) for end, apart in zip(ends, distances, strict=True) if apart == max(distances))


def _share(first: Array, second: Array) -> float:
    """The share of all orders that give the same pairs."""
    tied = [np.unique(rows, axis=0, return_counts=True)[1] for rows in (first, second, np.stack([first, second], 1))]
    of_first, of_second, of_both = (float(scipy.special.gammaln(counts + 1).sum()) for counts in tied)
    return exp(of_first + of_second - of_both - float(scipy.special.gammaln(len(first) + 1)))


def _doubled(values: Array) -> Array:
    doubled: Array = np.rint(2 * ranks(np.asarray(values))).astype(np.int64)
    return doubled


@functools.lru_cache(maxsize=64)  # without ties, the same for all rows of one length
def _null(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[Array, Array]:
    """The values of Σ first_i·second_π(i) over all orders π, and the number of orders that give each."""
    n = len(first)
    ways_by_taken = {0: np.ones(1, dtype=np.int64)}  # by the set of those of the second that are taken, as bits
    for rank in first:
        after: dict[int, Array] = {}
        for taken, ways in ways_by_taken.items():
            for place in range(n):
                if taken >> place & 1:
                    continue
                shift = rank * second[place]
                now = taken | 1 << place
                total = after.get(now, np.zeros(0, dtype=np.int64))
                if len(total) < len(ways) + shift:
                    total = np.pad(total, (0, len(ways) + shift - len(total)))
                    after[now] = total
                total[shift : shift + len(ways)] += ways
        ways_by_taken = after
    counts = ways_by_taken[2**n - 1]
    sums = np.flatnonzero(counts)
    return sums, counts[sums]
