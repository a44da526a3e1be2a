"""Scores of predictors that somebody has computed already: a table of numbers in, a study and its page out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay.core.errors import AssayError
from assay.core.folder import Folder
from assay.runs.manifest import Manifest, environment, now
from assay.runs.run import Run
from assay.studies.corpus.network_table import Columns, NetworkTable, read_network_table
from assay.studies.prediction import Study, judge
from assay.studies.ranking import Scoring
from assay.studies.sizes import defined_sizes, notes_on_sizes

LEAST = 3  # networks; of two there is one order to tell


def score_table(
    path: str | Path,
    run: str,
    columns: Columns | None = None,
    *,
    sizes: tuple[int, ...] | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> tuple[Run, Study]:
    """Score every predictor of a table against the gap, and write the study into the folder of a run.

    Args:
        path: CSV file with one row per network: hyper-parameters, the gap (or the accuracies on training and test data)
            and any number of predictors.
        run: Folder or URL of the run; a study of a table that is there already is written anew.
        columns: Which columns hold what; by default that is guessed, and ``study.about["notes"]`` says how.
        sizes: Of the sets of hyper-parameters that conditional mutual information is conditioned on; by default 2, as
            in the PGDL competition, or as many as the table allows.
        draws: Number of resamples of the networks for the intervals.
        seed: Seed of the resamples.

    Returns:
        The run, whose report is the page of the study, and the study itself.

    Example:
        ```python
        run, study = assay.studies.score_table("numbers.csv", "runs/numbers")
        study.ranking        # one row per predictor, with every statistic and its interval
        run.report()         # the page
        ```
    """
    networks = read_network_table(path, columns, networks_are_named=False)
    _require_scorable(networks)
    notes = list(networks.notes)
    table = networks.table.drop(columns=networks.predictors)
    if sizes is None:
        sizes = defined_sizes(table["gap"], table[networks.hyperparameters])
        notes += notes_on_sizes(sizes, table[networks.hyperparameters])
    scoring = Scoring(sizes=sizes, draws=draws, seed=seed)
    about = {"corpus": Path(path).name, "notes": notes}
    predictors = networks.table.set_index("network")[networks.predictors].astype(float)
    study = judge(table, predictors, networks.hyperparameters, scoring, about)
    return _written(study, run, networks), study


def _require_scorable(networks: NetworkTable) -> None:
    """Raise an error unless the order of the networks by their gap can be told from something."""
    path, count = networks.path, len(networks.table)
    if count < LEAST:
        raise AssayError(f"{path} has {count} networks: to compare orders of networks takes {LEAST} or more")
    if not networks.hyperparameters:
        raise AssayError(
            f"{path}: all networks are in one cell, because no column is a hyper-parameter in which they differ: add "
            f"one, or name those that are (--hyperparameters); it has {networks.columns}"
        )
    gap = networks.table["gap"]
    if gap.nunique() == 1:
        raise AssayError(f"{path}: the gap is {gap.iloc[0]:g} for all networks: there is nothing to predict")
    if not networks.predictors:
        raise AssayError(
            f"{path}: no column is left to predict the gap: add columns of numbers, or name some (--predictors); it "
            f"has {'; '.join((networks.columns, *networks.notes))}"
        )
    numbers = networks.table[networks.predictors]
    if not any(column.nunique() > 1 and column.notna().all() for _, column in numbers.items()):
        raise AssayError(
            f"{path}: every predictor ({', '.join(networks.predictors)}) is the same for all networks, or missing for "
            "some: none can be scored"
        )


def _written(study: Study, place: str, networks: NetworkTable) -> Run:
    folder = Folder(place)
    before = Manifest.read_if_there(folder)
    if before is not None and before.cells:
        raise AssayError(f"run={place!r} holds a run with networks that were measured: choose another folder (--run)")
    study.write(folder)
    time = now()
    plan: dict[str, Any] = {"table": str(networks.path), "hyperparameters": networks.hyperparameters}
    Manifest("complete", time, time, plan=plan, **environment()).write(folder)
    return Run(folder)
