"""How sure one can be of the similarity of models to brains: bootstrap, intervals, comparisons of models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pandas as pd
import scipy

from assay.core.errors import AssayError, nearest
from assay.core.progress import report
from assay.measures.similarity.ceiling import NoiseCeiling, Pooling, require_pooling, subject_numbers
from assay.measures.similarity.compare import method_named, require_comparable, require_same_count
from assay.measures.similarity.resampling import Resample, SubjectsDrawn, pair_weights, resampled
from assay.stats.bootstrap import Seed, counts, require_spread
from assay.stats.multiplicity import correction_named
from assay.stats.paired import one_sided_p, two_sided_p
from assay.stimuli.rdms import as_vectors, require_same_stimuli, stimuli_of

Array = np.ndarray[Any, Any]
Resampling = Literal["stimuli", "subjects", "both"]
RESAMPLINGS = ("stimuli", "subjects", "both")
_FEWEST_STIMULI = 3  # distinct ones, of which a resample must have an RDM of more than one entry
_TELL_EVERY = 500  # resamples, so that long work shows that it goes on
_FEWEST_TO_RESAMPLE = 4  # stimuli: of three, every resample that has an RDM is the three again, and nothing varies


@dataclass(frozen=True, eq=False)
class RdmBootstrap:
    """Scores of models against subjects' RDMs, and how they vary over resamples.

    Attributes:
        models: The names of the models.
        values: The score of each model: its similarity to single subjects, averaged over them.
        ceiling: The noise ceiling, on the scale of the scores; None where it was not asked for.
        draws: Score of each model in each resample, draws × models; NaN where fewer than three stimuli were drawn.
        ceiling_draws: Lower and upper bound in each resample, draws × 2.
        df: Degrees of freedom: the number of units resampled less one (of the fewer where both are).
        resample: What was resampled.
        method: The method of comparison.
    """

    models: tuple[str, ...]
    values: Array
    ceiling: NoiseCeiling | None
    draws: Array = field(repr=False)
    ceiling_draws: Array = field(repr=False)
    df: int
    resample: str
    method: str
    _covariances: tuple[tuple[Array, float], ...] = field(repr=False)

    def standard_error(self, contrast: Array) -> float:
        """Standard error of a weighted sum of the scores, then the lower and the upper bound of the ceiling.

        Where both stimuli and subjects are resampled, their variances add up, and the bootstrap of both counts what is
        random in each entry three times: V = V_subjects + V_stimuli − (V_both − V_subjects − V_stimuli), each variance
        with its factor n/(n − 1), at least the larger and at most V_both.

        Schütt et al. 2023 (the two-factor bootstrap).
        """
        used = np.flatnonzero(contrast)
        weights = np.asarray(contrast, dtype=np.float64)[used]
        variances = [float(weights @ matrix[np.ix_(used, used)] @ weights) for matrix, _ in self._covariances]
        factors = [factor for _, factor in self._covariances]
        if len(variances) == 1:
            return float(np.sqrt(variances[0] * factors[0]))
        stimuli, subjects, both = variances
        of_stimuli, of_subjects = factors[0] * stimuli, factors[1] * subjects
        total = of_stimuli + of_subjects - factors[0] * factors[1] * (both - stimuli - subjects)
        return float(np.sqrt(min(max(total, of_stimuli, of_subjects), both)))

    def table(self, confidence: float = 0.95, correction: str = "holm") -> pd.DataFrame:
        """One row per model: its score with an interval, whether it is above 0, and whether it is below the ceiling.

        Args:
            confidence: Share of intervals value ± t·(standard error) that hold the true value.
            correction: How p values are adjusted for the number of models: ``holm``, ``benjamini-hochberg``, ``none``.

        Returns:
            ``model``, ``value``, ``low``, ``high``; ``p_above_zero``, one-sided, and ``p_above_zero_adjusted``;
            ``p_below_ceiling`` (of its lower bound), one-sided, and ``p_below_ceiling_adjusted``.
        """
        adjust = correction_named(correction)
        rows = []
        for number, name in enumerate(self.models):
            score = self._contrast({number: 1.0})
            error = self.standard_error(score)
            p_ceiling = float("nan")
            if self.ceiling is not None:
                gap = self._contrast({number: 1.0, len(self.models): -1.0})
                p_ceiling = one_sided_p(self.ceiling.lower - self.values[number], self.standard_error(gap), self.df)
            rows.append(
                {
                    "model": name,
                    "value": float(self.values[number]),
                    **self._interval(float(self.values[number]), error, confidence),
                    "p_above_zero": one_sided_p(float(self.values[number]), error, self.df),
                    "p_below_ceiling": p_ceiling,
                }
            )
        table = pd.DataFrame(rows)
        for column in ("p_above_zero", "p_below_ceiling"):
            place = list(table.columns).index(column) + 1
            table.insert(place, f"{column}_adjusted", adjust(table[column].to_numpy()))
        return table

    def pairs(self, confidence: float = 0.95, correction: str = "holm") -> pd.DataFrame:
        """One row per pair of models: the difference of their scores with an interval, and whether it is 0.

        The models were scored in the same resamples, so that what they share drops out of the difference.

        Args:
            confidence: Share of intervals, each by itself, that hold the true difference.
            correction: How p values are adjusted for the number of pairs: ``holm``, ``benjamini-hochberg``, ``none``.

        Returns:
            ``model``, ``other``, ``difference``, ``low``, ``high``, ``p`` (two-sided) and ``p_adjusted``.
        """
        adjust = correction_named(correction)
        rows = []
        for a, b in combinations(range(len(self.models)), 2):
            difference = float(self.values[a] - self.values[b])
            error = self.standard_error(self._contrast({a: 1.0, b: -1.0}))
            names = {"model": self.models[a], "other": self.models[b], "difference": difference}
            rows.append(names | self._interval(difference, error, confidence) | {"p": self._p(difference, error)})
        table = pd.DataFrame(rows, columns=["model", "other", "difference", "low", "high", "p"])
        table["p_adjusted"] = adjust(table["p"].to_numpy(dtype=np.float64))
        return table

    def ceiling_interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Interval of the ceiling: from the low end of its lower bound to the high end of its upper bound."""
        if self.ceiling is None:
            return float("nan"), float("nan")
        of_lower, of_upper = self.ceiling_intervals(confidence)
        return of_lower[0], of_upper[1]

    def ceiling_intervals(self, confidence: float = 0.95) -> list[tuple[float, float]]:
        """The intervals of the lower and of the upper bound of the ceiling; none where it was not asked for."""
        intervals = []
        for place, value in enumerate(self.ceiling or ()):
            error = self.standard_error(self._contrast({len(self.models) + place: 1.0}))
            ends = self._interval(float(value), error, confidence)
            intervals.append((ends["low"], ends["high"]))
        return intervals

    def _contrast(self, entries: dict[int, float]) -> Array:
        contrast = np.zeros(len(self.models) + 2)
        for place, weight in entries.items():
            contrast[place] = weight
        return contrast

    def _interval(self, value: float, error: float, confidence: float) -> dict[str, float]:
        if not 0 < confidence < 1:
            raise AssayError(f"confidence={confidence} is not between 0 and 1: use 0.95")
        reach = float(scipy.stats.t.ppf((1 + confidence) / 2, self.df)) * error
        return {"low": value - reach, "high": value + reach}

    def _p(self, value: float, error: float) -> float:
        return float("nan") if np.isnan(error) else two_sided_p(value, error, self.df)


