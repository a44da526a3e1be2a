"""Prediction: what each measure of a network says about its generalization gap, over a corpus."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from assay.core.csv_files import to_csv
from assay.core.errors import AssayError
from assay.core.folder import Folder
from assay.core.progress import of_more
from assay.measures.base import Measure
from assay.measures.table import Predictor
from assay.runs.evaluate import evaluate
from assay.runs.run import Run
from assay.studies.combined import FEWEST_CELLS, combined_prediction
from assay.studies.controls import (
    CONTROL,
    DETAILS,
    affordable_controls,
    cells_of,
    control_columns,
    control_predictors,
    in_words,
    partial_correlations,
)
from assay.studies.corpus.corpus import Corpus
from assay.studies.corpus.known_accuracy import accuracy_doubts
from assay.studies.ranking import JUDGED_BY, Scoring, rank
from assay.studies.statistics.cmi import IncompleteGridWarning
from assay.studies.statistics.combinations import first_component, mean, product
from assay.studies.statistics.grid import checked
from assay.studies.statistics.intervals import compare_measures

log = logging.getLogger(__name__)
Array = np.ndarray[Any, Any]
FOLDER = "study"
GI, PAL, MIXUP = (Predictor(quantity, "intra", "0") for quantity in ("gi", "pal", "end accuracy"))
NAMES = {MIXUP: "mixup", Predictor("end accuracy", "intra", "1"): "manifold mixup"}
"""What the literature calls some of the predictors."""

Combine = Callable[..., Any]
COMBINATIONS: dict[str, tuple[Combine, tuple[Predictor, ...], int]] = {
    "PCA of gi intra ℓ=0 and mixup": (first_component, (GI, MIXUP), 1),
    "pal intra ℓ=0 · ℓ=1": (product, (PAL, Predictor("pal", "intra", "1")), -1),
    "mean of pal inter and intra ℓ=0": (mean, (Predictor("pal", "inter", "0"), PAL), -1),
    "DBI · (1 − mixup)": (
        lambda dbi, mixup: np.asarray(dbi) * (1 - np.asarray(mixup)),
        (Predictor("davies-bouldin index"), MIXUP),
        1,
    ),
}
"""Combinations of Schiff et al. 2021, Table 1, made where their parts are there, however the measures are labelled.

