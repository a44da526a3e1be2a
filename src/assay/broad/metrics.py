"""The plan's two metrics: 11-point average precision of ranked clips, and root mean squared error of ratings.

Each is also computed on resampled test sets (counts of how often each instance was drawn), with the same code: a
plain test set is the one where every instance was drawn once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from assay.broad.data.dataset import Array
from assay.core.errors import AssayError

Missing = Literal["error", "skip"]


def average_precision_11pt(truth: Array, scores: Array, missing: Missing = "error") -> float:
    """11-point interpolated average precision of one class.

    Instances are admitted by falling score, all that tie at once. After threshold j, TP_j of the n_j admitted are
    among the P positives, and

        p_k = max {TP_j / n_j : 10·TP_j ≥ k·P},    AP = (p_0 + … + p_10) / 11.

    Recall is compared in whole numbers: in decimals 3/10 may fall short of 0.3.

    Args:
        truth: True for the members of the class.
        scores: Confidence that each instance is a member.
        missing: What a class without members, which has no precision, gives: ``"error"`` raises, ``"skip"`` gives NaN.

    Example:
        >>> round(average_precision_11pt(np.array([1, 0, 1, 1, 1]), np.array([0.9, 0.8, 0.6, 0.2, 0.2])), 6)
        0.854545

    Plan §5.4.1 (Yang & Pedersen 1997).
    """
    truth, scores = _columns(truth, scores)
    positive = _binary(truth)
    if not positive.any() and missing == "error":
        raise AssayError(
            f"truth has no positive among {len(truth)} instances, so there is no precision to average: "
            "leave the class out, or use missing='skip' for NaN"
        )
    return float(_average_precision(positive, scores, np.ones((len(truth), 1), np.int32))[0])


def average_precisions(truth: Array, scores: Array, missing: Missing = "error") -> Array:
    """11-point interpolated average precision of each class (`average_precision_11pt`).

    Args:
        truth: Instances × classes, True for the members of a class.
        scores: Instances × classes, confidences that an instance is a member.
        missing: What a class without members gives: ``"error"`` raises, ``"skip"`` gives NaN.
    """
    return _by_column(lambda t, s: average_precision_11pt(t, s, missing), truth, scores)


def mean_average_precision(truth: Array, scores: Array, missing: Missing = "error") -> float:
    """Mean average precision (MAP): the mean of `average_precision_11pt` over classes, without those that are skipped.

    Example:
        >>> truth = np.array([[1, 0], [0, 1], [1, 0]])
        >>> mean_average_precision(truth, truth * 0.5)
        1.0

    Plan §5.4.1.
    """
    values = average_precisions(truth, scores, missing)
    if np.isnan(values).all():
        raise AssayError(f"truth has no positive in any of its {values.size} classes: there is nothing to average")
    return float(np.nanmean(values))


def rmse(truth: Array, predictions: Array) -> float:
    """Root mean squared error √(mean (ŷ − y)²) of one rating.

    Example:
        >>> round(rmse(np.array([1, 2, 3, 4, 5]), np.full(5, 3.0)), 6)      # √2
        1.414214

    Plan §5.4.1.
    """
    truth, predictions = _columns(truth, predictions)
    return float(np.sqrt(np.mean((predictions - truth) ** 2)))


def resampled_average_precision(truth: Array, scores: Array, counts: Array) -> Array:
    """11-point average precision of one class in resampled test sets.

    Args:
        truth: Membership of the n instances, True for the members of the class.
        scores: Systems × n confidences.
        counts: How often each instance is in each draw, n × draws whole numbers.

    Returns:
        Systems × draws; NaN in draws without a member of the class.
    """
    positive = _binary(truth)
    return np.stack([_average_precision(positive, row, counts) for row in np.atleast_2d(scores)])


def resampled_rmse(truth: Array, predictions: Array, counts: Array) -> Array:
    """Root mean squared error in resampled test sets; takes the arguments of `resampled_average_precision`.

    Returns:
        Systems × draws; NaN in empty draws.
    """
    squares = (np.atleast_2d(predictions).astype(np.float64) - truth) ** 2
    weights = counts.astype(np.float64)
    with np.errstate(invalid="ignore"):
        means: Array = np.sqrt((squares @ weights) / weights.sum(axis=0))
    return means


@dataclass(frozen=True)
class Metric:
    """A metric, and whether higher or lower values of it are better.

    Args:
        name: Name of the metric.
        better: Which values are better, ``"higher"`` or ``"lower"``.
        bounds: The least and the greatest prediction that are allowed.
        function: Computes the metric from one column of truth and one of predictions.
        resampled: Computes the metric in resampled test sets, from truth, predictions (systems × n) and counts
            (n × draws); gives systems × draws.

    Plan §5.4.1.
    """

    name: str
    better: Literal["higher", "lower"]
    bounds: tuple[float, float]
    function: Callable[[Array, Array], float]
    resampled: Callable[[Array, Array, Array], Array]

    @property
    def sign(self) -> int:
        """+1 where higher is better, −1 where lower is; a difference times this sign is an advantage if positive."""
        return 1 if self.better == "higher" else -1

    def values(self, truth: Array, predictions: Array) -> Array:
        """Compute the metric of each column (class or rating)."""
        return _by_column(self.function, truth, predictions)

    def fault(self, predictions: Array) -> str:
        """Say what is wrong with predictions; an empty string if nothing is."""
        low, high = self.bounds
        if not np.isfinite(predictions).all():
            return f"{int((~np.isfinite(predictions)).sum())} of {predictions.size} predictions are not finite"
        if predictions.min() < low or predictions.max() > high:
            return (
                f"predictions reach from {predictions.min():.6g} to {predictions.max():.6g}, "
                f"{self.name} wants them in [{low:g}, {high:g}]"
            )
        return ""


MAP = Metric("MAP", "higher", (0.0, 1.0), average_precision_11pt, resampled_average_precision)
RMSE = Metric("RMSE", "lower", (1.0, 5.0), rmse, resampled_rmse)
METRICS = {metric.name: metric for metric in (MAP, RMSE)}


def _average_precision(positive: Array, scores: Array, counts: Array) -> Array:
    """Compute average precision in each draw (a column of ``counts``)."""
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    is_hit = positive[order]
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))  # where each tie ends
    hits = np.cumsum(is_hit)[last]
    # Precision can be highest only where a tie brings a positive.
    rising = np.diff(hits, prepend=0) > 0
    last = last[rising]
    hits = hits[rising]
    draws = counts.shape[1]
    if len(last) == 0:
        return np.full(draws, np.nan)
    drawn = counts[order[: last[-1] + 1]]
    admitted = _running_sums(drawn, last)
    true_positives = _running_sums(drawn[is_hit[: len(drawn)]], hits - 1)
    precision = np.divide(true_positives, admitted, out=np.zeros(true_positives.shape), where=admitted > 0)
    best = np.maximum.accumulate(precision[::-1], axis=0)[::-1]  # at this recall or more
    positives = true_positives[-1]
    columns = np.arange(draws)
    total_precision = np.zeros(draws)
    for k in range(11):
        first = np.count_nonzero(10 * true_positives < k * positives, axis=0)
        total_precision += best[first, columns]
    return np.where(positives > 0, total_precision / 11, np.nan)


def _running_sums(drawn: Array, last: Array) -> Array:
    """Sums of all rows up to and including each row of ``last``."""
    starts = np.append(0, last[:-1] + 1)
    return np.cumsum(np.add.reduceat(drawn, starts, axis=0), axis=0)


def _columns(truth: Array, predictions: Array) -> tuple[Array, Array]:
    truth = np.asarray(truth)
    predictions = np.asarray(predictions, dtype=np.float64)
    if truth.ndim != 1 or truth.shape != predictions.shape or truth.size == 0:
        raise AssayError(
            f"truth is {truth.shape} and predictions are {predictions.shape}: give two columns of one length, not empty"
        )
    for name, values in (("truth", truth), ("predictions", predictions)):
        if not np.isfinite(values).all():
            raise AssayError(f"{name} has {int((~np.isfinite(values)).sum())} values that are NaN or infinite")
    return truth, predictions


def _binary(truth: Array) -> Array:
    truth = np.asarray(truth)
    if not ((truth == 0) | (truth == 1)).all():
        other = truth[(truth != 0) & (truth != 1)][0]
        raise AssayError(f"truth holds {other!r}: membership of a class is 0 or 1")
    return truth.astype(bool)


def _by_column(function: Callable[[Array, Array], float], truth: Array, predictions: Array) -> Array:
    truth = np.asarray(truth)
    predictions = np.asarray(predictions)
    if truth.ndim != 2 or truth.shape != predictions.shape:
        raise AssayError(f"truth is {truth.shape} and predictions are {predictions.shape}: give instances × labels")
    return np.array([function(t, p) for t, p in zip(truth.T, predictions.T, strict=True)])
