"""Counts of ordered pairs of networks in cells of hyper-parameters, and the scores that follow from them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise

import numpy as np

from assay.studies.statistics.grid import Array

CHUNK = 4_000_000  # pairs held at once
FEW = 16  # measures that are counted one by one
TABULATED = 1 << 20  # pairs of a cell up to which n·log₂ n is looked up: 8 MB
COMPARED = 1 << 18  # values compared with one network's at once: as many as a processor's cache holds


class PairsOnce:
    """All pairs of networks, each in its cell by one set of hyper-parameters, to score many measures quickly.

    Pairs are counted in whole numbers, so that scores are exactly those of a resample that holds every network once.
    Networks are in the order of their settings, and of their gaps within a setting: of those with one setting, the ones
    with narrower gaps than some network's come first.
    """

    def __init__(self, gap: Array, setting: Array, self_pairs: bool, uniform: bool) -> None:
        self.uniform = uniform
        self.total = _pairs(setting, np.ones((len(gap), 1)), self_pairs)
        self.order = np.lexsort((gap, setting))
        ends = np.searchsorted(setting[self.order], np.arange(setting.max() + 2)).tolist()
        self.groups = list(pairwise(ends))
        # For each network and setting: how many with that setting have narrower gaps.
        gaps = gap[self.order]
        self.narrower = np.stack([np.searchsorted(gaps[low:high], gaps) for low, high in self.groups], axis=1)
        self.wider = np.add.reduceat(self.narrower, ends[:-1], axis=0).reshape(-1, 1).astype(np.float64)

    def scores(self, measures: Array) -> Array:
        """The score of each measure; NaN where no order is open."""
        scores = np.empty(len(measures))
        for part, counts in self._counts(measures):
            cells = counts.astype(np.float64).T.reshape(-1, len(self.total), 2)
            per_cell = np.concatenate([self.wider[None], cells.sum(axis=2)[:, :, None], cells[:, :, 1:]])
            scores[part] = _scores(self.total, per_cell, self.uniform)[:, 0]
        return scores

    def quick_scores(self, measures: Array) -> Array:
        """The same but for rounding, with n·log₂ n from a table where it is small; infinite where no order is open."""
        total = self.total.astype(np.int64)
        wider = self.wider.astype(np.int64)
        share = 1 / np.maximum(total, 1) if self.uniform else np.ones(total.shape)
        bits = _n_log_n if total.max() > TABULATED else self.table.__getitem__
        entropy = bits(total) - bits(wider) - bits(total - wider)
        if not (whole := float((share * entropy).sum())):
            return np.full(len(measures), np.inf)
        scores = np.empty(len(measures))
        for part, counts in self._counts(measures):
            less, both = counts[::2], counts[1::2]
            higher = less + both
            information = bits(both) + bits(less) - bits(higher)
            information += bits(wider - both) + bits(total - wider - less) - bits(total - higher)
            scores[part] = (share * (information + entropy)).sum(axis=0) / whole
        return scores

    @cached_property
    def table(self) -> Array:
        """n·log₂ n of every number of pairs that a cell can have."""
        return _n_log_n(np.arange(int(self.total.max()) + 1))

    def _counts(self, measures: Array) -> Iterator[tuple[slice, Array]]:
        """Some measures at a time: the pairs with higher values in each cell, without and with wider gaps, in turn."""
        if 0 < len(measures) <= FEW:
            yield slice(None), np.stack([self._count(measure) for measure in measures], axis=-1)
            return
        n, settings = self.narrower.shape
        largest = max(high - low for low, high in self.groups)
        one = np.uint8 if largest <= 255 else np.int32  # bytes are several times faster
        step = max(1, COMPARED // n)
        for start in range(0, len(measures), step):
            values = np.ascontiguousarray(measures[start : start + step, self.order].T)
            higher = np.empty(values.shape, dtype=np.uint8)
            of_each = np.empty((n, settings, 2, values.shape[1]), dtype=one)
            for i, narrower in enumerate(self.narrower.tolist()):
                np.greater(values[i], values, out=higher.view(bool))
                for other, (low, high) in enumerate(self.groups):
                    cut = low + narrower[other]
                    np.add.reduce(higher[cut:high], axis=0, dtype=one, out=of_each[i, other, 0])
                    np.add.reduce(higher[low:cut], axis=0, dtype=one, out=of_each[i, other, 1])
            counts = [of_each[low:high].sum(axis=0, dtype=np.int32) for low, high in self.groups]
            yield slice(start, start + step), np.stack(counts).reshape(-1, values.shape[1])

    def _count(self, measure: Array) -> Array:
        """The same for one measure, all pairs at once."""
        value = measure[self.order]
        higher = np.zeros((len(value), len(value) + 1), dtype=np.int32)
        np.cumsum(value[:, None] > value, axis=1, out=higher[:, 1:])
        low, high = np.array(self.groups).T
        row = np.arange(len(value))[:, None]
        at_low, at_cut, at_high = (higher[row, end] for end in (low, low + self.narrower, high))
        differences = np.stack([at_high - at_cut, at_cut - at_low], axis=-1)
        return np.add.reduceat(differences, low, axis=0).reshape(-1)


def scores_in_resamples(
    measures: Array, gap: Array, setting: Array, weights: Array, self_pairs: bool, uniform: bool
) -> Array:
    """The score of each measure in each resample, for the settings of one set of hyper-parameters.

    Args:
        measures: The values of each measure, measures × networks.
        gap: The gap of each network.
        setting: The setting of each network, numbered from 0.
        weights: How often each network is in each resample, resamples × networks.
        self_pairs: Whether pairs of a network with itself count; two copies of one network are such a pair.
        uniform: Whether cells count the same, not by their pairs.

    Returns:
        Measures × resamples; NaN where no order is open.
    """
    scores = np.empty((len(measures), len(weights)))
    room = CHUNK // (int(setting.max()) + 1) ** 2  # for so many measures and resamples
    step = max(1, min(len(weights), room // 2))
    several = max(1, room // (2 * step))
    for first in range(0, len(weights), step):
        part = weights[first : first + step].T
        total = _pairs(setting, part, self_pairs)
        for start in range(0, len(measures), several):
            counts = _counts(measures[start : start + several], gap, setting, part)
            scores[start : start + several, first : first + step] = _scores(total, counts, uniform)
    return scores


def _counts(measures: Array, gap: Array, setting: Array, weights: Array) -> Array:
    """The pairs of each cell in each resample with wider gaps, then with higher values, then with both, by measure.

    A pair (i, j) counts w_i·w_j times: the pairs of a cell are w_aᵀ·V·w_b, with V the truth of each. V is false for
    pairs of a network with itself, and so for pairs of its copies.
    """
    order = np.argsort(setting, kind="stable")
    ends = np.searchsorted(setting[order], np.arange(setting.max() + 2))
    n, settings = len(gap), len(ends) - 1
    exact = np.float32 if weights.sum(axis=0).max() < 4096 else np.float64  # float32 counts to 2**24
    w = np.ascontiguousarray(weights[order], dtype=exact)
    g, values = gap[order], measures[:, order]
    wider = g[:, None] > g
    counts = np.empty((2 * len(measures) + 1, settings, settings, w.shape[1]))
    counts[0] = _sums(wider[None], w, ends)[0]
    step = max(1, CHUNK // (2 * n * max(n, w.shape[1])))
    for start in range(0, len(measures), step):
        some = values[start : start + step]
        higher = some[:, :, None] > some[:, None, :]
        last = start + len(some)
        counts[1 + start : 1 + last] = _sums(higher, w, ends)
        counts[1 + len(measures) + start : 1 + len(measures) + last] = _sums(higher & wider, w, ends)
    return counts.reshape(len(counts), settings**2, -1)


def _sums(true: Array, weights: Array, ends: Array) -> Array:
    """Σ w_i·w_j over the true pairs of each cell: tables × settings × settings × resamples; networks by setting."""
    tables, n = len(true), len(weights)
    sums = np.empty((tables, len(ends) - 1, len(ends) - 1, weights.shape[1]), dtype=weights.dtype)
    for other, (low, high) in enumerate(pairwise(ends)):
        ones = np.ascontiguousarray(true[:, :, low:high]).reshape(tables * n, -1).astype(weights.dtype)
        products = (ones @ weights[low:high]).reshape(tables, n, -1)
        products *= weights
        for of, (first, last) in enumerate(pairwise(ends)):  # several times faster than reduceat
            sums[:, of, other] = products[:, first:last].sum(axis=1)
    return sums


def _pairs(setting: Array, weights: Array, self_pairs: bool) -> Array:
    """Number of ordered pairs in each cell (a, b): Σ_a w_i·Σ_b w_j, cells × resamples.

    Two copies of one network are a pair of it with itself: without such pairs, cell (a, a) has (Σ_a w_i)² − Σ_a w_i².
    """
    of = np.eye(setting.max() + 1)[setting].T
    size = of @ weights
    pairs: Array = size[:, None] * size
    if not self_pairs:
        diagonal = np.arange(len(size))
        pairs[diagonal, diagonal] -= of @ weights**2
    return pairs.reshape(-1, weights.shape[1])


def _scores(pairs: Array, counts: Array, uniform: bool) -> Array:
    """Scores, measures × resamples, from the counts of wider gaps, then of higher values, then of both by measure."""
    measures = len(counts) // 2
    information, entropy = _information(pairs, counts[0], counts[1 : measures + 1], counts[measures + 1 :])
    if uniform:
        share = np.divide(1.0, pairs, out=np.zeros_like(pairs), where=pairs > 0)
        information, entropy = information * share, entropy * share
    with np.errstate(invalid="ignore"):  # 0/0: no order is open
        scores: Array = information.sum(axis=1) / entropy.sum(axis=0)
    return scores


def _information(pairs: Array, wider: Array, higher: Array, both: Array) -> tuple[Array, Array]:
    """Mutual information of the two truths and entropy of the first, in bits times pairs.

    The terms of V_μ = 1 and V_μ = 0 are added to each other first: a measure of distinct values and its negative, which
    exchange them where no network is compared with itself, then have the same information to the last bit.
    """
    other, lower = pairs - wider, pairs - higher
    of_wider = _bits(both, wider, higher, pairs) + _bits(wider - both, wider, lower, pairs)
    of_other = _bits(higher - both, other, higher, pairs) + _bits(other - higher + both, other, lower, pairs)
    information = of_wider + of_other
    entropy = _bits(wider, wider, wider, pairs) + _bits(other, other, other, pairs)
    return information, entropy


def _n_log_n(n: Array) -> Array:
    bits: Array = n * np.log2(np.maximum(n, 1))
    return bits


def _bits(joint: Array, a: Array, b: Array, pairs: Array) -> Array:
    """One term of the information, n·log₂(n·N / (n_a·n_b)): 0 for n = 0, and exactly 0 for independent whole counts."""
    ratio = np.divide(joint * pairs, a * b, out=np.ones(joint.shape), where=joint > 0)
    terms: Array = joint * np.log2(ratio)
    return terms
