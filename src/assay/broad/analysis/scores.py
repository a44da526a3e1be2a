"""Predictions of the runs of a task, scored by the metric: by label and fold, and in resampled test sets."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.broad.analysis.extent import Extent, drawn_units, extent
from assay.broad.analysis.two_component import Interval, resampled_scores, two_component
from assay.broad.data.dataset import Array
from assay.broad.metrics import Metric
from assay.core.errors import AssayError
from assay.stats.paired import standard_error


@dataclass(frozen=True, eq=False)
class RunResult:
    """The predictions of one run of a task.

    Args:
        task: Name of the task: ``"video"``, or ``"text:Overall"`` and so on for the ratings.
        run: Key of the run, such as ``"1"``, ``"2n"``, ``"6s"``.
        condition: Number of the condition, 1 to 6.
        team: Letter of the team whose run it is; None for condition 1.
        status: ``"done"``, or why there are no predictions (or special ones).
        predictions: Predictions, folds × test instances × labels; None where there are none.
        reason: Explanation of the status.
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
    """The truth about the test instances of a task.

    Args:
        task: Name of the task, as in the results.
        metric: The metric by which predictions are scored.
        labels: Names of the classes, or of the one rating.
        targets: True values, test instances × labels.
        groups: Number of the group (film, restaurant) of each instance: whole groups are resampled. Tasks whose names
            are the same before the colon share group numbers and draws.
        ids: Id of each instance. Where there are no groups, a review that is in the test sets of several ratings is
            told by its id and drawn for all of them together.
    """

    task: str
    metric: Metric
    labels: tuple[str, ...]
    targets: Array
    groups: Array | None = None
    ids: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for what, given in (("groups", self.groups), ("ids", self.ids)):
            if given is not None and len(given) != len(self.targets):
                raise AssayError(f"{self.task}: there are {len(given)} {what} for {len(self.targets)} test instances")
        if self.targets.ndim != 2 or self.targets.shape[1] != len(self.labels):
            raise AssayError(f"{self.task}: targets are {self.targets.shape} for {len(self.labels)} labels")

    @property
    def family(self) -> str:
        """The part of the task's name before the colon, such as ``text`` of ``text:Food``."""
        return self.task.partition(":")[0]


@dataclass(frozen=True, eq=False)
class Scores:
    """The metric of all runs of a task that can be scored, and the reasons why others cannot.

    Args:
        task: Name of the task.
        metric: The metric by which predictions are scored.
        called: Name of the mean over labels: MAP, RMSE, mRMSE.
        labels: Names of the classes or ratings.
        runs: All runs of the task, also those without predictions.
        values: The metric for each run, folds × labels.
        draws: The metric in resampled test sets for each run, folds × labels × draws.
        reasons: Why a run has no values, for each run without them.
        extent: How many test instances there are, and how many of them are independent.
    """

    task: str
    metric: Metric
    called: str
    labels: tuple[str, ...]
    runs: tuple[RunResult, ...]
    values: dict[str, Array]
    draws: dict[str, Array]
    reasons: dict[str, str]
    extent: Extent

    @property
    def teams(self) -> list[str]:
        """Letters of the teams, in order of appearance."""
        return list(dict.fromkeys(r.team for r in self.runs if r.team is not None))

    def run_of(self, condition: int, team: str) -> str | None:
        """The key of a team's run of a condition; that of condition 1 is the same for all teams."""
        return next((r.run for r in self.runs if r.condition == condition and r.team in (team, None)), None)

    def means(self, run: str) -> Array:
        """The mean over labels for each fold of a run."""
        return _mean(self.values[run], axis=1)

    def drawn(self, run: str) -> Array:
        """The mean over labels in resampled test sets, folds × draws.

        A class without members in a draw is left out of that draw, for all runs.
        """
        return _mean(self.draws[run], axis=1)

    def test_variance(self, run: str, other: str) -> float:
        """Variance over test sets of the difference between two runs, each the mean over labels and folds."""
        return self.extent.inflation * float(np.nanvar((self.drawn(run) - self.drawn(other)).mean(axis=0), ddof=1))

    def interval(self, differences: Array, v_test: float) -> Interval:
        """Interval of a mean difference over folds, with the degrees of freedom that folds and test set give."""
        return two_component(differences, v_test, units=self.extent.effective)

    def sizes(self, run: str) -> dict[str, int | None]:
        """The numbers of folds, labels, instances and groups that the values of a run rest on."""
        folds, _ = self.values[run].shape
        known = int(np.isfinite(self.values[run]).all(axis=0).sum())
        e = self.extent
        counts = {"n_instances": e.instances, "n_distinct": e.distinct, "n_groups": e.groups}
        return {"n_folds": folds, "n_labels": known, **counts}

    def statuses(self) -> list[dict[str, Any]]:
        """Rows of the table of statuses, one for each run."""
        rows = []
        for r in self.runs:
            unusable = r.predictions is not None and r.run in self.reasons
            status, reason = ("invalid", self.reasons[r.run]) if unusable else (r.status, r.reason)
            rows.append({"task": self.task, "run": r.run, "status": status, "reason": reason})
        return rows

    def rows(self) -> list[dict[str, Any]]:
        """Rows for graph 1: the metric of each label and fold."""
        return [
            {"task": self.task, "run": run, "label": label, "fold": fold + 1, "value": values[fold, c]}
            for run, values in self.values.items()
            for c, label in enumerate(self.labels)
            for fold in range(len(values))
        ]

    def by_fold(self) -> list[dict[str, Any]]:
        """Rows for graph 2: the mean over labels in each fold, with its standard error over labels."""
        rows = []
        for run, values in self.values.items():
            for fold, of_labels in enumerate(values):
                known = of_labels[np.isfinite(of_labels)]
                statistics = {"mean": known.mean(), "se": float(standard_error(known)), "n": len(known)}
                rows.append({"task": self.task, "run": run, "fold": fold + 1, **statistics})
        return rows

    def grand(self) -> list[dict[str, Any]]:
        """Rows for graph 3: the mean over folds, with its standard error over folds."""
        rows = []
        for run in self.values:
            means = self.means(run)
            statistics = {"mean": means.mean(), "se": float(standard_error(means)), **self.sizes(run)}
            rows.append({"task": self.task, "metric": self.called, "run": run, **statistics})
        return rows


