"""A study of a corpus as a page: which measures predict the generalization gap, how certainly, and its networks."""

from __future__ import annotations

from typing import Any

import pandas as pd

from assay.core.csv_files import read_table
from assay.core.names import counted
from assay.core.reading import reading
from assay.report.document import (
    Document,
    DotChart,
    Facts,
    Failure,
    Items,
    Mark,
    Pictures,
    Section,
    Series,
    Table,
    Text,
)
from assay.report.figures import scatter
from assay.report.study_findings import counts, study_findings
from assay.runs.run import Run
from assay.studies.prediction import FOLDER
from assay.studies.ranking import JUDGED_BY

_PICTURED = 6  # measures drawn against the gap
NOTES = {
    "cmi_distinct": "conditional mutual information with the gap over pairs of distinct networks; 0 to 1; measures are "
    "ranked and judged by it",
    "cmi": "the same as the PGDL competition scores it, with pairs of a network with itself, which favour measures "
    "that rise with the gap",
    "p_max": "how often the best of all these measures reaches this cmi_distinct by chance; good is at most 0.05",
    "chance": "what the best of all these measures stays below by chance 95 % of the time",
    "tau": "Kendall's τ-b with the gap",
    "granulated_tau": "mean τ within groups of networks that differ in one hyper-parameter only",
    "worst_sign_error": "how often the sign is wrong in pairs one hyper-parameter apart, in the worst environment; of "
    "the measure in its expected direction, and of pairs whose gaps differ by more than the test set's noise where its "
    "size is known",
    "expected": "whether the literature expects the measure to rise or to fall with the gap",
    "direction": "whether the interval of its granulated τ is on the expected side of 0; not clear where it holds 0 "
    "or the measure cannot be told from chance (p_max)",
    "low": "lower end of a 95 % interval over networks",
    "budget": "how many inputs the measure was shown, and how often; more make it less noisy",
    "kind": "a measure, or a control: what is known without measuring",
    "partial_rho": "rank correlation with the target at equal training accuracy and hyper-parameters",
    "partial_p_max": "how often the largest such correlation of all these measures is as far from 0 by chance",
    "r2": "share of the gap's variance that is predicted in networks left out",
    "gap": "training accuracy minus test accuracy",
}
OF_PAIRS = NOTES | {
    "difference": "cmi_distinct of the measure minus that of the other, in the same networks",
    "p": "how often a difference as far from 0 arises by chance, for one pair that was named beforehand",
    "p_max": "the same for all pairs of measures and controls at once; the best measure is called better than another "
    "where it is at most 0.05, and only if the measure is itself better than chance",
}

READ = (
    "CMI is the least information, over sets of hyper-parameters, that the order of two networks by the measure "
    "gives about their order by the gap beyond those hyper-parameters; the direction is told by τ. Measures are "
    "ranked by cmi_distinct, which takes pairs of two networks; PGDL's own number, cmi, also counts pairs of a network "
    "with itself, so that a measure and its negative score differently. "
    "Intervals are value ± 1.96 standard errors over resamples of networks; they are for one measure, and p_max is for "
    "the best of all."
)
CHARTS = {
    JUDGED_BY: (
        "CMI of distinct networks",
        "Conditional mutual information with the gap; dashed: what the best of all these measures stays below by "
        "chance, 95 % of the time",
    ),
    "tau": ("Kendall's τ", "Kendall's τ with the gap"),
}


_ANEW = "a file in it may be damaged: study the corpus again, which writes it anew"


def is_study(run: Run) -> bool:
    """Whether a run has a study of a corpus in it."""
    return run.folder.exists(f"{FOLDER}/ranking.csv")


def study_document(run: Run) -> Document:
    """Read a study into a document: how well each measure predicts the gap, and the networks behind it."""
    with reading(run.folder.path(FOLDER), "a study", _ANEW):
        return _document(run)


def _document(run: Run) -> Document:
    about = run.folder.read_json(f"{FOLDER}/about.json", _ANEW)
    ranking = read_table(run.folder, f"{FOLDER}/ranking.csv", ("measure",), _ANEW)  # a grid may allow no CMI
    networks = read_table(run.folder, f"{FOLDER}/networks.csv", ("network", "gap"), _ANEW)
    comparisons = _optional(run, "comparisons", ("other", "difference", "p_max"))
    combined = _optional(run, "combined", ("of", "r2", "low", "high"))
    second = _optional(run, "test_error", ("measure",))
    doubts = about.get("doubts", [])
    sections = [
        *([Section("To be looked at first", (Items(tuple(doubts)),))] if doubts else []),
        Section("Findings", (study_findings(ranking, comparisons, about, combined), *_forest(ranking))),
        Section("Measures", (Text(READ), Table("All statistics", ranking, NOTES, f"{FOLDER}/ranking.csv"))),
        *_more(comparisons, combined, second),
        Section("Against the gap", (_scatter(networks, ranking, about["hyperparameters"]),)),
        Section("Networks", (_facts(about, networks), Table("Networks", networks, NOTES, f"{FOLDER}/networks.csv"))),
    ]
    if run.failures:
        failures = tuple(Failure(f"{f.subject} × {f.measure}", f.error or "", f.traceback or "") for f in run.failures)
        sections.append(Section("Failures", failures))
    done = sum(cell.status == "done" for cell in run.cells)
    planned = len(run.keys)
    status = "complete" if done == planned else f"{planned - done} of {planned} cells not done"
    measures, scored, controls = counts(ranking)
    subtitle = f"{len(networks)} networks, {measures} measures" + f" ({scored} scored)" * (scored < measures)
    subtitle += f", {counted(controls, 'control')}" * (controls > 0)
    return Document(
        f"assay: what predicts the gap of {about['corpus']}", subtitle, status, tuple(sections), run.manifest.to_json()
    )


