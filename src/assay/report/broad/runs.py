"""How the runs went: their status, what was tuned, what was noted, and where the evaluation departs from the plan."""

from __future__ import annotations

import pandas as pd

from assay.broad.run.results import DONE
from assay.report.broad.cells import settings_text
from assay.report.broad.evaluation import Evaluation, rows
from assay.report.document import (
    Block,
    Failure,
    Items,
    Strip,
    Table,
    Text,
)

PLAN = {"k": 10, "p": 0.7, "n": 10_000, "validation_cap": None}  # the protocol that the plan sets (§5.5.1)


def status_blocks(e: Evaluation) -> list[Block]:
    """The status of every run of every task, with the reason wherever it is not simply done."""
    tasks = [t for t in e.tasks if any((t.name, run) in e.records for run in t.runs)]
    runs = tuple(dict.fromkeys(run for task in tasks for run in task.runs))
    outcomes = []
    reasons = []
    for task in tasks:
        cells = []
        for run in runs:
            status, reason = e.status(task, run) if run in task.runs else ("no such run", "")
            tone = "good" if status == "done" else "open" if status in DONE or run not in task.runs else "bad"
            cells.append((status, tone, reason))
            if status != "done" and run in task.runs:
                reasons.append(f"{task.title}, {e.describe(run)}: {status}{': ' + reason if reason else ''}.")
        outcomes.append((task.title, tuple(cells)))
    for task_name, run in e.records:  # learning curves and layers
        status, reason = e.outcome(task_name, run)
        if "." in run and status != "done":
            reasons.append(f"{task_name}, {run}: {status}{': ' + reason if reason else ''}.")
    blocks: list[Block] = [Strip("How every run went", runs, tuple(outcomes))]
    return [*blocks, Items(tuple(reasons))] if reasons else blocks


def settings_blocks(e: Evaluation) -> list[Block]:
    """Settings chosen on the validation instances, by fold; one row where all classes chose alike."""
    labels = {t["name"]: t["labels"] for t in e.manifest["tasks"]}
    settings = []
    for (task, run), folds in e.folds.items():
        chosen = {i: [settings_text(c) for c in info.chosen] for i, info in folds.items()}
        if not chosen or "." in run:
            continue
        alike = all(len(set(c)) == 1 for c in chosen.values())
        for j, label in enumerate(["all"] if alike else labels[task]):
            row = {"task": task, "run": run, "class": label}
            settings.append(row | {f"fold {i}": c[j] if j < len(c) else "–" for i, c in chosen.items()})
    if not settings:
        return [Text("No fold is done.")]
    return [
        Text("Settings of each classifier, chosen by the task's metric on the validation instances of its fold."),
        Table("Settings by fold", pd.DataFrame(settings).fillna("–")),
    ]


def warning_blocks(e: Evaluation) -> list[Block]:
    """Departures from the plan, and the warnings that runs gave."""
    folds_by_warning: dict[tuple[str, str, str], list[int]] = {}
    for (task, run), folds in e.folds.items():
        for i, info in folds.items():
            for warning in info.warnings:
                folds_by_warning.setdefault((task, run, warning), []).append(i)
    warnings = [
        {"task": task, "run": run, "warning": warning, "folds": ", ".join(map(str, sorted(set(folds))))}
        for (task, run, warning), folds in folds_by_warning.items()
    ]
    blocks: list[Block] = [Text(f"Changes since the last edition: {'; '.join(changes(e))}.")]
    blocks.append(Items(tuple(deviations(e)) or ("The protocol is the plan's, without deviation.",)))
    if warnings:
        return [*blocks, Table("Warnings of the runs", pd.DataFrame(warnings))]
    return [*blocks, Text("No run gave a warning.")]


def changes(e: Evaluation) -> list[str]:
    """Changes since the last edition of the report, as the plan of the evaluation lists them."""
    listed = (e.manifest.get("plan") or {}).get("changes") or []
    sentences = [str(change).rstrip(".") for change in (listed if isinstance(listed, list) else [listed])]
    return sentences or (["first edition"] if e.protocol.get("iteration", 1) == 1 else ["none recorded"])


def deviations(e: Evaluation) -> list[str]:
    """Sentences on where this evaluation departs from the plan, and which contingencies were used."""
    words = {
        "k": "folds",
        "p": "as the share of text to train on",
        "n": "reviews to make the folds of",
        "validation_cap": "left-over reviews at most to tune on",
    }
    departures = [
        f"{e.protocol[key]} {words[key]} (the plan: {'all' if planned is None else planned})."
        for key, planned in PLAN.items()
        if key in e.protocol and e.protocol[key] != planned
    ]
    if e.protocol.get("ratings"):
        departures.append(f"Only these ratings: {', '.join(e.protocol['ratings'])}.")
    for row in rows(e.table("contrasts", None, "few_groups", "n_groups", "df")):
        few = f"{row['task']}: the test instances are in few or very unequal groups ({row['n_groups']}): intervals are "
        few += "those of Student's t; where systems were trained on the same groups they are still too narrow."
        if row["status"] == "ok" and row["few_groups"] and few not in departures:
            departures.append(few)
    if e.protocol.get("limit_s"):
        departures.append(f"A fit may take {e.protocol['limit_s']:g} s at most.")
    for team in e.manifest["teams"]:
        for modality, parts in team["parts"].items():
            if parts.get("trained_from"):
                departures.append(
                    f"{team['name']}, {modality}: the learner came pre-trained (declared: {parts['declaration']})."
                )
    for (task, run), record in e.records.items():
        if record.partition and record.partition != _partition(e, task):
            departures.append(f"{task}/{run} was run on another partition, {record.partition[:12]}…: not comparable.")
    return departures


def _partition(e: Evaluation, task: str) -> str:
    return next(str(t["partition"]) for t in e.manifest["tasks"] if t["name"] == task)


def failure_blocks(e: Evaluation) -> list[Block]:
    """Runs that ended in an error, with all that is known of it."""
    return [
        Failure(f"{task} × {run}: {record.status}", record.reason, record.traceback)
        for (task, run), record in e.records.items()
        if record.traceback
    ]
