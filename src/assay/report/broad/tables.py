"""The results of one task in numbers: contrasts, ranking, and the mean of every class and run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from assay.report.broad.cells import p_value, said, signed
from assay.report.broad.charts import interval
from assay.report.broad.evaluation import Evaluation, TaskShown, rows
from assay.report.document import (
    Table,
)

NOTES = {
    "difference": "mean over folds of the difference; positive: the first condition is better",
    "95 % interval": "two components: variance over folds and over resampled test sets",
    "p": "two-sided, of the two-component interval",
    "p (Holm)": "adjusted for the planned contrasts of the task, those of missing runs included",
    "plan rule": "whether the intervals mean ± standard error over folds overlap; raises many false alarms",
    "p (Benjamini–Hochberg)": "adjusted so that at most 5 % of what is called significant is false",
    "not inferior": "whether the lower end of the interval is above −δ (with few groups that of the 97.5 % interval)",
    "δ": "margin registered before the first result",
    "smallest detectable": "true difference that a single test at 5 % finds with a probability of 80 %",
}
LEADS = ("difference", "95 % interval")  # what a narrow screen shows first


def sizes(e: Evaluation, task: TaskShown) -> str:
    """A sentence on the sizes of a task: its metric, classes, instances and folds."""
    task_record = next((t for t in e.manifest["tasks"] if t["name"] == task.name), None)
    kinds = ("class", "classes") if task.modality == "video" else ("rating", "ratings")
    what = f"{task.metric}, {task.better}; {len(task.labels)} {kinds[len(task.labels) > 1]}"
    counted = _counted(e, task)
    if task_record is None:
        return f"{what}, each with a partition of its own; {e.protocol['k']} folds{counted and f'; {counted}'}."
    validation = f", {task_record['validation']:,} more to tune on" if task_record["validation"] else ""
    return (
        f"{what}; {task_record['training']:,} training instances in {e.protocol['k']} folds{validation}; "
        f"{counted or format(task_record['test'], ',') + ' test instances'} ({task_record['data']})."
    )


def _counted(e: Evaluation, task: TaskShown) -> str:
    """How many test instances a task has, and how many of them are distinct; nothing where no run has a result."""
    counts = rows(e.table("grand", task.name, "n_instances", "n_distinct", "n_groups"))
    if not counts:
        return ""
    instances, distinct, groups = (counts[0][k] for k in ("n_instances", "n_distinct", "n_groups"))
    words = f"{instances:,} test instances"
    if distinct < instances:
        words += f", which are {distinct:,} distinct reviews"
    return words if pd.isna(groups) else f"{words}, in {groups:,} groups"


def contrasts_table(e: Evaluation, task: TaskShown) -> Table | None:
    """All contrasts of a task in numbers."""
    table = e.table("contrasts", task.name, "contrast", "team", "difference", "low", "high")
    if table.empty:
        return None
    table_rows = []
    for row in rows(table):
        undecided = pd.isna(row["difference"])
        cells: dict[str, Any] = {"contrast": row["contrast"], "team": e.team(row["team"]) or "–"}
        cells["difference"] = "undecided" if undecided else signed(row["difference"])
        cells["95 % interval"] = interval(row) or "–"
        for column, name in (("p", "p"), ("p_holm", "p (Holm)")):
            if column in row:
                cells[name] = "–" if pd.isna(row[column]) else p_value(row[column])
        for column, name in (("plan_rule", "plan rule"), ("noninferior", "not inferior")):
            if column in row:
                cells[name] = "–" if undecided else said(row[column])
        for column, name in (("margin", "δ"), ("mdd", "smallest detectable")):
            if column in row:
                cells[name] = "–" if pd.isna(row[column]) else f"{row[column]:.3f}"
        if table.get("reason", pd.Series(dtype=str)).any():
            cells["why"] = row["reason"] or "–"
        table_rows.append(cells)
    return Table(f"{task.title}: contrasts", pd.DataFrame(table_rows), NOTES, e.csv("contrasts"), LEADS)


def class_contrasts_table(e: Evaluation, task: TaskShown) -> Table | None:
    """Planned contrasts of each class by itself, for exploration."""
    table = e.table("labels", task.name, "contrast", "team", "label", "difference", "low", "high", "p", "p_bh")
    table_rows = [
        {
            "contrast": row["contrast"],
            "team": e.team(row["team"]),
            "class" if task.modality == "video" else "rating": row["label"],
            "difference": signed(row["difference"]),
            "95 % interval": interval(row) or "–",
            "p": p_value(row["p"]),
            "p (Benjamini–Hochberg)": p_value(row["p_bh"]),
        }
        for row in rows(table)
        if str(row["contrast"]).startswith("6")
    ]
    if not table_rows:
        return None
    caption = f"{task.title}: contrasts one by one (exploratory)"
    return Table(caption, pd.DataFrame(table_rows), NOTES, e.csv("labels"), LEADS)


def ranking_table(e: Evaluation, task: TaskShown) -> Table | None:
    """The teams ranked by their results in condition 6; one ranking for each metric and task."""
    table = e.table("rankings", task.name, "rank", "team", "value")
    if table.empty:
        return None
    table_rows = []
    for row in rows(table):
        no_result = pd.isna(row["value"])
        cells: dict[str, Any] = {"rank": "–" if no_result or pd.isna(row["rank"]) else int(row["rank"])}
        cells["team"] = e.team(row["team"])
        if "run" in row:
            cells["run"] = row["run"]
        metric = row.get("metric") or task.metric
        cells[f"mean {metric}"] = "no result" if no_result else f"{row['value']:.3f}"
        for column, name in (("tied", "tied"), ("plan_rule", "plan rule")):
            if column in row:
                cells[name] = said(row[column]) or "–"
        if "stability" in row:
            cells["order kept in"] = "–" if pd.isna(row["stability"]) else f"{row['stability']:.0%} of resamples"
        table_rows.append(cells)
    return Table(
        f"{task.title}: ranking by condition 6 ({task.better})", pd.DataFrame(table_rows), {}, e.csv("rankings"),
        tuple(name for name in table_rows[0] if name.startswith("mean ")),
    )  # fmt: skip


def class_table(e: Evaluation, task: TaskShown) -> Table | None:
    """Mean over folds of each class and run; a run without a result has its status instead."""
    table = e.table("values", task.name, "run", "label", "value")
    if table.empty:
        return None
    means = table.assign(run=table["run"].astype(str)).groupby(["label", "run"], sort=False)["value"].mean()
    table_rows = []
    for label in task.labels:
        row: dict[str, Any] = {"class" if task.modality == "video" else "rating": label}
        for run in task.runs:
            value = means.get((label, run), np.nan)
            row[run] = e.status(task, run)[0] if not e.counts(task, run) else "–" if pd.isna(value) else f"{value:.3f}"
        table_rows.append(row)
    caption = f"{task.title}: mean {task.one} over {e.protocol['k']} folds"
    return Table(caption, pd.DataFrame(table_rows), {run: e.describe(run) for run in task.runs}, e.csv("values"))
