"""Prediction: what each measure of a network says about its generalization gap, over a corpus."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from assay.core.csv_files import to_csv
from assay.core.errors import AssayError
from assay.core.folder import Folder
from assay.core.limits import require_count
from assay.core.progress import report
from assay.measures.base import Measure
from assay.measures.table import Predictor
from assay.runs.evaluate import evaluate
from assay.runs.run import Run
from assay.studies.corpus.corpus import Corpus
from assay.studies.statistics.cmi import ConditionalMutualInformation, IncompleteGridWarning
from assay.studies.statistics.combinations import first_component, mean, product
from assay.studies.statistics.intervals import chance_level, score_measures
from assay.studies.statistics.kendall import GranulatedKendall, KendallTau
from assay.studies.statistics.sign_error import SignError
from assay.studies.statistics.statistic import Statistic

FOLDER = "study"
GI, PAL, MIXUP = (Predictor(quantity, "intra", "0") for quantity in ("gi", "pal", "end accuracy"))
NAMES = {MIXUP: "mixup", Predictor("end accuracy", "intra", "1"): "manifold mixup"}
"""What the literature calls some of the predictors."""

Combine = Callable[..., Any]
COMBINATIONS: dict[str, tuple[Combine, tuple[Predictor, ...]]] = {
    "PCA of gi intra ℓ=0 and mixup": (first_component, (GI, MIXUP)),
    "pal intra ℓ=0 · ℓ=1": (product, (PAL, Predictor("pal", "intra", "1"))),
    "mean of pal inter and intra ℓ=0": (mean, (Predictor("pal", "inter", "0"), PAL)),
    "DBI · (1 − mixup)": (
        lambda dbi, mixup: np.asarray(dbi) * (1 - np.asarray(mixup)),
        (Predictor("davies-bouldin index"), MIXUP),
    ),
}
"""Combinations of Schiff et al. 2021, Table 1, made where their parts are there, however the measures are labelled."""


@dataclass(frozen=True)
class Scoring:
    """How measures are scored over the networks.

    Args:
        sizes: Of the sets of hyper-parameters that conditional mutual information is conditioned on.
        draws: Resamples of the networks for the intervals.
        seed: Of the resamples.
    """

    sizes: tuple[int, ...] = (2,)
    draws: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.draws < 0 or self.seed < 0 or not self.sizes or min(self.sizes) < 0:
            raise AssayError(
                f"sizes={self.sizes}, draws={self.draws}, seed={self.seed}: give at least one size, and none below 0"
            )
        require_count(f"draws={self.draws}", self.draws)

    @property
    def statistics(self) -> dict[str, Statistic]:
        """The statistics to compute, by the names of their columns."""
        return {
            "cmi": ConditionalMutualInformation(sizes=self.sizes),
            "cmi_distinct": ConditionalMutualInformation(sizes=self.sizes, self_pairs=False),
            "tau": KendallTau(),
            "granulated_tau": GranulatedKendall(),
            "worst_sign_error": SignError("worst"),
        }


@dataclass(frozen=True)
class Study:
    """The predictors of every network, and how well each predicts the gap.

    Args:
        networks: The corpus' table, one column more for each predictor.
        predictors: Names of those columns.
        ranking: One row per predictor: each statistic of `Scoring` with its interval, best CMI first.
        about: Name of the corpus, hyper-parameters, data, settings.
    """

    networks: pd.DataFrame
    predictors: list[str]
    ranking: pd.DataFrame
    about: dict[str, Any] = field(default_factory=dict)

    def write(self, folder: Folder) -> None:
        """Write the predictors and their scores into the folder of a run."""
        folder.write(f"{FOLDER}/networks.csv", to_csv(self.networks))
        folder.write(f"{FOLDER}/ranking.csv", to_csv(self.ranking))
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

    The networks are cells of a run like any other: what is done is not done again.
    """
    if len(corpus) < 2:
        raise AssayError(f"{corpus.name} has {len(corpus)} networks: a study needs at least two")
    first = corpus.subject(corpus.networks[0])
    for label, measure in measures.items():
        try:
            measure.check(first)
        except AssayError as error:
            raise AssayError(f"{first.name} × {label}: {error}") from error
    done = evaluate(corpus.subjects(), measures, run, processes=processes, ray=ray, plan=plan)
    found = predictors(done, measures, corpus.networks)
    scoring = scoring or Scoring()
    table = corpus.table.merge(found, left_on="network", right_index=True, how="left")
    about = {
        "corpus": corpus.name,
        "hyperparameters": corpus.hyperparameters,
        "train": corpus.train.description,
        "test": corpus.test.description,
        "sizes": list(scoring.sizes),
        "draws": scoring.draws,
        "left_out": corpus.left_out["network"].tolist(),
        **_grid(corpus, scoring),
    }
    ranked = rank(found.loc[corpus.networks], corpus.table["gap"], corpus.table[corpus.hyperparameters], scoring)
    result = Study(table, list(found.columns), ranked, about)
    result.write(done.folder)
    return done, result


