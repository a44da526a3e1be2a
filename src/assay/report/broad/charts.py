"""The graphs of a broad evaluation (the plan, §5.6) as neutral charts, before anything is drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from assay.report.broad.cells import signed
from assay.report.broad.evaluation import Evaluation, TaskShown, rows
from assay.report.document import DotChart, LineChart, Mark, Point, Series

_COLOR_OF_CONDITION = {1: 6, 2: 5, 3: 4, 4: 3, 5: 2, 6: 0}  # the focal condition is the first colour


def per_class(e: Evaluation, task: TaskShown) -> DotChart | None:
    """Graph 1: the metric of every class, one mark a fold."""
    table = _numbers(e.table("values", task.name, "run", "label", "fold", "value"), e, task, "value")
    if table.empty:
        return None
    marks = [
        Mark(
            task.labels.index(str(row["label"])), task.runs.index(str(row["run"])), float(row["value"]), None,
            f"{e.describe(str(row['run']))} · {row['label']}, fold {row['fold']}: {row['value']:.4f}",
        )
        for row in rows(table) if str(row["label"]) in task.labels
    ]  # fmt: skip
    folds = table["fold"].nunique()
    return DotChart(
        f"Graph 1. {task.title}: {task.one} by {_word(task)}, one mark a fold ({task.better})",
        task.one,
        task.labels,
        _series(e, task),
        tuple(marks),
        f"{task.one} of {table['run'].nunique()} runs for each of {len(task.labels)} {_words(task)}, {folds} folds "
        "each; the means are in a table below.",
        csv=e.csv("values"),
    )


def per_fold(e: Evaluation, task: TaskShown) -> DotChart | None:
    """Graph 2: the mean over classes in every fold, with its standard error over classes."""
    table = _numbers(e.table("by_fold", task.name, "run", "fold", "mean", "se"), e, task, "mean")
    if table.empty:
        return None
    folds = sorted(table["fold"].unique())
    marks = [
        Mark(
            folds.index(row["fold"]), task.runs.index(str(row["run"])), float(row["mean"]), _around(row),
            f"{e.describe(str(row['run']))} · fold {row['fold']}: {_value(row)}",
        )
        for row in rows(table)
    ]  # fmt: skip
    return DotChart(
        f"Graph 2. {task.title}: {task.metric} in each fold ± standard error over {_words(task)} ({task.better})",
        task.metric,
        tuple(f"fold {fold}" for fold in folds),
        _series(e, task),
        tuple(marks),
        f"{task.metric} of {table['run'].nunique()} runs in each of {len(folds)} folds, with standard errors over "
        f"{len(task.labels)} {_words(task)}.",
        csv=e.csv("by_fold"),
    )


def grand_means(e: Evaluation, task: TaskShown) -> DotChart | None:
    """Graph 3: the mean over folds, with its standard error over folds; runs without one say why."""
    table = _numbers(e.table("grand", task.name, "run", "mean", "se"), e, task, "mean")
    marks = []
    absent = []
    descriptions = []
    for i, run in enumerate(task.runs):
        rows_of_run = rows(table[table["run"].astype(str) == run])
        if not rows_of_run:
            reason = e.status(task, run)[0] if not e.counts(task, run) else "no value"
            absent.append((i, reason))
            descriptions.append(f"{run} {reason}")
            continue
        row = rows_of_run[0]
        folds = f", {int(row['n_folds'])} folds" if "n_folds" in row and not pd.isna(row["n_folds"]) else ""
        value = _value(row)
        marks.append(Mark(i, i, float(row["mean"]), _around(row), f"{e.describe(run)}: {value}{folds}"))
        descriptions.append(f"{run} {value}")
    if not marks:
        return None
    return DotChart(
        f"Graph 3. {task.title}: mean {task.metric} ± standard error over folds ({task.better})",
        f"mean {task.metric}",
        task.runs,
        _series(e, task),
        tuple(marks),
        f"Mean {task.metric} ± standard error over folds: {'; '.join(descriptions)}.",
        spread=False,
        absent=tuple(absent),
        csv=e.csv("grand"),
    )


def forest(e: Evaluation, task: TaskShown) -> DotChart | None:
    """A forest plot of all contrasts with their intervals; contrasts without one say so."""
    table = e.table("contrasts", task.name, "contrast", "team", "difference", "low", "high")
    if table.empty:
        return None
    names = list(e.teams.values())
    groups = []
    marks = []
    absent = []
    descriptions = []
    for i, row in enumerate(rows(table)):
        team = e.team(row["team"])
        groups.append(f"{row['contrast']} · {team}" if team else str(row["contrast"]))
        if pd.isna(row["difference"]):
            absent.append((i, "no comparison"))
            descriptions.append(f"{groups[-1]}: no comparison")
            continue
        ends = None if pd.isna(row["low"]) else (float(row["low"]), float(row["high"]))
        descriptions.append(f"{groups[-1]}: {difference(row)}")
        marks.append(
            Mark(i, names.index(team) if team in names else 0, float(row["difference"]), ends,
                 f"{descriptions[-1]}. {row.get('question') or ''}")
        )  # fmt: skip
    return DotChart(
        f"{task.title}: advantage in {task.metric} with 95 % two-component intervals (right of 0 is better)",
        f"advantage in {task.metric}",
        tuple(groups),
        tuple(Series(name, i % 8, i % 4) for i, name in enumerate(names)) or (Series("", 0),),
        tuple(marks),
        "; ".join(descriptions) + ".",
        reference=0.0,
        rows=True,
        spread=False,
        absent=tuple(absent),
        csv=e.csv("contrasts"),
    )


def difference(row: dict[str, Any]) -> str:
    """Write a difference with its interval, as ``+0.031 (+0.012 to +0.050)``."""
    if pd.isna(row["difference"]):
        return "no comparison"
    ends = interval(row)
    return f"{signed(row['difference'])} ({ends})" if ends else signed(row["difference"])


def interval(row: dict[str, Any]) -> str:
    """Write the interval of a difference, as ``+0.012 to +0.050``, on one line; nothing where there is none."""
    if pd.isna(row["difference"]) or pd.isna(row["low"]):
        return ""
    return f"{signed(row['low'])}\u00a0to\u00a0{signed(row['high'])}"


def learning_curves(e: Evaluation, task: TaskShown) -> LineChart | None:
    """Results of condition 6 by the share of the unlabelled data its learner was trained on; 0 is random weights."""

    def places(_: str, runs: list[str]) -> list[tuple[str, float, str]]:
        shares = sorted((_share(run), run) for run in runs if ".layer" not in run)
        return [(run, share, f"{share:.0%} of the data") for share, run in shares]

    caption = f"{task.title}: learning curves of condition 6 ({task.better}; 0 % is random weights; ± standard error)"
    return _beside_6(e, task, places, caption, "share of the unlabelled data")


def layer_contributions(e: Evaluation, task: TaskShown) -> LineChart | None:
    """Results of condition 6 with the classifier reading each layer in turn; the last is the run itself."""
    modality = [t for t in e.manifest["tasks"] if t["modality"] == task.modality]

    def places(six: str, runs: list[str]) -> list[tuple[str, float, str]]:
        depth = 1 + max(sum(run.startswith(f"{six}.layer") for run in t["runs"]) for t in modality)
        layers = sorted((int(run.partition(".layer")[2] or depth), run) for run in runs if ".share" not in run)
        return [(run, (i - 1) / max(depth - 1, 1), f"layer {i} of {depth}") for i, run in layers]

    caption = f"{task.title}: condition 6 read at each layer ({task.better}; ± standard error)"
    return _beside_6(e, task, places, caption, "relative depth: first to last layer")


def _beside_6(
    e: Evaluation,
    task: TaskShown,
    places: Callable[[str, list[str]], list[tuple[str, float, str]]],
    caption: str,
    x_label: str,
) -> LineChart | None:
    """Draw a line for each team: its run of condition 6 and the runs derived from it, each at its place on x."""
    lines = []
    for letter, team in e.teams.items():
        results = e.beside(task, f"6{letter}")
        points = [
            Point(place, results[run]["mean"], _around(results[run]), label, f"{task.metric} {_value(results[run])}")
            for run, place, label in places(f"6{letter}", list(results))
        ]
        if len(points) > 1:
            lines.append((team, tuple(points)))
    return LineChart(caption, x_label, f"mean {task.metric}", tuple(lines), csv=e.csv("extra")) if lines else None


def _share(run: str) -> float:
    """The share of the unlabelled data that a run's learner was trained on, which its key names.

    >>> _share("6s.share0.25"), _share("6s")
    (0.25, 1.0)
    """
    return float(run.partition(".share")[2] or 1)


def _numbers(table: pd.DataFrame, e: Evaluation, task: TaskShown, value: str) -> pd.DataFrame:
    """Keep the rows of runs that count and have a number: what a failed run left behind is no result."""
    counted = {run for run in task.runs if e.counts(task, run)}
    return table[table["run"].astype(str).isin(counted)].dropna(subset=[value])


def _series(e: Evaluation, task: TaskShown) -> tuple[Series, ...]:
    letters = list(e.teams)
    series = []
    for run in task.runs:
        status = "" if e.counts(task, run) else f" ({e.status(task, run)[0]})"
        shape = letters.index(run[1:]) % 2 if run[1:] in letters else 2
        series.append(Series(f"{e.short(run)}{status}", _COLOR_OF_CONDITION[int(run[0])], shape))
    return tuple(series)


def _word(task: TaskShown) -> str:
    return "class" if task.modality == "video" else "rating"


def _words(task: TaskShown) -> str:
    return "classes" if task.modality == "video" else "ratings"


def _around(row: dict[str, Any]) -> tuple[float, float] | None:
    return None if pd.isna(row["se"]) else (float(row["mean"] - row["se"]), float(row["mean"] + row["se"]))


def _value(row: dict[str, Any]) -> str:
    return f"{row['mean']:.3f}" + ("" if pd.isna(row["se"]) else f" ± {row['se']:.3f}")
