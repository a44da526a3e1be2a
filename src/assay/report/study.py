"""A study of a corpus as a page: which measures predict the generalization gap, how certainly, and its networks."""

from __future__ import annotations

from typing import Any

import pandas as pd

from assay.core.csv_files import read_table
from assay.core.reading import reading
from assay.report.document import (
    Document,
    DotChart,
    Facts,
    Failure,
    Findings,
    Mark,
    Pictures,
    Section,
    Series,
    Table,
    Text,
)
from assay.report.figures import scatter
from assay.runs.run import Run
from assay.studies.prediction import FOLDER

_PICTURED = 6  # measures drawn against the gap
NOTES = {
    "cmi": "conditional mutual information with the gap, as the PGDL competition scores it; 0 to 1",
    "cmi_distinct": "the same without pairs of a network with itself, which favour measures that rise with the gap: "
    "compare measures that point different ways by it",
    "tau": "Kendall's τ-b with the gap",
    "granulated_tau": "mean τ within groups of networks that differ in one hyper-parameter only",
    "worst_sign_error": "how often the sign is wrong in pairs one hyper-parameter apart, in the worst environment",
    "low": "lower end of a 95 % interval over networks",
    "gap": "training accuracy minus test accuracy",
}

READ = (
    "CMI is the least information, over pairs of hyper-parameters, that the order of two networks by the measure "
    "gives about their order by the gap beyond those hyper-parameters; the direction is told by τ. The competition "
    "counts pairs of a network with itself, which favours measures that rise with the gap; cmi_distinct does not. "
    "Intervals are value ± 1.96 standard errors over resamples of networks."
)
CHARTS = {
    "cmi": ("CMI", "Conditional mutual information with the gap; dashed: what 95 % of random orders stay below"),
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
    sections = [
        Section("Findings", (_findings(ranking, about), *_forest(ranking, about["cmi_chance"]))),
        Section("Measures", (Text(READ), Table("All statistics", ranking, NOTES, f"{FOLDER}/ranking.csv"))),
        Section("Against the gap", (_scatter(networks, ranking, about["hyperparameters"]),)),
        Section("Networks", (_facts(about, networks), Table("Networks", networks, NOTES, f"{FOLDER}/networks.csv"))),
    ]
    if run.failures:
        failures = tuple(Failure(f"{f.subject} × {f.measure}", f.error or "", f.traceback or "") for f in run.failures)
        sections.append(Section("Failures", failures))
    done = sum(cell.status == "done" for cell in run.cells)
    planned = len(run.keys)
    status = "complete" if done == planned else f"{planned - done} of {planned} cells not done"
    subtitle = f"{len(networks)} networks, {len(ranking)} measures"
    return Document(
        f"assay: what predicts the gap of {about['corpus']}", subtitle, status, tuple(sections), run.manifest.to_json()
    )


def _findings(ranking: pd.DataFrame, about: dict[str, Any]) -> Findings:
    if "cmi" not in ranking:
        reason = str(ranking.get("cmi_status", pd.Series(["no measure is there in all networks"])).iloc[0])
        return Findings((("open", "Which measure predicts the gap best?", f"Not to be said: {reason}."),))
    best, chance = ranking.iloc[0], about["cmi_chance"]
    spread = "" if pd.isna(best["cmi_low"]) else f" ({best['cmi_low']:.3f} to {best['cmi_high']:.3f})"
    sizes = " or ".join(str(s) for s in about["sizes"])
    answer = (
        f"{best['measure']}: CMI {best['cmi']:.3f}{spread} given any {sizes} hyper-parameters, "
        f"Kendall's τ {best['tau']:.2f}."
    )
    above = int((ranking["cmi"] > chance).sum())
    others = ranking[(ranking["cmi_high"] < best["cmi_low"]) & ranking["cmi"].notna()]
    beaten = f"{len(others)} of {ranking['cmi'].notna().sum() - 1} others have intervals wholly below its own."
    luck = (
        f"{above} of {len(ranking)} measures have more CMI than 95 % of random orders of these networks ({chance:.3f})."
    )
    items = [
        ("good" if best["cmi"] > chance else "open", "Which measure predicts the gap best?", answer),
        ("good" if above else "open", "Is that more than chance?", luck),
        ("good" if len(others) else "open", "Is it better than the others?", beaten),
    ]
    unscored = ranking[ranking["cmi"].isna()]
    if len(unscored):
        names = ", ".join(f"{r.measure} ({r.status})" for r in unscored.itertuples())
        items.append(("bad", "What could not be scored?", names))
    if about["left_out"]:
        left_out = f"{len(about['left_out'])} did not reach the training criterion: {', '.join(about['left_out'])}."
        items.append(("bad", "Which networks were left out?", left_out))
    if about["incomplete"]:
        items.append(("bad", "Is the grid complete?", f"{about['incomplete']}."))
    return Findings(tuple(items))


def _forest(ranking: pd.DataFrame, chance: float) -> list[DotChart]:
    if "cmi" not in ranking:
        return []
    scored = ranking[ranking["cmi"].notna() & (ranking["status"] != "constant")].reset_index(drop=True)
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
            dashed = chance if column == "cmi" else 0.0
            charts.append(DotChart(caption, label, groups, (Series(label, 0),), marks, alt, dashed, rows=True))
    return charts


def _scatter(networks: pd.DataFrame, ranking: pd.DataFrame, hyperparameters: list[str]) -> Pictures:
    """Draw the best measures against the gap, one picture each, coloured by the first hyper-parameter."""
    pictures = []
    first = networks[hyperparameters[0]] if hyperparameters else pd.Series(dtype=object)
    levels = sorted(first.unique(), key=lambda level: (isinstance(level, str), level))
    scored = ranking[ranking["cmi"].notna()] if "cmi" in ranking else ranking
    for name in scored["measure"][:_PICTURED]:
        groups = [(f"{first.name} {level}", networks[first == level]) for level in levels]
        picture = scatter([(level, group[name], group["gap"]) for level, group in groups], name, "gap")
        pictures.append((picture, f"{name}: gap against measure, {len(networks)} networks"))
    return Pictures("Every point is a network", tuple(pictures), large=True)


def _facts(about: dict[str, Any], networks: pd.DataFrame) -> Facts:
    gap = networks["gap"]
    rows = (
        ("corpus", about["corpus"]),
        ("hyper-parameters", ", ".join(f"{h} ({networks[h].nunique()})" for h in about["hyperparameters"])),
        ("trained on", about["train"]),
        ("tested on", about["test"]),
        ("training accuracy", f"{networks['train_accuracy'].min():.3f} to {networks['train_accuracy'].max():.3f}"),
        ("gap", f"{gap.min():.4f} to {gap.max():.4f}"),
        ("resamples", str(about["draws"])),
    )
    return Facts(rows)