def bootstrap_rdms(
    models: Any,
    rdms: Any,
    method: str = "spearman",
    *,
    resample: Resampling = "stimuli",
    draws: int = 1000,
    seed: int = 0,
    ceiling: bool = True,
    pooling: Pooling = "standardised",
    subjects: Sequence[Any] | None = None,
    names: Sequence[str] | None = None,
) -> RdmBootstrap:
    """Score models against subjects' RDMs, and resample stimuli, subjects or both to see how sure the scores are.

    A score is the mean similarity of a model to single subjects, on the scale of the noise ceiling. For the similarity
    to the mean RDM (the human-model similarity), give that one RDM as ``rdms``, and resample stimuli.

    Args:
        models: The RDMs of models, in any form that `compare_rdms` takes.
        rdms: The RDMs of subjects, of the same stimuli in the same order.
        method: The method of comparison, as in `compare_rdms`. ``spearman``, ``rho-a``, ``pearson`` and ``cosine`` are
            fast; τ is computed on resamples written out; the whitened ones allow only ``resample="subjects"``.
        resample: ``"stimuli"``, ``"subjects"`` or ``"both"``: what you want to generalise to. To resample
            stimuli takes four of them or more.
        draws: Number of resamples.
        seed: Seed of the random draws. Equal seeds give equal resamples whatever the models are.
        ceiling: Whether the noise ceiling is computed, in every resample too; it takes two subjects or more.
        pooling: How RDMs are pooled for the ceiling, as in `noise_ceiling`.
        subjects: The subject of each RDM where one has several: they are drawn, left out and counted together.
        names: The names of the models; by default those of a `stimuli.RdmSet`, or their numbers.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.random(45)      # of ten stimuli
        >>> subjects = truth + 0.3 * rng.random((4, 45))
        >>> found = bootstrap_rdms([truth, rng.random(45)], subjects, names=["true", "random"], draws=200)
        >>> found.table()[["value", "p_above_zero"]].round(2).to_numpy().tolist()
        [[0.95, 0.0], [0.19, 0.25]]

    Nili et al. 2014; Schütt et al. 2023.
    """
    method, pooling_name = method_named(method), require_pooling(pooling)
    if resample not in RESAMPLINGS:
        raise AssayError(f"resample={resample!r} is unknown{nearest(str(resample), RESAMPLINGS)}")
    require_spread(draws)
    scored, data, labels = models_and_data(models, rdms, method, names)
    group = subject_numbers(len(data), subjects)
    n_subjects, n_stimuli = len(np.unique(group)), stimuli_of(data.shape[1])
    if resample != "stimuli" and n_subjects < 2:
        raise AssayError(f"resample={resample!r} needs two subjects or more, rdms has {n_subjects}: use 'stimuli'")
    if resample != "subjects":
        require_resampled(n_stimuli, f"resample={resample!r}", "resample='subjects', or more stimuli")
    ceiling = ceiling and n_subjects > 1
    source = resampled(scored, data, method, pooling_name, resample != "subjects")
    everybody = SubjectsDrawn(np.ones(len(data), dtype=np.int32), group)
    whole = source.at(np.ones(data.shape[1], dtype=np.int32))
    values = everybody.scores(whole)

    def row(at: Resample, drawn: SubjectsDrawn) -> Array:
        bounds = drawn.ceiling(at) if ceiling else (np.nan, np.nan)
        return np.concatenate([drawn.scores(at), bounds])

    kinds = {"stimuli": ["stimuli"], "subjects": ["subjects"], "both": ["stimuli", "subjects", "both"]}[resample]
    rows: dict[str, list[Array]] = {kind: [] for kind in kinds}
    for number, (of_stimuli, of_subjects) in enumerate(_draws(n_stimuli, group, draws, seed), 1):
        if number % _TELL_EVERY == 0:
            report("resamples", number, draws)
        at = source.at(pair_weights(of_stimuli)) if resample != "subjects" else whole
        enough = np.count_nonzero(of_stimuli) >= _FEWEST_STIMULI
        for kind in kinds:
            if kind != "subjects" and not enough:
                rows[kind].append(np.full(len(values) + 2, np.nan))
                continue
            people = everybody if kind == "stimuli" else SubjectsDrawn(of_subjects, group)
            rows[kind].append(row(whole if kind == "subjects" else at, people))
    factor = {"stimuli": n_stimuli / (n_stimuli - 1), "subjects": n_subjects / (n_subjects - 1 or 1), "both": 1.0}
    drawn = {kind: np.array(of_kind) for kind, of_kind in rows.items()}
    fewest = {"stimuli": n_stimuli, "subjects": n_subjects, "both": min(n_stimuli, n_subjects)}[resample]
    return RdmBootstrap(
        labels,
        values,
        NoiseCeiling(*everybody.ceiling(whole)) if ceiling else None,
        drawn[resample][:, : len(values)],
        drawn[resample][:, len(values) :],
        fewest - 1,
        resample,
        method,
        tuple((_covariance(drawn[kind]), factor[kind]) for kind in kinds),
    )