def _more(comparisons: pd.DataFrame, combined: pd.DataFrame, second: pd.DataFrame) -> list[Section]:
    """The tables of comparisons, of all measures together, and of the test error as a second target."""
    tables = (
        ("The best measure compared", "Paired differences of cmi_distinct", comparisons, "comparisons", OF_PAIRS),
        ("All measures together", "R² in networks left out", combined, "combined", NOTES),
        ("Test error", "The same statistics with the test error in place of the gap", second, "test_error", NOTES),
    )
    return [
        Section(title, (Table(caption, table, notes, f"{FOLDER}/{name}.csv"),))
        for title, caption, table, name, notes in tables
        if len(table)
    ]


def _optional(run: Run, name: str, columns: tuple[str, ...]) -> pd.DataFrame:
    """A table of the study; an empty one where there is none, as in studies of earlier versions."""
    file = f"{FOLDER}/{name}.csv"
    if not run.folder.exists(file):
        return pd.DataFrame(columns=list(columns))
    return read_table(run.folder, file, columns, _ANEW)


def _forest(ranking: pd.DataFrame) -> list[DotChart]:
    if JUDGED_BY not in ranking:
        return []
    chance = float(ranking["chance"].iloc[0]) if "chance" in ranking else 0.0
    scored = ranking[ranking[JUDGED_BY].notna() & (ranking["status"] != "constant")].reset_index(drop=True)
    charts = []
    for column, (label, caption) in CHARTS.items():
        ends = (scored[f"{column}_{end}"].fillna(scored[column]) for end in ("low", "high"))
        intervals = zip(scored["measure"], scored[column], *ends, strict=True)
        marks = tuple(
            Mark(i, 0, value, (low, high), f"{measure}: {value:.3f}")
            for i, (measure, value, low, high) in enumerate(intervals)
            if value == value
        )
        if marks:
            alt = f"{caption}, one row per measure; the first is {scored['measure'].iloc[0]}"
            groups = tuple(scored["measure"])
            dashed = chance if column == JUDGED_BY else 0.0
            charts.append(DotChart(caption, label, groups, (Series(label, 0),), marks, alt, dashed, rows=True))
    return charts


def _scatter(networks: pd.DataFrame, ranking: pd.DataFrame, hyperparameters: list[str]) -> Pictures:
    """Draw the best measures against the gap, one picture each, coloured by the first hyper-parameter."""
    pictures = []
    first = networks[hyperparameters[0]] if hyperparameters else pd.Series(dtype=object)
    levels = sorted(first.unique(), key=lambda level: (isinstance(level, str), level))
    scored = ranking[ranking[JUDGED_BY].notna()] if JUDGED_BY in ranking else ranking
    for name in [name for name in scored["measure"] if name in networks][:_PICTURED]:
        groups = [(f"{first.name} {level}", networks[first == level]) for level in levels]
        picture = scatter([(level, group[name], group["gap"]) for level, group in groups], name, "gap")
        pictures.append((picture, f"{name}: gap against measure, {len(networks)} networks"))
    return Pictures("Every point is a network", tuple(pictures), large=True)


def _facts(about: dict[str, Any], networks: pd.DataFrame) -> Facts:
    gap = networks["gap"]
    known = networks.get("train_accuracy", pd.Series(dtype=float)).dropna()
    accuracy = f"{known.min():.3f} to {known.max():.3f}" if len(known) else "not given"
    rows = (
        ("corpus", about["corpus"]),
        ("hyper-parameters", ", ".join(f"{h} ({networks[h].nunique()})" for h in about["hyperparameters"])),
        ("trained on", about["train"]),
        ("tested on", about["test"]),
        ("training accuracy", accuracy),
        ("gap", f"{gap.min():.4f} to {gap.max():.4f}"),
        ("resamples", str(about["draws"])),
        ("permutations", str(about.get("permutations", 0))),
        *(("taken to mean", note) for note in about.get("notes", [])),
        *(("not asked", left_out) for left_out in about.get("not_asked", [])),
    )
    return Facts(rows)