Of each: how its parts are combined, which they are, and whether it is expected to rise (1) or fall (−1) with it."""


@dataclass(frozen=True)
class Study:
    """The predictors of every network, and how well each predicts the gap.

    Args:
        networks: The corpus' table, one column more for each predictor.
        predictors: Names of those columns.
        ranking: One row per predictor: each statistic of `Scoring` with its interval, the best first (`rank`).
        about: Name of the corpus, hyper-parameters, data, settings.
        comparisons: The best predictor compared with each other one (`compare_measures`).
        test_error: The ranking by the test error instead of the gap; empty where the accuracies are not known.
        combined: What all predictors together, and the controls, explain of the gap (`combined_prediction`).
    """

    networks: pd.DataFrame
    predictors: list[str]
    ranking: pd.DataFrame
    about: dict[str, Any] = field(default_factory=dict)
    comparisons: pd.DataFrame = field(default_factory=pd.DataFrame)
    test_error: pd.DataFrame = field(default_factory=pd.DataFrame)
    combined: pd.DataFrame = field(default_factory=pd.DataFrame)

    def write(self, folder: Folder) -> None:
        """Write the predictors and their scores into the folder of a run."""
        folder.write(f"{FOLDER}/networks.csv", to_csv(self.networks))
        folder.write(f"{FOLDER}/ranking.csv", to_csv(self.ranking))
        more = {"comparisons": self.comparisons, "test_error": self.test_error, "combined": self.combined}
        for name, table in more.items():
            if len(table):
                folder.write(f"{FOLDER}/{name}.csv", to_csv(table))
            else:
                folder.remove(f"{FOLDER}/{name}.csv")
        folder.write(
            f"{FOLDER}/about.json", json.dumps(self.about | {"predictors": self.predictors}, indent=1).encode()
        )


def study(
    corpus: Corpus,
    measures: Mapping[str, Measure],
    run: str,
    scoring: Scoring | None = None,
    *,
    processes: int = 0,
    ray: bool | str = False,
    plan: Mapping[str, Any] | None = None,
) -> tuple[Run, Study]:
    """Ask every measure of every network of a corpus, and score what they say against the gap.

    The networks are cells of a run like any other: what is done is not done again. Numbers that the corpus knows of
    its networks already (`Corpus.known`) are judged beside what is measured.
    """
    if len(corpus) < 2:
        raise AssayError(f"{corpus.name} has {len(corpus)} networks: a study needs at least two")
    first = corpus.subject(corpus.networks[0])
    for label, measure in measures.items():
        try:
            measure.check(first)
        except AssayError as error:
            raise AssayError(f"{first.name} × {label}: {error}") from error
    doubts = accuracy_doubts(corpus, first)
    for doubt in doubts:
        log.warning("%s: %s", corpus.name, doubt)
    cells = len(corpus) * len(measures)  # networks are read one by one, and so not counted before
    with of_more("cells", cells):
        done = evaluate(corpus.subjects(), measures, run, processes=processes, ray=ray, plan=plan)
    predictors, keys, budgets = predictors_and_keys(done, measures, corpus.networks)
    directions = {name: key.direction for name, key in keys.items()}
    test = corpus.test
    scoring = scoring or Scoring()
    if test is not None and scoring.test_size is None:
        scoring = replace(scoring, test_size=len(test))
    about = {
        "corpus": corpus.name,
        "train": corpus.train.description,
        "test": "not given" if test is None else test.description,
        "left_out": corpus.left_out["network"].tolist(),
        "notes": corpus.notes,
        "doubts": [*doubts, *done.manifest.notes],
    }
    known = corpus.known.loc[corpus.networks]
    known.columns = pd.Index([f"{name} (table)" if name in predictors else str(name) for name in known])
    whole = predictors.loc[corpus.networks].join(known)
    result = judge(corpus.table, whole, corpus.hyperparameters, scoring, about, directions, budgets)
    result.write(done.folder)
    return done, result


def judge(
    table: pd.DataFrame,
    predictors: pd.DataFrame,
    hyperparameters: list[str],
    scoring: Scoring | None = None,
    about: Mapping[str, Any] | None = None,
    directions: Mapping[str, int] | None = None,
    budgets: Mapping[str, str] | None = None,
) -> Study:
    """Score the predictors of networks against their gap, however the predictors were computed.

    Args:
        table: One row per network: ``network``, the hyper-parameters and ``gap``.
        predictors: One column per predictor; its index holds the networks, in the order of the table.
        hyperparameters: The columns of the table in which the networks differ by design.
        scoring: How the predictors are scored.
        about: What else the page says of the corpus: ``corpus`` (its name), ``train`` and ``test`` (its data) and
            ``left_out`` (networks that are no part of it), and ``notes``, what was guessed, in sentences.
        directions: Whether each predictor is expected to rise (1) or fall (−1) with the gap, where that is known.
        budgets: What each predictor rests on, such as ``2000 inputs × 10 draws`` (`Measure.budget`).
    """
    scoring = scoring or Scoring()
    called = {name: f"{name} (measured)" for name in predictors if name in hyperparameters}  # such as mixup
    predictors = predictors.rename(columns=called)
    directions = {called.get(name, name): sign for name, sign in (directions or {}).items()}
    budgets = {called.get(name, name): budget for name, budget in (budgets or {}).items()}
    levels, gap = table[hyperparameters], table["gap"]
    controls, detail = affordable_controls(table, hyperparameters)
    cells = cells_of(table, hyperparameters)
    facts = {
        "corpus": "corpus",
        "train": "not given",
        "test": "not given",
        "left_out": [],
        "notes": [],
        **(about or {}),
        "hyperparameters": hyperparameters,
        "sizes": list(scoring.sizes),
        "draws": scoring.draws,
        "permutations": scoring.permutations,
        "incomplete": _incomplete(gap, levels, scoring),
        "controls": in_words(table, detail),
        "not_asked": _not_asked(cells, hyperparameters),
    }
    if named := [str(name) for name in predictors if str(name).startswith(CONTROL)]:
        raise AssayError(f"the measure {named[0]!r} begins as the names of controls do: rename it")
    whole = _with_control_rows(predictors, table, hyperparameters, gap, scoring)
    ranked = rank(whole, gap, levels, scoring, directions)
    ranked = _with_controls(ranked, whole, gap, controls, cells, scoring)
    if budgets:
        ranked["budget"] = [budgets.get(name, "") for name in ranked["measure"]]
    second = pd.DataFrame()
    if "test_accuracy" in table and table["test_accuracy"].notna().all():
        error = 1 - table["test_accuracy"].astype(float)
        asked = _with_control_rows(predictors, table, hyperparameters, error, scoring)
        second = rank(asked, error, levels, scoring, directions)
        second = _with_controls(second, asked, error, controls, cells, scoring)
    known = table[[name for name in table if name not in predictors]]
    networks = known.merge(predictors, left_on="network", right_index=True, how="left")
    compared = _compared(ranked, whole, levels.assign(gap=gap), scoring)
    together = _combined(predictors, table, hyperparameters, cells, scoring)
    return Study(networks, list(predictors.columns), ranked, facts, compared, second, together)


def _with_control_rows(
    predictors: pd.DataFrame, table: pd.DataFrame, hyperparameters: list[str], target: pd.Series, scoring: Scoring
) -> pd.DataFrame:
    """The predictors, and the controls beside them."""
    controls = control_predictors(table, hyperparameters, target, scoring.seed)
    return predictors.join(controls.set_axis(predictors.index))


def _with_controls(
    ranking: pd.DataFrame,
    predictors: pd.DataFrame,
    target: pd.Series,
    controls: Array,
    cells: Array,
    scoring: Scoring,
) -> pd.DataFrame:
    """A ranking that says which rows are controls, and what each measure says of the target at equal controls."""
    is_control = ranking["measure"].str.startswith(CONTROL)
    measures = predictors[ranking["measure"][~is_control]]
    if controls.shape[1]:
        partial = partial_correlations(measures, target, controls, cells, scoring.permutations, scoring.seed)
        ranking = ranking.join(partial, on="measure")
    ranking.insert(1, "kind", np.where(is_control, "control", "measure"))
    return ranking


def _combined(
    predictors: pd.DataFrame, table: pd.DataFrame, hyperparameters: list[str], cells: Array, scoring: Scoring
) -> pd.DataFrame:
    """What all predictors that every network has explain of the gap, cross-validated; nothing for too few networks."""
    values = predictors.to_numpy(dtype=np.float64)
    measures = values[:, np.isfinite(values).all(axis=0)]
    gap = table["gap"].to_numpy(dtype=np.float64)
    if not measures.shape[1] or not len(hyperparameters):
        return pd.DataFrame()
    degrees = [control_columns(table, hyperparameters, detail) for detail in DETAILS]
    try:
        return combined_prediction(measures, degrees, gap, cells, scoring.seed)
    except AssayError:  # too few cells, or nothing to predict
        return pd.DataFrame()


def _not_asked(cells: Array, hyperparameters: list[str]) -> list[str]:
    """What a study of these networks leaves out, in sentences."""
    count = len(np.unique(cells))
    if not hyperparameters or count >= FEWEST_CELLS:
        return []
    return [
        "what all hyper-parameters predict together, and what all measures add to them: that takes networks of "
        f"{FEWEST_CELLS} cells of the grid, and these are of {count}"
    ]


def _incomplete(gap: pd.Series, hyperparameters: pd.DataFrame, scoring: Scoring) -> str | None:
    """What is missing in the grid of hyper-parameters, in a sentence; None where nothing is, or CMI is undefined."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", IncompleteGridWarning)
        try:
            row, g, grid = checked({"measure": gap.to_numpy()}, gap.to_numpy(), hyperparameters)
            scoring.statistics[JUDGED_BY].resampled(row, g, grid, np.ones((1, len(g))))
        except AssayError:  # the ranking says why
            return None
    missing = [str(w.message) for w in told if issubclass(w.category, IncompleteGridWarning)]
    return missing[0] if missing else None


