"""Similarities of RDMs in resamples of stimuli and subjects, exact and without copies of the data.

A resample of stimuli only changes how often each occurs, m_i: the pair (i, j) then occurs w = m_i·m_j times, and pairs
of one stimulus with itself drop out. Rank correlations need the weighted ranks of each RDM, which is sorted once for
all resamples (`assay.stats.ranks`); the pools of a noise ceiling are sums of such ranks and are ranked anew, in whole
numbers. Everything equals what the resampled matrices, written out, give.
"""

from __future__ import annotations

import functools
from typing import Any, Protocol

import numpy as np

from assay.core.errors import AssayError
from assay.core.ties import sums_with_ties
from assay.measures.similarity.ceiling import standardised
from assay.measures.similarity.compare import similarity
from assay.stats.ranks import WeightedRanks, doubled_ranks_of_whole_numbers

Array = np.ndarray[Any, Any]


class Resample(Protocol):
    """One resample of the stimuli."""

    similarities: Array
    """Similarity of every model to every subject's RDM, models × RDMs."""

    def to_pools(self, shares: Array) -> Array:
        """Similarity of pools to every subject's RDM, pools × RDMs; ``shares`` says how often each RDM is in each."""


class Resampled(Protocol):
    """Models and subjects' RDMs, of which resamples of the stimuli are drawn."""

    def at(self, weights: Array) -> Resample:
        """The resample in which each pair of stimuli occurs as often as ``weights`` says (m(m−1)/2 whole numbers)."""


def resampled(models: Array, data: Array, method: str, pooling: str, of_stimuli: bool) -> Resampled:
    """Models and data prepared for resampling, by the fastest exact way for the method.

    Args:
        models: The RDMs of models, models × m(m−1)/2.
        data: The RDMs of subjects, RDMs × m(m−1)/2.
        method: The method of comparison, as in `compare_rdms`.
        pooling: How RDMs are pooled, as in `noise_ceiling`.
        of_stimuli: Whether stimuli are resampled, or only subjects.
    """
    if method in ("spearman", "rho-a"):
        return RanksResampled(models, data, method, pooling)
    if method in ("pearson", "cosine"):
        return MomentsResampled(models, data, method, pooling)
    if method.startswith("whitened") and of_stimuli:
        raise AssayError(
            f"method={method!r} is not defined for resamples of stimuli, in which pairs drop out: "
            "use resample='subjects', or method='cosine'"
        )
    return WrittenOut(models, data, method, pooling)


class RanksResampled:
    """Spearman's ρ and ρ-a in resamples, by weighted ranks."""

    def __init__(self, models: Array, data: Array, method: str, pooling: str) -> None:
        self.count, self.data, self.method = len(models), data, method
        self.raw = pooling == "raw"
        self._ranks = WeightedRanks(np.concatenate([models, data]))
        self._pools: tuple[bytes, WeightedRanks] | None = None

    def at(self, weights: Array) -> _RanksAt:
        """The resample in which each pair of stimuli occurs as often as ``weights`` says."""
        present = np.flatnonzero(weights)
        return _RanksAt(self, weights, present, self._ranks.doubled(weights, present))

    def raw_pools(self, shares: Array) -> WeightedRanks:
        """Pools of raw RDMs, sorted; kept for as long as the same pools are asked for."""
        key = shares.tobytes()
        if self._pools is None or self._pools[0] != key:
            self._pools = (key, WeightedRanks(sums_with_ties(shares, self.data)))
        return self._pools[1]


class _RanksAt:
    def __init__(self, source: RanksResampled, weights: Array, present: Array, doubled: Array) -> None:
        self._source, self._all_weights, self._present = source, weights, present
        self._weights = weights[present]
        self._doubled = doubled[source.count :].astype(np.float64)  # whose sums are exact too, and fast
        self._total = int(self._weights.sum())
        centred, weighted, size = self._centred(doubled)
        self._data, self._size = weighted[source.count :], size[source.count :]
        self.similarities: Array = centred[: source.count] @ self._data.T / np.outer(size[: source.count], self._size)

    def to_pools(self, shares: Array) -> Array:
        """Similarity of pools to every subject's RDM, pools × RDMs."""
        if self._source.raw:
            doubled = self._source.raw_pools(shares).doubled(self._all_weights, self._present)
        else:
            doubled = doubled_ranks_of_whole_numbers(shares @ self._doubled, self._weights)
        centred, _, size = self._centred(doubled)
        return np.asarray(centred @ self._data.T / np.outer(size, self._size))

    def _centred(self, doubled: Array) -> tuple[Array, Array, Array]:
        """Doubled ranks less their weighted mean, N + 1; the same weighted; and their size, NaN where it is 0."""
        centred = doubled - float(self._total + 1)
        weighted = centred * self._weights
        if self._source.method == "rho-a":
            n = float(self._total)
            return centred, weighted, np.full(len(doubled), np.sqrt((n**3 - n) / 3))  # ranks are doubled: 12/4
        size = np.sqrt(np.einsum("ij,ij->i", centred, weighted))
        return centred, weighted, np.where(size > 0, size, np.nan)