def require_resampled(stimuli: int, argument: str, remedy: str) -> None:
    """Raise where there are too few stimuli to resample; the error names the argument that asks for it."""
    if stimuli < _FEWEST_TO_RESAMPLE:
        raise AssayError(
            f"{argument} takes {_FEWEST_TO_RESAMPLE} stimuli or more, and there are {stimuli}, of which every resample "
            f"with an RDM is the same: give {remedy}"
        )


def models_and_data(
    models: Any, rdms: Any, method: str, names: Sequence[str] | None
) -> tuple[Array, Array, tuple[str, ...]]:
    """Checked RDMs of models and of subjects, and the names of the models."""
    require_same_stimuli(models, rdms, "models", "rdms")
    scored, data = as_vectors(models, "models"), as_vectors(rdms, "rdms")
    require_same_count(scored, data, "models", "rdms")
    require_comparable(scored, method, "models")
    require_comparable(data, method, "rdms")
    labels = tuple(names if names is not None else getattr(models, "names", ()) or map(str, range(len(scored))))
    if len(labels) != len(scored):
        raise AssayError(f"names has {len(labels)} entries for {len(scored)} models: name each")
    return scored, data, labels


def _draws(n_stimuli: int, group: Array, draws: int, seed: int) -> Iterator[tuple[Array, Array]]:
    """How often each stimulus and each RDM occurs in each resample; subjects are drawn whole, by a seed of theirs."""
    seeds: tuple[Seed, Seed] = (seed, [seed, 1])
    of_stimuli = (row for part in counts(n_stimuli, draws, seeds[0]) for row in part)
    of_subjects = (row for part in counts(len(group), draws, seeds[1], groups=group) for row in part)
    return zip(of_stimuli, of_subjects, strict=True)


def _covariance(drawn: Array) -> Array:
    """Covariances over the resamples in which each two quantities are both defined."""
    return np.asarray(pd.DataFrame(drawn).cov(min_periods=2))
