"""The plan's analysis: from the predictions of all runs to tables, contrasts, rankings and verdicts (§5.6)."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from assay.broad import inference
from assay.broad.claims import CLAIMS, LEVEL, judge
from assay.broad.conditions import Contrast
from assay.broad.data import Array
from assay.broad.metrics import Metric
from assay.errors import AssayError
from assay.files import Folder

FOCAL = 6  # the condition of most interest (§5.2): planned contrasts start from it, and teams are ranked by it
MARGINS = {"MAP": 0.02, "RMSE": 0.02}

_TEXT, _WHOLE, _NUMBER, _YES = "str", "Int64", "float64", "boolean"
_SIZES = {"n_folds": _WHOLE, "n_labels": _WHOLE, "n_instances": _WHOLE}
_TESTED = {"difference": _NUMBER, "low": _NUMBER, "high": _NUMBER, "p": _NUMBER}
_PAIR = {"task": _TEXT, "metric": _TEXT, "contrast": _TEXT, "team": _TEXT}
TABLES: dict[str, dict[str, str]] = {
    "values": {"task": _TEXT, "run": _TEXT, "label": _TEXT, "fold": _WHOLE, "value": _NUMBER},
    "by_fold": {"task": _TEXT, "run": _TEXT, "fold": _WHOLE, "mean": _NUMBER, "se": _NUMBER, "n": _WHOLE},
    "grand": {"task": _TEXT, "metric": _TEXT, "run": _TEXT, "mean": _NUMBER, "se": _NUMBER, **_SIZES},
    "contrasts": {
        **_PAIR, "question": _TEXT, "focal": _TEXT, "other": _TEXT, "status": _TEXT, "reason": _TEXT,
        **_TESTED, "planned": _YES, "p_holm": _NUMBER, "plan_rule": _TEXT,
        "margin": _NUMBER, "noninferior": _YES, "noninferior_p": _NUMBER, "equivalent": _YES, "equivalent_p": _NUMBER,
        "p_better": _NUMBER, "p_comparable": _NUMBER, "p_worse": _NUMBER,
        "mdd": _NUMBER, "v_fold": _NUMBER, "v_test": _NUMBER,
        "low_t": _NUMBER, "high_t": _NUMBER, "p_t": _NUMBER,
        "paired_t_p": _NUMBER, "wilcoxon_p": _NUMBER, "sign_p": _NUMBER, **_SIZES,
    },
    "labels": {**_PAIR, "label": _TEXT, **_TESTED, "p_bh": _NUMBER, "n_folds": _WHOLE, "n_instances": _WHOLE},
    "rankings": {
        "task": _TEXT, "metric": _TEXT, "rank": _WHOLE, "team": _TEXT, "run": _TEXT, "value": _NUMBER, "se": _NUMBER,
        "tied": _YES, "plan_rule": _TEXT, "stability": _NUMBER, **_SIZES,
    },
    "claims": {"task": _TEXT, "team": _TEXT, "claim": _TEXT, "contrast": _TEXT, "verdict": _TEXT, "sentence": _TEXT},
    "status": {"task": _TEXT, "run": _TEXT, "status": _TEXT, "reason": _TEXT},
    "extra": {"task": _TEXT, "metric": _TEXT, "run": _TEXT, "mean": _NUMBER, "se": _NUMBER, **_SIZES},
}  # fmt: skip


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


@dataclass(frozen=True)
class Analysis:
    """Tables by name, as `TABLES` lists them: one observation a row."""

    tables: dict[str, pd.DataFrame]

    def write(self, folder: Folder) -> None:
        """As CSV in ``analysis/``; the same analysis gives the same bytes (12 digits)."""
        for name, table in self.tables.items():
            text = table.to_csv(index=False, float_format="%.12g", lineterminator="\n")
            folder.write(f"analysis/{name}.csv", text.encode())

    @classmethod
    def read(cls, folder: Folder) -> Analysis:
        """What `write` wrote."""
        tables = {}
        for name, columns in TABLES.items():
            if not folder.exists(f"analysis/{name}.csv"):
                raise AssayError(f"{folder.url} holds no analysis/{name}.csv: analyse the results first")
            empty = {c: [""] for c, kind in columns.items() if kind != _TEXT}
            data = io.BytesIO(folder.read(f"analysis/{name}.csv"))
            tables[name] = pd.read_csv(data, dtype=columns, keep_default_na=False, na_values=empty)
        return cls(tables)


def analyze_results(
    results: Sequence[RunResult],
    truths: Sequence[TaskTruth],
    contrasts: Sequence[Contrast],
    margins: Mapping[str, float] = MARGINS,
    bootstrap: int = 1000,
    seed: int = 0,
    extra: Sequence[RunResult] = (),
) -> Analysis:
    """Everything the plan's §5.6 asks of the results, and the statistics they need to be read.

    Values per label and fold are averaged over labels within a fold, then over folds. The five ratings
    (``text:Overall``, …) are tasks of their own and also one task ``text``, whose value in fold i is the mean over
    ratings of the RMSE in their fold i (mRMSE). Where instances have groups, the ratings share the draws of groups, so
    that what their test sets have in common counts; else their draws are independent, and the test-set variance of the
    mean of R ratings is the sum of theirs by R².

    A run that failed is shown as missing and nothing takes its place: contrasts and claims that need it are undecided.

    Args:
        results: All runs of all tasks.
        truths: Of all tasks.
        contrasts: Pairs of conditions; those from condition 6 are the planned ones, adjusted together by Holm (the
            ratings of a text task are one family, their mean another).
        margins: By metric, the largest loss that still counts as comparable.
        bootstrap: Draws of the test set.
        seed: Of the draws.
        extra: Runs to be scored beside these (learning curves, layers), in a table of their own.

    Plan §5.6, §5.1.
    """
    keys = [(r.task, r.run) for r in (*results, *extra)]
    for task, run in keys:
        if keys.count((task, run)) > 1:
            raise AssayError(f"run {run!r} of {task} is there twice: give each run once")
        if task not in {t.task for t in truths}:
            raise AssayError(f"run {run!r} is of task {task!r}, of which no truth is given")
    scored = [_scored(t, [r for r in results if r.task == t.task], truths, bootstrap, seed) for t in truths]
    beside = [_scored(t, [r for r in extra if r.task == t.task], truths, 0, seed) for t in truths]
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    rows["status"] = [row for scores in (*scored, *beside) for row in scores.statuses()]
    rows["extra"] = [row for scores in beside for row in scores.grand()]
    for scores in [*scored, *_combined(truths, scored)]:
        margin = margins.get(scores.metric.name)
        if margin is None:
            raise AssayError(f"margins has none for {scores.metric.name}: declare the largest loss that is comparable")
        rows["values"] += scores.rows()
        rows["by_fold"] += scores.by_fold()
        rows["grand"] += scores.grand()
        compared = [_compared(scores, c, team, margin) for c in contrasts for team in scores.teams]
        rows["contrasts"] += compared
        rows["labels"] += [row for c in contrasts for team in scores.teams for row in _by_label(scores, c, team)]
        rows["rankings"] += _ranked(scores, seed)
    _adjust(rows["contrasts"], "p_holm", inference.holm, only="planned")
    _adjust(rows["labels"], "p_bh", inference.benjamini_hochberg)
    rows["claims"] = _judged(rows["contrasts"])
    frames = {name: pd.DataFrame(rows[name], columns=list(columns)).astype(columns) for name, columns in TABLES.items()}
    return Analysis(frames)


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
                found = {"mean": known.mean(), "se": float(inference.standard_error(known)), "n": len(known)}
                rows.append({"task": self.task, "run": run, "fold": fold + 1, **found})
        return rows

    def grand(self) -> list[dict[str, Any]]:
        """Graph 3: mean over folds, with its standard error over folds."""
        rows = []
        for run in self.values:
            means = self.means(run)
            found = {"mean": means.mean(), "se": float(inference.standard_error(means)), **self.sizes(run)}
            rows.append({"task": self.task, "metric": self.called, "run": run, **found})
        return rows


def _scored(
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
        drawn = inference.bootstrap(
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


def _combined(truths: Sequence[TaskTruth], scored: Sequence[Scores]) -> Iterable[Scores]:
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


def _compared(scores: Scores, contrast: Contrast, team: str, margin: float) -> dict[str, Any]:
    """A row of the table of contrasts."""
    focal, other = scores.run_of(contrast.focal, team), scores.run_of(contrast.other, team)
    row: dict[str, Any] = {
        **_named(scores, contrast, team), "question": contrast.question, "focal": focal or "", "other": other or "",
        "planned": contrast.focal == FOCAL, "margin": margin,
    }  # fmt: skip
    reason = _lacking(scores, contrast, team)
    if reason or focal is None or other is None:
        return row | {"status": "undecided", "reason": reason, "plan_rule": "undecided"}
    sign = scores.metric.sign
    a, b = sign * scores.means(focal), sign * scores.means(other)
    d = a - b
    v_test = float(np.nanvar((scores.drawn(focal) - scores.drawn(other)).mean(axis=0), ddof=1))
    found, wide = inference.two_component(d, v_test), inference.two_component(d, v_test, reference="t")
    noninferior_p = inference.noninferiority_p(found.difference, found.variance, margin)
    equivalent_p = inference.equivalence_p(found.difference, found.variance, margin)
    posterior = inference.student_posterior(found.difference, found.variance, len(d) - 1, margin)
    return row | {
        "status": "ok", "reason": "",
        "difference": found.difference, "low": found.low, "high": found.high, "p": found.p,
        "plan_rule": _plan_rule(a, b, contrast.focal, contrast.other),
        "noninferior": found.low > -margin, "noninferior_p": noninferior_p,
        "equivalent": equivalent_p < LEVEL, "equivalent_p": equivalent_p,
        "p_better": posterior.better, "p_comparable": posterior.equal, "p_worse": posterior.worse,
        "mdd": inference.minimum_detectable_difference(found.variance),
        "v_fold": found.v_fold, "v_test": found.v_test,
        "low_t": wide.low, "high_t": wide.high, "p_t": wide.p,
        "paired_t_p": inference.paired_t_p(d), "wilcoxon_p": inference.wilcoxon_p(d), "sign_p": inference.sign_p(d),
        **scores.sizes(focal),
    }  # fmt: skip


def _by_label(scores: Scores, contrast: Contrast, team: str) -> list[dict[str, Any]]:
    """The same contrast label by label, to explore; none where the task has one label only."""
    focal, other = scores.run_of(contrast.focal, team), scores.run_of(contrast.other, team)
    if len(scores.labels) == 1 or focal is None or other is None or _lacking(scores, contrast, team):
        return []
    d = scores.metric.sign * (scores.values[focal] - scores.values[other])
    drawn = (scores.draws[focal] - scores.draws[other]).mean(axis=0)
    rows = []
    for c, label in enumerate(scores.labels):
        if np.isfinite(d[:, c]).all():
            found = inference.two_component(d[:, c], float(np.nanvar(drawn[c], ddof=1)))
            numbers = {"difference": found.difference, "low": found.low, "high": found.high, "p": found.p}
            sizes = {"n_folds": len(d), "n_instances": scores.instances}
            rows.append({**_named(scores, contrast, team), "label": label, **numbers, **sizes})
    return rows


def _ranked(scores: Scores, seed: int) -> list[dict[str, Any]]:
    """Teams by the mean of their focal run; those without it last, without a rank.

    Each is set beside its neighbour in the order (the one above; for the first, the one below): ``tied`` where the
    two-component interval of their difference covers 0. ``stability`` is the share of draws, of test instances and of
    folds, in which the whole order holds.
    """
    sign = scores.metric.sign
    entered = {team: scores.run_of(FOCAL, team) for team in scores.teams}
    placed = [(team, run) for team, run in entered.items() if run is not None and run in scores.values]
    placed.sort(key=lambda pair: -sign * float(scores.means(pair[1]).mean()))
    stability = float("nan")
    if len(placed) > 1:
        drawn = sign * inference.with_folds_redrawn(np.stack([scores.drawn(run) for _, run in placed]), seed)
        known = drawn[:, np.isfinite(drawn).all(axis=0)]
        stability = inference.ranking_stability(-np.arange(len(placed)), known)
    rows: list[dict[str, Any]] = []
    for place, (team, run) in enumerate(placed):
        row = {"task": scores.task, "metric": scores.called, "rank": place + 1, "team": team, "run": run}
        means = scores.means(run)
        row |= {"value": means.mean(), "se": float(inference.standard_error(means)), **scores.sizes(run)}
        if len(placed) > 1:
            _, near = placed[place - 1 if place else 1]
            v_test = float(np.nanvar((scores.drawn(run) - scores.drawn(near)).mean(axis=0), ddof=1))
            beside = inference.two_component(means - scores.means(near), v_test)
            apart = inference.standard_errors_apart(means, scores.means(near))
            row["tied"] = beside.low <= 0 <= beside.high
            row["plan_rule"] = "standard errors apart" if apart else "standard errors overlap"
        rows.append({"plan_rule": "", "stability": stability, **row})
    for team in scores.teams:
        if team not in dict(placed):
            lacking = {"team": team, "run": entered[team] or "", "plan_rule": ""}
            rows.append({"task": scores.task, "metric": scores.called, **lacking})
    return rows


def _named(scores: Scores, contrast: Contrast, team: str) -> dict[str, Any]:
    return {"task": scores.task, "metric": scores.called, "contrast": contrast.name, "team": team}


def _lacking(scores: Scores, contrast: Contrast, team: str) -> str:
    """Why a contrast cannot be computed, or an empty string."""
    for condition in (contrast.focal, contrast.other):
        run = scores.run_of(condition, team)
        if run is None:
            return f"there is no run of condition {condition} for team {team}"
        if run not in scores.values:
            return f"run {run} has no predictions to score: {scores.reasons[run]}"
    return ""


def _plan_rule(a: Array, b: Array, focal: int, other: int) -> str:
    if not inference.standard_errors_apart(a, b):
        return "no difference suggested"
    return f"{focal if a.mean() > b.mean() else other} is better"


def _adjust(rows: list[dict[str, Any]], column: str, rule: Any, only: str = "") -> None:
    """Adjusted p values within each family: a task, or all ratings of one together."""
    chosen = [row for row in rows if "p" in row and (not only or row[only])]

    def family(row: dict[str, Any]) -> str:
        before, colon, _ = str(row["task"]).partition(":")
        return before + colon

    for name in dict.fromkeys(family(row) for row in chosen):
        members = [row for row in chosen if family(row) == name]
        for row, p in zip(members, rule(np.array([row["p"] for row in members])), strict=True):
            row[column] = float(p)


def _judged(contrasts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for task, team in dict.fromkeys((row["task"], row["team"]) for row in contrasts):
        for claim in CLAIMS:
            for row in contrasts:
                if (row["task"], row["team"], row["contrast"]) == (task, team, claim.contrast):
                    verdict, sentence = judge(claim, row)
                    said = {"contrast": claim.contrast, "verdict": verdict, "sentence": sentence}
                    rows.append({"task": task, "team": team, "claim": claim.name, **said})
    return rows


def _mean(values: Array, axis: int) -> Array:
    """Mean without NaN; NaN where there is nothing else."""
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        mean: Array = np.where(known, values, 0.0).sum(axis=axis) / known.sum(axis=axis)
    return mean