class MomentsResampled:
    """Pearson's correlation and the cosine in resamples, by weighted sums of products."""

    def __init__(self, models: Array, data: Array, method: str, pooling: str) -> None:
        self.count, self.raw = len(models), pooling == "raw"
        self.centred = method == "pearson"
        values = np.concatenate([models, data])
        # Without their means, products of large values do not cancel.
        self.values = values - values.mean(axis=1, keepdims=True) if self.centred else values

    def at(self, weights: Array) -> _MomentsAt:
        """The resample in which each pair of stimuli occurs as often as ``weights`` says."""
        present = np.flatnonzero(weights)
        values, counted = self.values[:, present], weights[present].astype(np.float64)
        if self.centred:
            values = values - (values @ counted / counted.sum())[:, None]
        return _MomentsAt((values * counted) @ values.T, self.count, self.raw)


class _MomentsAt:
    def __init__(self, products: Array, count: int, raw: bool) -> None:
        size = np.sqrt(products.diagonal())
        with np.errstate(invalid="ignore", divide="ignore"):  # an RDM may be constant in a resample
            self._cosines = products / size / size[:, None]
        self._size = size[count:]
        self._raw = raw
        self.similarities: Array = self._cosines[:count, count:]
        self._between = self._cosines[count:, count:]

    def to_pools(self, shares: Array) -> Array:
        """Similarity of pools to every subject's RDM: sums over the RDMs in a pool, divided by the pool's length."""
        weights = shares * self._size if self._raw else shares
        along = weights @ self._between
        with np.errstate(invalid="ignore", divide="ignore"):  # an empty pool
            return np.asarray(along / np.sqrt((along * weights).sum(axis=1))[:, None])


class WrittenOut:
    """Any method in resamples, by writing each of them out; exact, and as slow as that."""

    def __init__(self, models: Array, data: Array, method: str, pooling: str) -> None:
        self.models, self.data, self.method = models, data, method
        self.raw = pooling == "raw"

    def at(self, weights: Array) -> _WrittenOutAt:
        """The resample in which each pair of stimuli occurs as often as ``weights`` says."""
        models, data = (np.repeat(values, weights, axis=1) for values in (self.models, self.data))
        return _WrittenOutAt(models, data, self.method, self.raw)


class _WrittenOutAt:
    def __init__(self, models: Array, data: Array, method: str, raw: bool) -> None:
        self._data, self._method = data, method
        with np.errstate(invalid="ignore", divide="ignore"):
            self._views = data if raw else standardised(data, method)
            self.similarities: Array = similarity(models, data, method)

    def to_pools(self, shares: Array) -> Array:
        """Similarity of pools to every subject's RDM, pools × RDMs."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return similarity(sums_with_ties(shares, self._views), self._data, self._method)


def pair_weights(counts: Array) -> Array:
    """How often each pair of different stimuli occurs in a resample, from how often each stimulus does.

    Example:
        >>> pair_weights(np.array([2, 0, 1])).tolist()
        [0, 2, 0]
    """
    first, second = _pairs(len(counts))
    return np.asarray(counts[first] * counts[second])


@functools.lru_cache(maxsize=4)
def _pairs(m: int) -> tuple[Array, Array]:
    return np.triu_indices(m, 1)


class SubjectsDrawn:
    """A resample of the subjects: how much each RDM counts, and in which pools it is.

    Every drawn copy of a subject counts, and all copies are left out of the pool that they are compared with.

    Args:
        copies: How often each RDM occurs; those of one subject as often as one another.
        group: The subject of each RDM, as a number.
    """

    def __init__(self, copies: Array, group: Array) -> None:
        present = np.flatnonzero(copies)
        share = copies[present] / np.bincount(group)[group[present]]  # every subject counts the same
        self._weight, self._present = share / share.sum(), present
        drawn, number = np.unique(group[present], return_inverse=True)
        self._alone = len(drawn) < 2
        self._pool_of = number, present
        self._pools = np.concatenate([np.where(group == drawn[:, None], 0, copies), copies[None]]).astype(np.float64)

    def scores(self, resample: Resample) -> Array:
        """Mean similarity of each model over subjects, in a resample of the stimuli."""
        return np.asarray(resample.similarities[:, self._present] @ self._weight)

    def ceiling(self, resample: Resample) -> tuple[float, float]:
        """Lower and upper bound of the noise ceiling; the lower is NaN where only one subject was drawn."""
        pooled = resample.to_pools(self._pools)
        upper = float(pooled[-1, self._present] @ self._weight)
        return float("nan") if self._alone else float(pooled[self._pool_of] @ self._weight), upper