def _compared(ranking: pd.DataFrame, predictors: pd.DataFrame, table: pd.DataFrame, scoring: Scoring) -> pd.DataFrame:
    """The best predictor compared with each other, by differences that hold for all pairs of predictors at once."""
    if JUDGED_BY not in ranking:
        return pd.DataFrame()
    scored = ranking["measure"][(ranking["status"] == "ok") & ranking[JUDGED_BY].notna()].tolist()
    best = next((name for name in scored if not name.startswith(CONTROL)), None)
    if len(scored) < 2 or best is None:
        return pd.DataFrame()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IncompleteGridWarning)
        values = {name: predictors[name].to_numpy() for name in [best, *(n for n in scored if n != best)]}
        gap, hyperparameters = table["gap"].to_numpy(), table.drop(columns="gap")
        statistic = scoring.statistics[JUDGED_BY]
        pairs = compare_measures(values, gap, hyperparameters, statistic, draws=scoring.draws, seed=scoring.seed)
    with_best: pd.DataFrame = pairs[pairs["measure"] == best].reset_index(drop=True)
    return with_best


def predictors(run: Run, measures: Mapping[str, Measure], networks: list[str]) -> pd.DataFrame:
    """One row per network, one column per number its measures give; NaN where one is not done."""
    return predictors_and_keys(run, measures, networks)[0]