def _grid(corpus: Corpus, scoring: Scoring) -> dict[str, Any]:
    """What chance gives in this corpus, and whether combinations of hyper-parameters are missing in it."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", IncompleteGridWarning)
        try:
            hyperparameters = corpus.table[corpus.hyperparameters]
            chance = chance_level(corpus.table["gap"].to_numpy(), hyperparameters, scoring.statistics["cmi"])
        except AssayError:  # CMI is undefined here; the ranking says why
            return {"cmi_chance": None, "incomplete": None}
    missing = [str(w.message) for w in told if issubclass(w.category, IncompleteGridWarning)]
    return {"cmi_chance": chance, "incomplete": missing[0] if missing else None}


def predictors(run: Run, measures: Mapping[str, Measure], networks: list[str]) -> pd.DataFrame:
    """One row per network, one column per number its measures give; NaN where one is not done."""
    columns: dict[str, dict[str, float]] = {}
    keys: dict[str, Predictor] = {}
    for label, measure in measures.items():
        table = run.table(label)
        for network, rows in table.groupby("subject") if len(table) else ():
            for key, value in measure.predictors(rows).items():
                name = NAMES.get(key, str(key))
                if label != measure.name and label != type(measure).__name__:
                    name = f"{label}: {name}"
                keys[name] = key
                columns.setdefault(name, {})[str(network)] = value
    return with_combinations(pd.DataFrame(columns, index=networks, dtype=np.float64), keys)


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
    for name, (combine, parts) in COMBINATIONS.items():
        chosen = [columns[part] for part in parts if part in columns]
        if len(chosen) == len(parts) and frame[chosen].notna().all(axis=None):
            try:
                combined[name] = combine(*(frame[column].to_numpy() for column in chosen))
            except AssayError:  # a part is the same for all networks: there is nothing to combine
                continue
    return combined


def rank(
    predictors: pd.DataFrame, gap: pd.Series, hyperparameters: pd.DataFrame, scoring: Scoring | None = None
) -> pd.DataFrame:
    """Every predictor with all statistics of its relation to the gap, best CMI first.

    ``n`` networks; ``status`` is ``ok``, ``missing in k networks`` (nothing is scored) or ``constant``.
    """
    scoring = scoring or Scoring()
    whole = [c for c in predictors if predictors[c].notna().all() and np.isfinite(predictors[c]).all()]
    table = pd.DataFrame({"measure": list(predictors.columns), "n": len(predictors), "status": "ok"}).set_index(
        "measure"
    )
    for column in predictors:
        bad = int((~np.isfinite(predictors[column])).sum())
        if bad:
            table.loc[column, "status"] = f"missing in {bad} networks"
        elif predictors[column].nunique() == 1:
            table.loc[column, "status"] = "constant"
    for i, (name, statistic) in enumerate(scoring.statistics.items()):
        report("scoring", i, len(scoring.statistics))
        if not whole:
            break
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", IncompleteGridWarning)  # said once, in the report
                scored = score_measures(
                    {str(c): predictors[c].to_numpy() for c in whole},
                    gap.to_numpy(),
                    hyperparameters,
                    statistic,
                    draws=scoring.draws,
                    seed=scoring.seed,
                ).set_index("measure")
        except AssayError as error:
            table[f"{name}_status"] = str(error)
            continue
        for column, into in (("value", name), ("low", f"{name}_low"), ("high", f"{name}_high")):
            table[into] = scored[column]
    by = [name for name in ("cmi", "tau") if name in table]
    return table.reset_index().sort_values(by, ascending=False, na_position="last", key=np.abs).reset_index(drop=True)
