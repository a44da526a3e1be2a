"""What the runs of a task predicted, and the metric of it: by label and fold, and in test sets drawn again."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.broad.analysis.two_component import resampled_scores
from assay.broad.data.dataset import Array
from assay.broad.metrics import Metric
from assay.core.errors import AssayError
from assay.stats.paired import standard_error


@dataclass(frozen=True, eq=False)
class RunResult:
    """What one run of a task predicted.

    Args:
        task: ``"video"``, or ``"text:Overall"`` and so on for the ratings.
        run: Key, such as ``"1"``, ``"2n"``, ``"6s"``.
        condition: 1 to 6.
        team: Whose, or None for condition 1.
        status: ``"done"``, or why there is nothing (or something special) here.
        predictions: Folds × test instances × labels, or None.
        reason: More on the status.
    """

    task: str
    run: str
    condition: int
    team: str | None
    status: str
    predictions: Array | None
    reason: str = ""


@dataclass(frozen=True, eq=False)
class TaskTruth:
    """What is true of the test instances of a task.

    Args:
        task: As in the results.
        metric: By which it is scored.
        labels: Classes, or the one rating.
        targets: Test instances × labels.
        groups: Number of the group (film, restaurant) of each instance: whole groups are resampled. Tasks whose names
            share what comes before a colon share numbers, and draws. Numbers of instances will do where there are no
            groups but test sets of several ratings overlap.
    """

    task: str
    metric: Metric
    labels: tuple[str, ...]
    targets: Array
    groups: Array | None = None

    def __post_init__(self) -> None:
        if self.targets.ndim != 2 or self.targets.shape[1] != len(self.labels):
            raise AssayError(f"{self.task}: targets are {self.targets.shape} for {len(self.labels)} labels")

    @property
    def family(self) -> str:
        """``text`` of ``text:Food``."""
        return self.task.partition(":")[0]


@dataclass(frozen=True, eq=False)
class Scores:
    """The metric of all runs of a task that can be scored, and of the others why not.

    Args:
        task: Name.
        metric: By which it is scored.
        called: What the mean over labels is called: MAP, RMSE, mRMSE.
        labels: Classes or ratings.
        runs: All that were to be.
        values: By run, folds × labels.
        draws: By run, folds × labels × draws.
        reasons: By run that has no values, why.
        instances: Test instances.
    """

    task: str
    metric: Metric
    called: str
    labels: tuple[str, ...]
    runs: tuple[RunResult, ...]
    values: dict[str, Array]
    draws: dict[str, Array]
    reasons: dict[str, str]
    instances: int

    @property
    def teams(self) -> list[str]:
        """In order of appearance."""
        return list(dict.fromkeys(r.team for r in self.runs if r.team is not None))

    def run_of(self, condition: int, team: str) -> str | None:
        """Key of a team's run of a condition; of condition 1, everybody's."""
        return next((r.run for r in self.runs if r.condition == condition and r.team in (team, None)), None)

    def means(self, run: str) -> Array:
        """Mean over labels, by fold."""
        return _mean(self.values[run], axis=1)

    def drawn(self, run: str) -> Array:
        """Mean over labels, folds × draws; a class without members in a draw is left out of it, for all runs."""
        return _mean(self.draws[run], axis=1)

    def test_variance(self, run: str, other: str) -> float:
        """Variance over test sets of the difference between two runs, each the mean over labels and folds."""
        return float(np.nanvar((self.drawn(run) - self.drawn(other)).mean(axis=0), ddof=1))

    def sizes(self, run: str) -> dict[str, int]:
        """On how many folds, labels and instances the numbers of a run rest."""
        folds, _ = self.values[run].shape
        known = int(np.isfinite(self.values[run]).all(axis=0).sum())
        return {"n_folds": folds, "n_labels": known, "n_instances": self.instances}

    def statuses(self) -> list[dict[str, Any]]:
        """One row a run."""
        rows = []
        for r in self.runs:
            unusable = r.predictions is not None and r.run in self.reasons
            status, reason = ("invalid", self.reasons[r.run]) if unusable else (r.status, r.reason)
            rows.append({"task": self.task, "run": r.run, "status": status, "reason": reason})
        return rows

    def rows(self) -> list[dict[str, Any]]:
        """Graph 1: the metric of each label and fold."""
        return [
            {"task": self.task, "run": run, "label": label, "fold": fold + 1, "value": values[fold, c]}
            for run, values in self.values.items()
            for c, label in enumerate(self.labels)
            for fold in range(len(values))
        ]

    def by_fold(self) -> list[dict[str, Any]]:
        """Graph 2: mean over labels in each fold, with its standard error over labels."""
        rows = []
        for run, values in self.values.items():
            for fold, of_labels in enumerate(values):
                known = of_labels[np.isfinite(of_labels)]
                found = {"mean": known.mean(), "se": float(standard_error(known)), "n": len(known)}
                rows.append({"task": self.task, "run": run, "fold": fold + 1, **found})
        return rows

    def grand(self) -> list[dict[str, Any]]:
        """Graph 3: mean over folds, with its standard error over folds."""
        rows = []
        for run in self.values:
            means = self.means(run)
            found = {"mean": means.mean(), "se": float(standard_error(means)), **self.sizes(run)}
            rows.append({"task": self.task, "metric": self.called, "run": run, **found})
        return rows


def scored(
    truth: TaskTruth, runs: Sequence[RunResult], truths: Sequence[TaskTruth], bootstrap: int, seed: int
) -> Scores:
    """Values and draws of all runs of one task."""
    reasons: dict[str, str] = {}
    usable: list[tuple[str, Array]] = []
    for r in runs:
        if r.predictions is None:
            reasons[r.run] = f"{r.status}{f' ({r.reason})' if r.reason else ''}"
            continue
        first = usable[0][1].shape if usable else r.predictions.shape
        if r.predictions.shape[1:] != truth.targets.shape or r.predictions.shape[0] != first[0]:
            raise AssayError(
                f"{truth.task}, run {r.run}: predictions are {r.predictions.shape}, folds × instances × labels should "
                f"be {(first[0], *truth.targets.shape)}"
            )
        fault = truth.metric.fault(r.predictions)
        if fault:
            reasons[r.run] = fault
        else:
            usable.append((r.run, r.predictions))
    values = {run: np.stack([truth.metric.values(truth.targets, fold) for fold in p]) for run, p in usable}
    draws: dict[str, Array] = {}
    if bootstrap and usable:
        shared = truth.groups is not None
        alike = [t.groups for t in truths if t.family == truth.family and t.groups is not None]
        drawn = resampled_scores(
            truth.metric,
            truth.targets,
            np.concatenate([p for _, p in usable]),
            bootstrap,
            [seed, zlib.crc32((truth.family if shared else truth.task).encode())],
            truth.groups,
            np.concatenate(alike) if shared else None,
        )
        draws = dict(zip(values, np.split(drawn, len(usable)), strict=True))
    called, n = truth.metric.name, len(truth.targets)
    return Scores(truth.task, truth.metric, called, truth.labels, tuple(runs), values, draws, reasons, n)


def combined(truths: Sequence[TaskTruth], scored: Sequence[Scores]) -> Iterable[Scores]:
    """Of tasks such as ``text:Overall``, ``text:Food``: one task ``text`` whose labels are theirs."""
    for family in dict.fromkeys(t.family for t in truths if t.family != t.task):
        parts = [s for t, s in zip(truths, scored, strict=True) if t.family == family]
        runs = tuple({r.run: r for part in parts for r in part.runs}.values())
        values, draws, reasons = {}, {}, {}
        for run in (r.run for r in runs):
            lacking = [part for part in parts if run not in part.values]
            if lacking:
                reasons[run] = f"{lacking[0].task}: {lacking[0].reasons.get(run, 'missing')}"
            else:
                values[run] = np.concatenate([part.values[run] for part in parts], axis=1)
                draws[run] = np.concatenate([part.draws[run] for part in parts], axis=1)
        metric, labels = parts[0].metric, tuple(label for part in parts for label in part.labels)
        n = sum(part.instances for part in parts)
        yield Scores(family, metric, f"m{metric.name}", labels, runs, values, draws, reasons, n)


def _mean(values: Array, axis: int) -> Array:
    """Mean without NaN; NaN where there is nothing else."""
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        mean: Array = np.where(known, values, 0.0).sum(axis=axis) / known.sum(axis=axis)
    return mean
