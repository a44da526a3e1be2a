"""The results of a search: a table of its trials, one of what was measured during them, and the best."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from assay.core.csv_files import read_table, to_csv
from assay.core.errors import AssayError
from assay.core.folder import Folder
from assay.core.reading import reading
from assay.core.records import record_of
from assay.studies.search.plan import COLUMNS, SearchPlan

FOLDER = "search"
LIVE = ("trial", "epoch", "step", "seconds", "loss", "quantity", "value", "measure_s")


@dataclass(frozen=True)
class Search:
    """What a search found.

    Args:
        trials: One row for each trial: ``trial`` (its place), ``status`` (complete, pruned, failed, running, waiting),
            the objectives, the hyper-parameters, ``seed``, ``epochs_done``, ``train_s``, ``seconds``, ``ended_by``,
            ``error``.
        live: One row for each measurement during a training: trial, epoch, step, seconds, loss, quantity, value,
            measure_s.
        about: Name, objectives with their directions, hyper-parameters, sampler, seed, failures with tracebacks.
        path: The folder of the search.
    """

    trials: pd.DataFrame
    live: pd.DataFrame
    about: dict[str, Any]
    path: str

    @property
    def best(self) -> pd.DataFrame:
        """The best complete trials: the best first for one objective, those that none beats in all for several."""
        complete = self.trials[self.trials["status"] == "complete"]
        directions: dict[str, str] = self.about["objectives"]
        if len(directions) == 1:
            (name, direction), *_ = directions.items()
            return complete.sort_values(name, ascending=direction == "minimize", kind="stable").reset_index(drop=True)
        signs = [1 if direction == "maximize" else -1 for direction in directions.values()]
        unbeaten = pareto(complete[[*directions]].to_numpy() * signs)
        return complete[unbeaten].reset_index(drop=True)

    @property
    def finished(self) -> int:
        """Number of trials that are complete or were pruned."""
        return int(self.trials["status"].isin(["complete", "pruned"]).sum())

    @property
    def failures(self) -> pd.DataFrame:
        """The trials that failed."""
        return self.trials[self.trials["status"] == "failed"]

    def write(self, folder: Folder) -> None:
        """Write the tables into the folder of a run."""
        folder.write(f"{FOLDER}/trials.csv", to_csv(self.trials))
        folder.write(f"{FOLDER}/live.csv", to_csv(self.live))
        folder.write(f"{FOLDER}/about.json", json.dumps(self.about, indent=1, default=str).encode())


def pareto(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Which rows no other row beats: as large in every column, and larger in one.

    Example:
        >>> pareto(np.array([[1, 5], [3, 3], [2, 2], [5, 1]])).tolist()
        [True, True, False, True]
    """
    at_least = np.all(values[None] >= values[:, None], axis=-1)
    larger = np.any(values[None] > values[:, None], axis=-1)
    beaten: np.ndarray[Any, Any] = np.any(at_least & larger, axis=1)
    return ~beaten


def tabulate(plan: SearchPlan, trials: Mapping[int, Any], path: str) -> Search:
    """Make tables of the trials in a database.

    Args:
        plan: The search.
        trials: Optuna's trial at each place.
        path: The folder of the search.
    """
    rows, live, tracebacks = [], [], {}
    names = [objective.name for objective in plan.objectives]
    for place, trial in trials.items():
        outcome = trial.user_attrs.get("outcome", {})
        status = {"FAIL": "failed"}.get(trial.state.name, trial.state.name.lower())
        values = trial.values if status == "complete" else [math.nan] * len(names)
        error = outcome.get("error") or ("its process ended before it did" if status == "failed" else "")
        told = {key: outcome.get(key) for key in ("epochs_done", "train_s", "seconds")}
        told["ended_by"] = outcome.get("ended_by", "")
        given = {name: trial.params.get(name) for name in plan.space}
        known = {"trial": place, "status": status, "seed": plan.seed_of(place), "error": error, **told}
        rows.append({**known, **dict(zip(names, values, strict=True)), **given})
        live += [{"trial": place, **row} for row in outcome.get("live", ())]
        if outcome.get("traceback"):
            tracebacks[place] = outcome["traceback"]
    columns = [*COLUMNS[:2], *names, *plan.space, *COLUMNS[2:]]
    about = {
        "name": plan.name,
        "objectives": {objective.name: objective.direction for objective in plan.objectives},
        "hyperparameters": {name: _words(hyperparameter) for name, hyperparameter in plan.space.items()},
        "logarithmic": [name for name, hyperparameter in plan.space.items() if getattr(hyperparameter, "log", False)],
        "fixed": dict(plan.fixed),
        "sampler": plan.sampler,
        "seed": plan.seed,
        "planned": plan.trials,
        "live": plan.pruner.quantity.name if plan.pruner is not None else None,
        "tracebacks": tracebacks,
        "plan": {key: value for key, value in plan.text.items() if key != "storage"},  # it may hold a password
    }
    return Search(pd.DataFrame(rows, columns=columns), pd.DataFrame(live, columns=[*LIVE]), about, path)


def _words(hyperparameter: Any) -> str:
    if hasattr(hyperparameter, "low"):
        return f"{hyperparameter.low:g} to {hyperparameter.high:g}{', logarithmic' if hyperparameter.log else ''}"
    return ", ".join(map(str, hyperparameter.values))


def is_search(folder: Folder) -> bool:
    """Whether a folder holds the results of a search."""
    return folder.exists(f"{FOLDER}/about.json")


@dataclass(frozen=True)
class _About:
    """What the file beside the tables of a search says."""

    name: str
    objectives: dict[str, str]
    hyperparameters: dict[str, str]
    logarithmic: list[str]
    fixed: dict[str, Any]
    sampler: str
    seed: int
    planned: int
    live: str | None
    tracebacks: dict[str, str]
    plan: dict[str, Any]


def read_search(path: str) -> Search:
    """Read the tables of a search from its folder."""
    folder = Folder(path)
    if not is_search(folder):
        raise AssayError(f"{path} is no folder of a search: it has no {FOLDER}/about.json")
    remedy = "restore it, or go on with the search, which writes it anew"
    about = folder.read_json(f"{FOLDER}/about.json", remedy)
    words = {"ended_by": str, "error": str}
    with reading(folder.path(f"{FOLDER}/about.json"), remedy=remedy):
        record_of(_About, about)
    columns = [*COLUMNS, *about["objectives"], *about["hyperparameters"]]
    trials = read_table(folder, f"{FOLDER}/trials.csv", columns, remedy, dtype=words)
    trials = trials.fillna({"ended_by": "", "error": ""})
    live = read_table(folder, f"{FOLDER}/live.csv", LIVE, remedy)
    return Search(trials, live, about, path)
