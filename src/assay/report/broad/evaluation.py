"""A broad evaluation as its reports see it: what was asked, how every run went, and the tables of the analysis."""

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
    """A task of the report.

    Args:
        name: As in the tables: ``video``, ``text:Food``, or ``text`` for all ratings together.
        modality: Video or text.
        labels: Classes or ratings.
        runs: Keys of its runs, without those of learning curves and layers.
        whole: Whether it is shown in full; one rating of several is not.
    """

    name: str
    modality: str
    labels: tuple[str, ...]
    runs: tuple[str, ...]
    whole: bool

    @property
    def title(self) -> str:
        """Such as ``Text, Food``."""
        kind, _, part = self.name.partition(":")
        return f"{kind[:1].upper()}{kind[1:]}{', ' + part if part else ''}"

    @property
    def metric(self) -> str:
        """What its values are called: those of a class, averaged over classes."""
        of_one = METRIC_OF["video" if self.modality == "video" else "text"]
        return f"m{of_one}" if self.modality == "text" and len(self.labels) > 1 else of_one

    @property
    def one(self) -> str:
        """What the value of one class is called."""
        return "average precision" if self.modality == "video" else "RMSE"

    @property
    def better(self) -> str:
        """Which values are better."""
        return "higher is better" if self.modality == "video" else "lower is better"


class Evaluation:
    """An evaluation folder, read once."""

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
                found = {i: results.read_fold(task["name"], run, i) for i in range(1, self.protocol["k"] + 1)}
                self.folds[task["name"], run] = {i: fold[1] for i, fold in found.items() if fold is not None}
        if not self.tables:
            raise AssayError(f"{folder} is not analysed yet: run assay broad analyze {folder}")

    @property
    def protocol(self) -> dict[str, Any]:
        """How it was run."""
        found: dict[str, Any] = self.manifest["protocol"]
        return found

    @property
    def name(self) -> str:
        """Of the folder."""
        return self.files.path().rstrip("/").rpartition("/")[2]

    @property
    def edition(self) -> str:
        """Such as ``iteration 2, draft``."""
        return f"iteration {self.protocol.get('iteration', 1)}, {'draft' if self.protocol.get('draft') else 'final'}"

    @cached_property
    def teams(self) -> dict[str, str]:
        """Name by letter."""
        return {team["letter"]: team["name"] for team in self.manifest["teams"]}

    def team(self, said: Any) -> str:
        """A team as a table names it, by its letter or its name; nothing for none."""
        known = "" if said is None or pd.isna(said) else str(said)
        return self.teams.get(known, known)

    def table(self, name: str, task: str | None = None, *columns: str) -> pd.DataFrame:
        """A table of the analysis, of one task; empty where there is none, or where a column it needs is absent."""
        found = self.tables.get(name)
        if found is None or any(c not in found for c in ("task", *columns)):
            return pd.DataFrame(columns=["task", *columns])
        return found if task is None else found[found["task"] == task].reset_index(drop=True)

    def csv(self, name: str) -> str:
        """The file of a table beside the report; nothing if it is not there."""
        place = f"analysis/{name}.csv"
        return place if self.files.exists(place) else ""

    @cached_property
    def tasks(self) -> tuple[TaskShown, ...]:
        """Video first, then all ratings of the text together, then each rating."""
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
        known = {key: (record.status, record.reason) for key, record in self.records.items()}
        for row in rows(self.table("status", None, "run", "status", "reason")):
            known[row["task"], row["run"]] = (row["status"], row["reason"])  # the analysis looked at the predictions
        return known

    def outcome(self, task: str, run: str) -> tuple[str, str]:
        """How one run went, and why."""
        return self._statuses.get((task, run), ("missing", "not run yet"))

    def status(self, task: TaskShown, run: str) -> tuple[str, str]:
        """How a run went, and why; of all ratings together, how the worst of them went."""
        if (task.name, run) in self._statuses:
            return self._statuses[task.name, run]
        parts = [
            found for (name, key), found in self._statuses.items() if name.startswith(f"{task.name}:") and key == run
        ]
        worst = [s for s in parts if s[0] not in DONE] + [s for s in parts if s[0] != "done"] + parts
        return worst[0] if worst else ("missing", "not run yet")

    def counts(self, task: TaskShown, run: str) -> bool:
        """Whether a run has results that may be shown as numbers."""
        return self.status(task, run)[0] in DONE

    def beside(self, task: TaskShown, run: str) -> dict[str, dict[str, Any]]:
        """Mean and standard error of a run and of those beside it (``6s.layer1``, ``6s.share0``) that have a result.

        Of all ratings together, the mean over ratings, where all have one.
        """
        both = [self.table(name, task.name, "run", "mean", "se") for name in ("extra", "grand")]
        found = {
            row["run"]: row
            for table in both
            for row in rows(table)
            if (row["run"] == run or row["run"].startswith(f"{run}.")) and not pd.isna(row["mean"])
        }
        if any(key != run for key in found) or (task.name, run) in self.records:
            return found if self.counts(task, run) else {k: v for k, v in found.items() if k != run}
        parts = [self.beside(t, run) for t in self.tasks if t.name.startswith(f"{task.name}:")]
        shared = set.intersection(*(set(part) for part in parts)) if parts else set()
        nan = float("nan")
        return {k: {"mean": sum(part[k]["mean"] for part in parts) / len(parts), "se": nan} for k in sorted(shared)}

    def describe(self, run: str) -> str:
        """A run in words: ``6s PRE/DUL/SLC, Stanford``."""
        number, letter = int(run[0]), run[1:].partition(".")[0]
        return f"{run} {_NAME[number]}{', ' + self.team(letter) if letter else ''}"

    def short(self, run: str) -> str:
        """A run in a few words: ``6s PRE/DUL/SLC``."""
        return f"{run} {_NAME[int(run[0])]}"


def rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a table by column."""
    return [{str(k): v for k, v in row.items()} for row in table.to_dict("records")]
