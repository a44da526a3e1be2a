"""A broad evaluation as its reports see it: its tasks and teams, how every run went, and the tables of the analysis."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd

from assay.broad.analysis.analysis import Analysis
from assay.broad.conditions import CONDITIONS
from assay.broad.run.results import DONE, FoldInfo, Results, RunRecord
from assay.broad.tasks import METRIC_OF
from assay.core.errors import AssayError
from assay.core.folder import Folder

_NAME = {c.number: c.name for c in CONDITIONS}


@dataclass(frozen=True)
class TaskShown:
    """A task as the report shows it.

    Args:
        name: Name of the task in the tables: ``video``, ``text:Food``, or ``text`` for all ratings together.
        modality: Kind of data, ``video`` or ``text``.
        labels: Classes of a video task, or ratings of a text task.
        runs: Keys of its runs, without those of learning curves and layers.
        whole: Whether the task is shown in full; one rating of several is not.
    """

    name: str
    modality: str
    labels: tuple[str, ...]
    runs: tuple[str, ...]
    whole: bool

    @property
    def title(self) -> str:
        """The task's name as a heading, such as ``Text, Food``."""
        kind, _, part = self.name.partition(":")
        return f"{kind[:1].upper()}{kind[1:]}{', ' + part if part else ''}"

    @property
    def metric(self) -> str:
        """Name of the task's metric: the values of single classes or ratings, averaged over them."""
        of_one = METRIC_OF["video" if self.modality == "video" else "text"]
        return f"m{of_one}" if self.modality == "text" and len(self.labels) > 1 else of_one

    @property
    def one(self) -> str:
        """Name of the metric of a single class or rating."""
        return "average precision" if self.modality == "video" else "RMSE"

    @property
    def better(self) -> str:
        """Whether higher or lower values are better, in words."""
        return "higher is better" if self.modality == "video" else "lower is better"