def predictors_and_keys(
    run: Run, measures: Mapping[str, Measure], networks: list[str]
) -> tuple[pd.DataFrame, dict[str, Predictor], dict[str, str]]:
    """The numbers of all networks, which predictor each column is, and what it rests on."""
    columns: dict[str, dict[str, float]] = {}
    keys: dict[str, Predictor] = {}
    budgets: dict[str, str] = {}
    for label, measure in measures.items():
        table = run.table(label)
        budget = measure.budget(table)
        for network, rows in table.groupby("subject") if len(table) else ():
            for key, value in measure.predictors(rows).items():
                name = NAMES.get(key, str(key))
                if label != measure.name and label != type(measure).__name__:
                    name = f"{label}: {name}"
                keys[name] = key
                budgets[name] = budget
                columns.setdefault(name, {})[str(network)] = value
    frame = with_combinations(pd.DataFrame(columns, index=networks, dtype=np.float64), keys)
    combined = {name: Predictor(name, direction=COMBINATIONS[name][2]) for name in map(str, frame) if name not in keys}
    rests_on = {str(key): budgets[name] for name, key in keys.items()}
    for name in combined:
        parts = dict.fromkeys(rests_on.get(str(part), "") for part in COMBINATIONS[name][1])
        budgets[name] = "; ".join(part for part in parts if part)
    return frame, keys | combined, budgets


def with_combinations(frame: pd.DataFrame, keys: Mapping[str, Predictor] | None = None) -> pd.DataFrame:
    """Predictors of networks, and the `COMBINATIONS` whose parts are among them, defined for all networks.

    Args:
        frame: One column per predictor.
        keys: Which predictor a column is; by default the one that its name says.
    """
    if keys is None:
        said = {name: key for key, name in NAMES.items()}
        keys = {str(column): said.get(str(column), Predictor(str(column))) for column in frame}
    columns: dict[Predictor, str] = {}
    for column, key in keys.items():
        columns.setdefault(key, column)
    combined = frame.copy()
    for name, (combine, parts, _) in COMBINATIONS.items():
        chosen = [columns[part] for part in parts if part in columns]
        if len(chosen) == len(parts) and frame[chosen].notna().all(axis=None):
            try:
                combined[name] = combine(*(frame[column].to_numpy() for column in chosen))
            except AssayError:  # a part is the same for all networks: there is nothing to combine
                continue
    return combined
