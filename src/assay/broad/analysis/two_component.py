"""What differences between systems mean under the plan's design: the two sources of their variance.

Under the plan every system is trained on each of K disjoint folds and scored on one common test set. A difference
d_i in fold i is an advantage when positive. Its mean varies for two reasons: which instances trained the classifier
(seen in the spread over folds) and which instances happen to be in the test set (common to all folds, so not seen
there). The plan's own rule and the tests over folds know only the first; `two_component` adds the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from assay.broad.data.dataset import Array
from assay.broad.metrics import Metric
from assay.core.errors import AssayError
from assay.core.progress import report
from assay.stats.bootstrap import counts, picks, require_spread
from assay.stats.degrees_of_freedom import welch_satterthwaite
from assay.stats.paired import finite_row, standard_error, two_sided_p


def standard_errors_apart(a: Array, b: Array) -> bool:
    """Whether two systems differ by the plan's rule: their intervals mean ± standard error over folds do not overlap.

    It takes no account of the common test set, and raises false alarms far more often than one time in twenty.

    Plan §5.6.
    """
    gap = abs(finite_row(a).mean() - finite_row(b).mean())
    return bool(gap > standard_error(a) + standard_error(b))


@dataclass(frozen=True)
class Interval:
    """A mean difference with its confidence interval, two-sided p value and the two parts of its variance.

    ``df`` are the degrees of freedom of Student's t that the interval and p rest on; infinite for the normal law.
    """

    difference: float
    low: float
    high: float
    p: float
    v_fold: float
    v_test: float
    df: float

    @property
    def variance(self) -> float:
        """The variance of the mean difference: both parts."""
        return self.v_fold + self.v_test


def two_component(differences: Array, v_test: float, confidence: float = 0.95, units: float | None = None) -> Interval:
    """Interval of the mean difference from the spread over folds and the chance of the test set.

    d̄ ± q·√(s_d²/K + v_test), q the quantile of Student's t. Its degrees of freedom are those of the sum: K − 1 for the
    folds and G − 1 for a test set of G independent units, combined by Welch and Satterthwaite. Where the test set is
    large and the folds vary little this is the normal law; with few groups the tails are as heavy as they should be.

    Args:
        differences: d_i for each of K folds.
        v_test: Variance of the mean difference over test sets: of `resampled_scores`, or `rmse_test_variance`.
        confidence: Probability with which the interval is to hold the true difference.
        units: Number of independent units (instances, groups) of the test set, `effective_groups` where they are
            unequal; None for the normal law, which takes both variances to be known.

    Example:
        >>> interval = two_component(np.array([0.1, 0.3]), v_test=0.03)
        >>> round(interval.low, 3), round(interval.high, 3)      # 0.2 ± 1.96·√(0.01 + 0.03)
        (-0.192, 0.592)
        >>> round(two_component(np.array([0.1, 0.3]), v_test=0.03, units=10).df, 6)      # 0.04²/(0.01²/1 + 0.03²/9)
        8.0
    """
    d = finite_row(differences)
    if not v_test >= 0:
        raise AssayError(f"v_test={v_test} is not a variance: give the variance over draws of the test set")
    if not 0 < confidence < 1:
        raise AssayError(f"confidence={confidence} is not between 0 and 1: use 0.95")
    mean = float(d.mean())
    v_fold = float(d.var(ddof=1) / len(d))
    # Groups of very unequal size may be worth fewer than two, but a variance that can be computed has one degree.
    df = float("inf") if units is None else welch_satterthwaite([v_fold, v_test], [len(d) - 1, max(units - 1, 1)])
    error = float(np.sqrt(v_fold + v_test))
    half_width = float(scipy.stats.t.ppf((1 + confidence) / 2, df)) * error
    return Interval(mean, mean - half_width, mean + half_width, two_sided_p(mean, error, df), v_fold, float(v_test), df)


def resampled_scores(
    metric: Metric,
    truth: Array,
    predictions: Array,
    draws: int = 1000,
    seed: int | Sequence[int] = 0,
    groups: Array | None = None,
    among: Array | None = None,
) -> Array:
    """Compute the metric in test sets drawn from this one with replacement, the same for all systems and folds.

    Args:
        metric: The metric by which predictions are scored.
        truth: Test instances × labels.
        predictions: Systems (or system-folds) × instances × labels.
        draws: Number of test sets drawn.
        seed: Seed of the random draws.
        groups: Where instances belong together (reviews of one restaurant), number of the group of each: whole
            groups are drawn.
        among: All groups to draw from; more than those in ``groups`` where several test sets share draws.

    Returns:
        Systems × labels × draws; NaN where a draw holds no positive of a class.
    """
    if truth.shape != predictions.shape[1:]:
        raise AssayError(f"truth is {truth.shape} and predictions of one system are {predictions.shape[1:]}")
    require_spread(draws)
    scores = np.empty((len(predictions), truth.shape[1], draws))
    done = 0
    for resampled_counts in counts(len(truth), draws, seed, groups=groups, among=among):
        drawn = np.ascontiguousarray(resampled_counts.T)  # metrics run along the instances
        size = len(resampled_counts)
        for c in range(truth.shape[1]):
            scores[:, c, done : done + size] = metric.resampled(truth[:, c], predictions[:, :, c], drawn)
        done += size
        report("bootstrap", done, draws)
    return scores


def rmse_test_variance(truth: Array, focal: Array, other: Array, groups: Array | None = None) -> float:
    """Variance over test sets of the difference in mean RMSE over folds, by the delta method (no draws).

    RMSE_f moves by ψ_fi = (e_fi² − RMSE_f²) / (2·RMSE_f·n) when instance i is drawn once more, so the variance is
    Σ_i (mean_f ψ_fi(focal) − mean_f ψ_fi(other))²; sums within groups come before the square.

    Args:
        truth: n ratings.
        focal: Folds × n predictions of one system.
        other: Folds × n predictions of the other system.
        groups: Number of the group of each instance.
    """

    def influence(predictions: Array) -> Array:
        squares = (np.atleast_2d(predictions) - truth) ** 2
        mean = squares.mean(axis=1, keepdims=True)
        scale = 2 * np.sqrt(mean) * len(truth)
        # A fold without any error keeps none, whatever is drawn.
        by_fold = np.divide(squares - mean, scale, out=np.zeros_like(squares), where=mean > 0)
        mean_influence: Array = by_fold.mean(axis=0)
        return mean_influence

    parts = influence(focal) - influence(other)
    if groups is not None:
        parts = np.bincount(np.unique(groups, return_inverse=True)[1], weights=parts)
    return float(np.sum(parts**2))


def with_folds_redrawn(draws: Array, seed: int = 0) -> Array:
    """Compute the mean over resampled folds in each draw of the test set, the same folds for all systems.

    Args:
        draws: Systems × folds × draws.
        seed: Seed of the random draws of folds.

    Returns:
        Systems × draws.
    """
    _, folds, count = draws.shape
    # Picks are independent, so they may as well be dealt out place by place as draw by draw.
    chosen = np.stack(list(picks(folds, count, seed))).reshape(folds, count)
    means: Array = draws[:, chosen, np.arange(count)].mean(axis=1)
    return means