class Evaluation:
    """An analysed evaluation, read once from its folder."""

    def __init__(self, folder: str) -> None:
        results = Results(folder)
        self.manifest: dict[str, Any] = results.read_manifest()
        self.files: Folder = results.folder
        self.digest = hashlib.sha256(self.files.read("manifest.json")).hexdigest()
        self.tables: dict[str, pd.DataFrame] = dict(Analysis.read(results.folder).tables)
        self.records: dict[tuple[str, str], RunRecord] = {}
        self.folds: dict[tuple[str, str], dict[int, FoldInfo]] = {}
        for task in self.manifest["tasks"]:
            for run in task["runs"]:
                self.records[task["name"], run] = results.read_run(task["name"], run)
                folds = {i: results.read_fold(task["name"], run, i) for i in range(1, self.protocol["k"] + 1)}
                self.folds[task["name"], run] = {i: fold[1] for i, fold in folds.items() if fold is not None}
        if not self.tables:
            raise AssayError(f"{folder} is not analysed yet: run assay broad analyze {folder}")

    @property
    def protocol(self) -> dict[str, Any]:
        """The settings by which the evaluation was run."""
        protocol: dict[str, Any] = self.manifest["protocol"]
        return protocol

    @property
    def name(self) -> str:
        """Name of the evaluation's folder."""
        return self.files.path().rstrip("/").rpartition("/")[2]

    @property
    def edition(self) -> str:
        """Edition of the report, such as ``iteration 2, draft``."""
        return f"iteration {self.protocol.get('iteration', 1)}, {'draft' if self.protocol.get('draft') else 'final'}"

    @cached_property
    def teams(self) -> dict[str, str]:
        """Names of the teams by letter."""
        return {team["letter"]: team["name"] for team in self.manifest["teams"]}

    def team(self, letter_or_name: Any) -> str:
        """Name of a team that a table gives by letter or name; an empty string where it gives none."""
        key = "" if letter_or_name is None or pd.isna(letter_or_name) else str(letter_or_name)
        return self.teams.get(key, key)

    def table(self, name: str, task: str | None = None, *columns: str) -> pd.DataFrame:
        """A table of the analysis, for one task or all; empty if the table or one of these columns is absent."""
        table = self.tables.get(name)
        if table is None or any(c not in table for c in ("task", *columns)):
            return pd.DataFrame(columns=["task", *columns])
        return table if task is None else table[table["task"] == task].reset_index(drop=True)

    def csv(self, name: str) -> str:
        """Path of a table's file beside the report; an empty string if there is none."""
        path = f"analysis/{name}.csv"
        return path if self.files.exists(path) else ""

    @cached_property
    def tasks(self) -> tuple[TaskShown, ...]:
        """All tasks: video first, then all ratings of the text together, then each rating."""
        single = [
            TaskShown(t["name"], t["modality"], tuple(t["labels"]), tuple(r for r in t["runs"] if "." not in r), True)
            for t in self.manifest["tasks"]
        ]
        known = {t.name for t in single}
        values = self.table("values", None, "run", "label")
        grand = self.table("grand", None, "run")
        together = []
        for name in dict.fromkeys([*grand["task"].astype(str), *values["task"].astype(str)]):
            parts = [t for t in single if t.name.startswith(f"{name}:")]
            if name in known or not parts:
                continue
            labels = dict.fromkeys(values[values["task"] == name]["label"].astype(str))
            runs = tuple(dict.fromkeys(run for t in parts for run in t.runs))
            listed = tuple(labels) or tuple(label for t in parts for label in t.labels)
            together.append(TaskShown(name, parts[0].modality, listed, runs, True))
        inside = tuple(f"{t.name}:" for t in together)
        apart = [replace(t, whole=not t.name.startswith(inside)) for t in single]
        return tuple(sorted((*together, *apart), key=lambda t: (t.modality != "video", not t.whole)))

    @cached_property
    def _statuses(self) -> dict[tuple[str, str], tuple[str, str]]:
        statuses = {key: (record.status, record.reason) for key, record in self.records.items()}
        for row in rows(self.table("status", None, "run", "status", "reason")):
            statuses[row["task"], row["run"]] = (row["status"], row["reason"])  # the analysis read the predictions too
        return statuses

    def outcome(self, task: str, run: str) -> tuple[str, str]:
        """Status of one run of a task by name, and the reason for it."""
        return self._statuses.get((task, run), ("missing", "not run yet"))

    def status(self, task: TaskShown, run: str) -> tuple[str, str]:
        """Status of a run and the reason for it; for all ratings together, the status of the worst of them."""
        if (task.name, run) in self._statuses:
            return self._statuses[task.name, run]
        parts = [
            status for (name, key), status in self._statuses.items() if name.startswith(f"{task.name}:") and key == run
        ]
        worst = [s for s in parts if s[0] not in DONE] + [s for s in parts if s[0] != "done"] + parts
        return worst[0] if worst else ("missing", "not run yet")

    def counts(self, task: TaskShown, run: str) -> bool:
        """Whether a run has results that may be shown as numbers."""
        return self.status(task, run)[0] in DONE

    def beside(self, task: TaskShown, run: str) -> dict[str, dict[str, Any]]:
        """Mean and standard error of a run and of the runs derived from it (``6s.layer1``, ``6s.share0``).

        Runs without a result are left out. For all ratings together it is the mean over ratings, where all have one.
        """
        both = [self.table(name, task.name, "run", "mean", "se") for name in ("extra", "grand")]
        results = {
            row["run"]: row
            for table in both
            for row in rows(table)
            if (row["run"] == run or row["run"].startswith(f"{run}.")) and not pd.isna(row["mean"])
        }
        if any(key != run for key in results) or (task.name, run) in self.records:
            return results if self.counts(task, run) else {k: v for k, v in results.items() if k != run}
        parts = [self.beside(t, run) for t in self.tasks if t.name.startswith(f"{task.name}:")]
        shared = set.intersection(*(set(part) for part in parts)) if parts else set()
        nan = float("nan")
        return {k: {"mean": sum(part[k]["mean"] for part in parts) / len(parts), "se": nan} for k in sorted(shared)}

    def describe(self, run: str) -> str:
        """Describe a run by key, condition and team: ``6s PRE/DUL/SLC, Stanford``."""
        number, letter = int(run[0]), run[1:].partition(".")[0]
        return f"{run} {_NAME[number]}{', ' + self.team(letter) if letter else ''}"

    def short(self, run: str) -> str:
        """Describe a run by key and condition: ``6s PRE/DUL/SLC``."""
        return f"{run} {_NAME[int(run[0])]}"


def rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table, each a dictionary by column."""
    return [{str(k): v for k, v in row.items()} for row in table.to_dict("records")]