def scored(
    truth: TaskTruth, runs: Sequence[RunResult], truths: Sequence[TaskTruth], bootstrap: int, seed: int
) -> Scores:
    """Score all runs of one task.

    Args:
        truth: The truth about the test instances of the task.
        runs: The runs of the task.
        truths: The truths of all tasks; those of the same family share draws.
        bootstrap: Number of random draws of the test set; 0 for none.
        seed: Seed of the random draws.
    """
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
        family = [t for t in truths if t.family == truth.family]
        units = dict(zip([t.task for t in family], drawn_units(*_groups_and_ids(family)), strict=True))
        shared = units[truth.task] is not None
        drawn = resampled_scores(
            truth.metric,
            truth.targets,
            np.concatenate([p for _, p in usable]),
            bootstrap,
            [seed, zlib.crc32((truth.family if shared else truth.task).encode())],
            units[truth.task],
            np.concatenate([u for u in units.values() if u is not None]) if shared else None,
        )
        draws = dict(zip(values, np.split(drawn, len(usable)), strict=True))
    name = truth.metric.name
    of_task = extent([len(truth.targets)], *_groups_and_ids([truth]))
    return Scores(truth.task, truth.metric, name, truth.labels, tuple(runs), values, draws, reasons, of_task)


def combined(truths: Sequence[TaskTruth], scored: Sequence[Scores]) -> Iterable[Scores]:
    """Combine tasks such as ``text:Overall`` and ``text:Food`` into one task ``text`` that has all their labels."""
    for family in dict.fromkeys(t.family for t in truths if t.family != t.task):
        members = [t for t in truths if t.family == family]
        parts = [s for t, s in zip(truths, scored, strict=True) if t.family == family]
        runs = tuple({r.run: r for part in parts for r in part.runs}.values())
        values: dict[str, Array] = {}
        draws: dict[str, Array] = {}
        reasons: dict[str, str] = {}
        for run in (r.run for r in runs):
            lacking = [part for part in parts if run not in part.values]
            if lacking:
                reasons[run] = f"{lacking[0].task}: {lacking[0].reasons.get(run, 'missing')}"
            else:
                values[run] = np.concatenate([part.values[run] for part in parts], axis=1)
                if all(run in part.draws for part in parts):
                    draws[run] = np.concatenate([part.draws[run] for part in parts], axis=1)
        metric = parts[0].metric
        labels = tuple(label for part in parts for label in part.labels)
        together = extent([len(t.targets) for t in members], *_groups_and_ids(members))
        yield Scores(family, metric, f"m{metric.name}", labels, runs, values, draws, reasons, together)


def _groups_and_ids(truths: Sequence[TaskTruth]) -> tuple[list[Array | None], list[tuple[str, ...] | None]]:
    return [t.groups for t in truths], [t.ids for t in truths]


def _mean(values: Array, axis: int) -> Array:
    """The mean of the values that are not NaN; NaN where all are."""
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        mean: Array = np.where(known, values, 0.0).sum(axis=axis) / known.sum(axis=axis)
    return mean
