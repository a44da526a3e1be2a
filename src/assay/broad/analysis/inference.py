"""What differences between systems mean: intervals, tests and their corrections.

Under the plan every system is trained on each of K disjoint folds and scored on one common test set. A difference
d_i in fold i is an advantage when positive. Its mean varies for two reasons: which instances trained the classifier
(seen in the spread over folds) and which instances happen to be in the test set (common to all folds, so not seen
there). The plan's own rule and the tests over folds know only the first; `two_component` adds the second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import stats

from assay.broad.data.dataset import Array
from assay.broad.metrics import Metric
from assay.core.errors import AssayError
from assay.core.progress import report

CHUNK = 8_000_000  # counts held at once


def standard_error(values: Array, axis: int = -1) -> Array:
    """s/√n with n − 1 in s; NaN of a single value.

    Example:
        >>> float(standard_error(np.array([1.0, 2.0, 3.0]))) * 3**0.5
        1.0

    Plan §5.6.
    """
    values = np.asarray(values, dtype=np.float64)
    n = values.shape[axis]
    if n < 2:
        return np.full(np.delete(values.shape, axis), np.nan)
    return np.asarray(values.std(axis=axis, ddof=1) / np.sqrt(n))


def standard_errors_apart(a: Array, b: Array) -> bool:
    """The plan's rule: whether the intervals mean ± standard error of two systems over folds do not overlap.

    It takes no account of the common test set, and raises false alarms far more often than one time in twenty.

    Plan §5.6.
    """
    gap = abs(_folds(a).mean() - _folds(b).mean())
    return bool(gap > standard_error(a) + standard_error(b))


@dataclass(frozen=True)
class Interval:
    """A mean difference with its confidence interval, two-sided p value and the two parts of its variance."""

    difference: float
    low: float
    high: float
    p: float
    v_fold: float
    v_test: float

    @property
    def variance(self) -> float:
        """Of the mean difference: both parts."""
        return self.v_fold + self.v_test


def two_component(
    differences: Array, v_test: float, confidence: float = 0.95, reference: Literal["z", "t"] = "z"
) -> Interval:
    """Interval of the mean difference from the spread over folds and the chance of the test set.

    d̄ ± q·√(s_d²/K + v_test), q the quantile of the normal distribution, or of t with K − 1 degrees of freedom.

    Args:
        differences: d_i for each of K folds.
        v_test: Variance of the mean difference over test sets: of `bootstrap` draws, or `rmse_test_variance`.
        confidence: Of the interval.
        reference: ``"z"``, or ``"t"``, which is conservative.

    Example:
        >>> found = two_component(np.array([0.1, 0.3]), v_test=0.03)
        >>> round(found.low, 3), round(found.high, 3)      # 0.2 ± 1.96·√(0.01 + 0.03)
        (-0.192, 0.592)
    """
    d = _folds(differences)
    if not v_test >= 0:
        raise AssayError(f"v_test={v_test} is not a variance: give the variance over draws of the test set")
    if not 0 < confidence < 1:
        raise AssayError(f"confidence={confidence} is not between 0 and 1: use 0.95")
    mean, v_fold = float(d.mean()), float(d.var(ddof=1) / len(d))
    law = _law(len(d) - 1 if reference == "t" else None)
    error = float(np.sqrt(v_fold + v_test))
    reach = float(law.ppf((1 + confidence) / 2)) * error
    return Interval(mean, mean - reach, mean + reach, _two_sided(mean, error, law), v_fold, float(v_test))


# -- the test set by chance -----------------------------------------------------------------------------


def bootstrap(
    metric: Metric,
    truth: Array,
    predictions: Array,
    draws: int = 1000,
    seed: int | Sequence[int] = 0,
    groups: Array | None = None,
    among: Array | None = None,
) -> Array:
    """The metric in test sets drawn again from this one, with replacement; the same draws for all systems and folds.

    Args:
        metric: Which.
        truth: Test instances × labels.
        predictions: Systems (or system-folds) × instances × labels.
        draws: How many.
        seed: Of the draws.
        groups: Where instances belong together (reviews of one restaurant), number of the group of each: whole
            groups are drawn.
        among: All groups to draw from; more than those in ``groups`` where several test sets share draws.

    Returns:
        Systems × labels × draws; NaN where a draw holds no positive of a class.
    """
    if truth.shape != predictions.shape[1:]:
        raise AssayError(f"truth is {truth.shape} and predictions of one system are {predictions.shape[1:]}")
    if draws < 2:
        raise AssayError(f"draws={draws} show no spread: use 1000 or more")
    units, member = len(truth), None
    if groups is not None:
        known = np.unique(groups if among is None else among)
        member = np.searchsorted(known, groups)
        if len(groups) != len(truth) or not np.array_equal(known[np.minimum(member, len(known) - 1)], groups):
            raise AssayError("groups must name one of the groups drawn from for each test instance")
        units = len(known)
    found = np.empty((len(predictions), truth.shape[1], draws))
    done = 0
    for counts in _counts(units, draws, seed):
        drawn, size = counts if member is None else counts[member], counts.shape[1]
        for c in range(truth.shape[1]):
            found[:, c, done : done + size] = metric.resampled(truth[:, c], predictions[:, :, c], drawn)
        done += size
        report("bootstrap", done, draws)
    return found


def rmse_test_variance(truth: Array, focal: Array, other: Array, groups: Array | None = None) -> float:
    """Variance over test sets of the difference in mean RMSE over folds, by the delta method (no draws).

    RMSE_f moves by ψ_fi = (e_fi² − RMSE_f²) / (2·RMSE_f·n) when instance i is drawn once more, so the variance is
    Σ_i (mean_f ψ_fi(focal) − mean_f ψ_fi(other))²; sums within groups come before the square.

    Args:
        truth: n ratings.
        focal: Folds × n predictions of one system.
        other: Of the other.
        groups: Number of the group of each instance.
    """

    def influence(predictions: Array) -> Array:
        squares = (np.atleast_2d(predictions) - truth) ** 2
        mean = squares.mean(axis=1, keepdims=True)
        scale = 2 * np.sqrt(mean) * len(truth)
        # A fold without any error keeps none, whatever is drawn.
        moved: Array = np.divide(squares - mean, scale, out=np.zeros_like(squares), where=mean > 0).mean(axis=0)
        return moved

    parts = influence(focal) - influence(other)
    if groups is not None:
        parts = np.bincount(np.unique(groups, return_inverse=True)[1], weights=parts)
    return float(np.sum(parts**2))


def with_folds_redrawn(draws: Array, seed: int = 0) -> Array:
    """Mean over folds in each draw, the folds too drawn again, the same for all systems.

    Args:
        draws: Systems × folds × draws.
        seed: Of the folds.

    Returns:
        Systems × draws.
    """
    _, folds, count = draws.shape
    chosen = np.random.default_rng(seed).integers(folds, size=(folds, count))
    means: Array = draws[:, chosen, np.arange(count)].mean(axis=1)
    return means


def ranking_stability(advantages: Array, draws: Array) -> float:
    """Share of draws in which systems keep their order.

    Args:
        advantages: One value per system, larger is better.
        draws: Systems × draws.

    Example:
        >>> ranking_stability(np.array([0.4, 0.3]), np.array([[0.4, 0.5, 0.2, 0.4], [0.3, 0.3, 0.3, 0.1]]))
        0.75
    """
    ordered = draws[np.argsort(-advantages, kind="stable")]
    return float((np.diff(ordered, axis=0) < 0).all(axis=0).mean())


def minimum_detectable_difference(variance: float, level: float = 0.05, power: float = 0.8) -> float:
    """The true difference that would be found significant with this power: (z_{1−level/2} + z_{power})·√v ≈ 2.8·√v.

    Example:
        >>> round(minimum_detectable_difference(1.0), 3)
        2.802
    """
    return float((stats.norm.ppf(1 - level / 2) + stats.norm.ppf(power)) * np.sqrt(variance))


# -- comparable in quality ------------------------------------------------------------------------------


def noninferiority_p(difference: float, variance: float, margin: float) -> float:
    """One-sided p of "worse by the margin or more": small when the system is at most a little worse."""
    _checked_margin(margin)
    return _one_sided(difference + margin, float(np.sqrt(variance)), _law(None))


def equivalence_p(difference: float, variance: float, margin: float) -> float:
    """Two one-sided tests (TOST): small when the difference is within the margin either way."""
    above = noninferiority_p(difference, variance, margin)
    return max(above, noninferiority_p(-difference, variance, margin))


@dataclass(frozen=True)
class Posterior:
    """Probabilities that a system is better, practically equal (within the region of equivalence) or worse."""

    better: float
    equal: float
    worse: float


def student_posterior(mean: float, variance: float, df: int, rope: float) -> Posterior:
    """Probabilities of a difference that follows St(df, mean, variance), beside and in ±rope."""
    if rope < 0:
        raise AssayError(f"rope={rope} is below 0: give the half-width of the region of practical equivalence")
    if variance == 0:
        better, worse = float(mean > rope), float(mean < -rope)
    else:
        law = stats.t(df, mean, np.sqrt(variance))
        better, worse = float(law.sf(rope)), float(law.cdf(-rope))
    return Posterior(better, max(0.0, 1 - better - worse), worse)


def correlated_t(differences: Array, rho: float, rope: float) -> Posterior:
    """Bayesian correlated t test: posterior St(K − 1, d̄, s²·(1/K + ρ/(1 − ρ))).

    Args:
        differences: d_i of each fold or repetition.
        rho: Correlation between them; the test share 1/K in ordinary cross-validation.
        rope: Half-width of the region of practical equivalence.

    Benavoli, Corani, Demšar & Zaffalon 2017.
    """
    d = _folds(differences)
    if not 0 <= rho < 1:
        raise AssayError(f"rho={rho} is not a correlation in [0, 1): use the share of data in a test fold")
    return student_posterior(float(d.mean()), float(d.var(ddof=1) * (1 / len(d) + rho / (1 - rho))), len(d) - 1, rope)


# -- other tests ----------------------------------------------------------------------------------------


def paired_t_p(differences: Array) -> float:
    """Two-sided p of the paired t test over folds: it knows nothing of the common test set."""
    d = _folds(differences)
    return _two_sided(float(d.mean()), float(standard_error(d)), _law(len(d) - 1))


def corrected_t_p(differences: Array, n_test: int, n_train: int) -> float:
    """Nadeau and Bengio's corrected resampled t test, t = d̄/√((1/J + n_test/n_train)·s²), J − 1 degrees of freedom.

    For repeated splits whose training sets overlap. Under the plan's design, disjoint training folds and one test
    set, n_test/n_train says nothing of the correlation: not for its contrasts.

    Nadeau & Bengio 2003.
    """
    d = _folds(differences)
    error = float(np.sqrt((1 / len(d) + n_test / n_train) * d.var(ddof=1)))
    return _two_sided(float(d.mean()), error, _law(len(d) - 1))


def wilcoxon_p(differences: Array) -> float:
    """Exact two-sided p of Wilcoxon's signed ranks: zeros dropped, equal sizes share their rank.

    With K folds it cannot fall below 2/2^K: 0.00195 for 10.

    Example:
        >>> round(wilcoxon_p(np.arange(1.0, 11.0)), 5)
        0.00195
    """
    d = _folds(differences)
    d = d[d != 0]
    doubled = np.rint(2 * stats.rankdata(np.abs(d))).astype(int)  # shared ranks are halves
    ways = np.ones(1)
    for rank in doubled:  # of all 2^K signs, how many give each sum of positive ranks
        ways = np.append(ways, np.zeros(rank)) + np.append(np.zeros(rank), ways)
    seen = int(doubled[d > 0].sum())
    return float(min(1.0, 2 * min(ways[: seen + 1].sum(), ways[seen:].sum()) / ways.sum()))


def sign_p(differences: Array) -> float:
    """Exact two-sided p of the sign test, zeros dropped."""
    d = _folds(differences)
    d = d[d != 0]
    return float(stats.binomtest(int((d > 0).sum()), len(d)).pvalue) if len(d) else 1.0


# -- many tests -----------------------------------------------------------------------------------------


def holm(p: Array) -> Array:
    """Holm's adjusted p values: the chance of any false alarm in the family is at most the level; NaN stays NaN.

    Example:
        >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
        [0.03, 0.06, 0.06]
    """
    return _adjusted(p, lambda ordered: np.maximum.accumulate(ordered * np.arange(len(ordered), 0, -1)))


def benjamini_hochberg(p: Array) -> Array:
    """Benjamini and Hochberg's adjusted p values: of what they call significant, at most the level is false.

    Example:
        >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03])).tolist()
        [0.03, 0.04, 0.04]
    """

    def step_up(ordered: Array) -> Array:
        scaled = ordered * len(ordered) / np.arange(1, len(ordered) + 1)
        return np.minimum.accumulate(scaled[::-1])[::-1]

    return _adjusted(p, step_up)


def _adjusted(p: Array, rule: Callable[[Array], Array]) -> Array:
    p = np.asarray(p, dtype=np.float64)
    if ((p < 0) | (p > 1)).any():
        raise AssayError(f"p={p[(p < 0) | (p > 1)][0]} is not a probability")
    found = np.full(p.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    found[order] = np.minimum(rule(p[order]), 1.0)
    return found


def _counts(units: int, draws: int, seed: int | Sequence[int]) -> Iterator[Array]:
    """How often each unit is in each of some draws (units × draws), until all are drawn."""
    rng = np.random.default_rng(seed)
    step = max(1, CHUNK // units)
    for start in range(0, draws, step):
        picks = rng.integers(units, size=(min(step, draws - start), units))
        yield np.stack([np.bincount(row, minlength=units).astype(np.int32) for row in picks], axis=1)


def _folds(values: Array) -> Array:
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all():
        raise AssayError(f"values of folds must be two or more finite numbers in a row, received {values!r}")
    return values


def _law(df: int | None) -> Any:
    return stats.norm() if df is None else stats.t(df)


def _two_sided(mean: float, error: float, law: Any) -> float:
    return min(1.0, 2 * _one_sided(abs(mean), error, law))


def _one_sided(mean: float, error: float, law: Any) -> float:
    """P(a variable of this error is as far above 0 as ``mean``); without error, mean decides."""
    if error == 0:
        return 0.0 if mean > 0 else 0.5 if mean == 0 else 1.0
    return float(law.sf(mean / error))


def _checked_margin(margin: float) -> None:
    if not margin >= 0:
        raise AssayError(f"margin={margin} is not a size: give the largest loss that still counts as comparable")
