"""A search as a page: its best trials, what each hyper-parameter does to the objectives, and what ended trials."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from assay.core.folder import Folder
from assay.core.names import showable
from assay.core.page import Page
from assay.core.reading import reading
from assay.report.document import (
    Code,
    Document,
    Facts,
    Failure,
    Findings,
    LineChart,
    Pictures,
    Point,
    Section,
    Table,
    Text,
)
from assay.report.figures import as_png, styled
from assay.report.html import html, write_page
from assay.stats.correlation import spearman
from assay.stats.multiplicity import holm
from assay.stats.rank_correlation import spearman_p
from assay.studies.search.table import FOLDER, Search, read_search

_SHOWN = 10  # best trials in the first table
_LINES = 8  # trials whose live quantity is drawn
NOTES = {
    "trial": "place of the trial in the plan, which decides its seed",
    "train_s": "seconds of training, without live measures",
    "seconds": "seconds of the whole trial",
    "ended_by": "what ended the training early: convergence, or falling behind the population",
    "rho": "Spearman's rank correlation of hyper-parameter and objective over complete trials",
    "p_holm": "chance of a correlation as large without any relation, corrected by Holm for all rows of this table",
    "best_level": "the value whose trials have the best median",
}
READ = (
    "Rank correlations see only relations that rise or fall throughout, one hyper-parameter at a time. Where trials "
    "were not drawn at random (TPE), or were ended early by how they did, they describe these trials and test nothing."
)


def write_search_report(path: str, file: str | Path | None = None) -> str:
    """Write the page of a search, ``report.html`` in its folder or another file; return its path."""
    search = read_search(path)
    with reading(path, "a search", "a file in its folder search may be damaged: restore it, or go on with the search"):
        return search_page(search, file).path


def search_page(search: Search, file: str | Path | None = None) -> Page:
    """Write the page of a search into its folder, or another file, and return it."""
    return write_page(html(search_document(search)), Folder(search.path), file)


def search_document(search: Search) -> Document:
    """Read a search into a document."""
    about = search.about
    planned, finished = about["planned"], search.finished
    complete = search.trials[search.trials["status"] == "complete"]
    sections = [Section("Findings", tuple(_first(search)))]
    if len(complete) > 1:
        table = relations(search)
        numbers = Table("Hyper-parameters and objectives", table, NOTES)
        sections.append(Section("Hyper-parameters", (Text(READ), numbers, _pictures(search, complete))))
    if len(search.live):
        sections.append(Section("During training", (_live(search),)))
    sections.append(
        Section("Trials", (Table("All trials", _readable(search, search.trials), NOTES, f"{FOLDER}/trials.csv"),))
    )
    if len(search.failures):
        failures = [
            Failure(f"trial {row.trial}", str(row.error), about["tracebacks"].get(str(row.trial), ""))
            for row in search.failures.itertuples()
        ]
        sections.append(Section("Failures", tuple(failures)))
    sections.append(
        Section(
            "What was asked",
            (_facts(about), Code(yaml.safe_dump(about["plan"], sort_keys=False, allow_unicode=True))),
            folded=True,
        )
    )
    status = "complete" if finished == planned else f"{planned - finished} of {planned} trials not finished"
    counts = search.trials["status"].value_counts()
    subtitle = ", ".join(f"{count} {status}" for status, count in counts.items())
    return Document(f"assay: search {about['name']}", subtitle, status, tuple(sections), about)


def _first(search: Search) -> list[Any]:
    """What a reader wants first: the best trial, how many ended how, and a table of the best."""
    objectives: dict[str, str] = search.about["objectives"]
    best = search.best
    if best.empty:
        return [Findings((("open", "Which hyper-parameters are best?", "Not to be said: no trial is complete."),))]
    if len(objectives) == 1:
        top = best.iloc[0]
        reached = ", ".join(f"{name} {top[name]:.4g}" for name in objectives)
        answer = f"Trial {top['trial']}: {reached} with {_given(search, top)}."
    else:
        answer = _unbeaten(search, best)
    items = [("good", "Which hyper-parameters are best?", answer)]
    if len(objectives) == 1 and len(best) > 1:
        name = next(iter(objectives))
        second = f"The second, trial {best.iloc[1]['trial']}, has {best.iloc[1][name]:.4g}; the median trial "
        spread = f"has {best[name].median():.4g}. One seed for each: another would give other numbers."
        items.append(("open", "By how much?", second + spread))
    early = search.trials[search.trials["ended_by"] != ""]
    if len(early):
        ways = ", ".join(f"{count} by {way}" for way, count in early["ended_by"].value_counts().items())
        items.append(("open", "Were trainings ended early?", f"{len(early)} of {len(search.trials)}: {ways}."))
    if len(search.failures):
        first = search.failures.iloc[0]
        words = f"{len(search.failures)}; the first is trial {first['trial']}: {first['error']}"
        items.append(("bad", "Which trials failed?", words))
    columns = ["trial", *objectives, *search.about["hyperparameters"], "epochs_done", "seconds"]
    caption = "The best trials" if len(objectives) == 1 else "Trials that none beats"
    return [Findings(tuple(items)), Table(caption, _readable(search, best[columns].head(_SHOWN)), NOTES)]


def _unbeaten(search: Search, best: pd.DataFrame) -> str:
    """Which trials none beats in all objectives, and the best of them by each objective alone."""
    objectives: dict[str, str] = search.about["objectives"]
    names = [str(trial) for trial in best["trial"].head(_SHOWN)]
    trials = f"{', '.join(names)}{', …' if len(best) > _SHOWN else ''}"
    which = f"trials {trials} ({len(best)} in all)" if len(best) > 1 else f"trial {trials}"
    sentences = [f"No other trial beats {which} in all objectives."]
    for name, direction in objectives.items():
        top = best.sort_values(name, ascending=direction == "minimize", kind="stable").iloc[0]
        reached = ", ".join(f"{other} {top[other]:.4g}" for other in objectives)
        sentences.append(f"Best by {name}: trial {top['trial']} ({reached}) with {_given(search, top)}.")
    return " ".join(sentences)


def _given(search: Search, trial: pd.Series) -> str:
    return ", ".join(f"{name} {_value(trial[name])}" for name in search.about["hyperparameters"])


def relations(search: Search) -> pd.DataFrame:
    """How each hyper-parameter goes with each objective over complete trials: rank correlation, or the best level."""
    complete = search.trials[search.trials["status"] == "complete"]
    rows = []
    for name in search.about["hyperparameters"]:
        for objective, direction in search.about["objectives"].items():
            row: dict[str, Any] = {"hyper-parameter": name, "objective": objective, "n": len(complete)}
            given = complete[name]
            row |= {"rho": np.nan, "p_holm": np.nan, "best_level": None}
            if pd.api.types.is_numeric_dtype(given) and not pd.api.types.is_bool_dtype(given):
                if given.nunique() > 1 and complete[objective].nunique() > 1 and len(complete) > 2:
                    x, y = given.to_numpy(dtype=float), complete[objective].to_numpy(dtype=float)
                    row |= {"rho": spearman(x, y), "p_holm": spearman_p(x, y)}
            else:
                medians = complete.groupby(given.astype(str))[objective].median()
                row["best_level"] = str(medians.idxmin() if direction == "minimize" else medians.idxmax())
            rows.append(row)
    table = pd.DataFrame(rows)
    table["p_holm"] = holm(table["p_holm"].to_numpy())
    return table


def _pictures(search: Search, complete: pd.DataFrame) -> Pictures:
    """Draw each objective against each hyper-parameter, a point for every complete trial."""
    logarithmic = search.about["logarithmic"]
    items = []
    for objective in search.about["objectives"]:
        for name in search.about["hyperparameters"]:
            picture = _scatter(complete[name], complete[objective], name in logarithmic)
            items.append((picture, f"{objective} against {name}, {len(complete)} trials"))
    return Pictures("Every point is a complete trial", tuple(items), large=True)


def _scatter(x: pd.Series, y: pd.Series, log: bool) -> bytes:
    with styled():
        figure = Figure(figsize=(3.6, 2.9), dpi=130, layout="constrained")
        axes: Any = figure.subplots()
        if pd.api.types.is_numeric_dtype(x) and not pd.api.types.is_bool_dtype(x):
            axes.scatter(x, y, s=16, color="#0072b2")
            if log:
                axes.set_xscale("log")
                axes.xaxis.set_minor_formatter(NullFormatter())
        else:
            levels = sorted(x.astype(str).unique())
            axes.scatter([levels.index(str(value)) for value in x], y, s=16, color="#0072b2")
            axes.set_xticks(range(len(levels)), map(showable, levels))
            axes.set_xlim(-0.5, len(levels) - 0.5)
        axes.set_xlabel(showable(str(x.name)))
        axes.set_ylabel(showable(str(y.name)))
        axes.spines[["top", "right"]].set_visible(False)
        return as_png(figure)


def _live(search: Search) -> LineChart:
    """Draw the live quantity of the best trials, then of others, over the epochs."""
    order = [*search.best["trial"], *(t for t in search.trials["trial"] if t not in set(search.best["trial"]))]
    live = search.live[search.live["value"].notna()]
    status = dict(zip(search.trials["trial"], search.trials["status"], strict=True))
    drawn = [trial for trial in order if trial in set(live["trial"])][:_LINES]
    lines = []
    for trial in drawn:
        rows = live[live["trial"] == trial]
        points = tuple(
            Point(float(row.epoch), float(row.value), None, f"epoch {row.epoch}", f"{row.value:.4g}")
            for row in rows.itertuples()
        )
        lines.append((f"trial {trial} ({status[trial]})", points))
    quantity = str(live["quantity"].iloc[0])
    caption = f"{quantity} during training, {len(drawn)} of {live['trial'].nunique()} trials, the best first"
    span = (float(live["epoch"].min()), float(max(live["epoch"].max(), live["epoch"].min() + 1)))
    return LineChart(caption, "epoch", quantity, tuple(lines), csv=f"{FOLDER}/live.csv", x_range=span)


def _facts(about: dict[str, Any]) -> Facts:
    rows: list[tuple[str, str]] = [("objectives", ", ".join(f"{d} {o}" for o, d in about["objectives"].items()))]
    rows += about["hyperparameters"].items()
    rows += [(name, f"{value} (fixed)") for name, value in about["fixed"].items()]
    rows += [("sampler", about["sampler"]), ("seed", str(about["seed"])), ("trials", str(about["planned"]))]
    return Facts(tuple(rows))


def _readable(search: Search, trials: pd.DataFrame) -> pd.DataFrame:
    """The table with hyper-parameters of four significant digits: three decimals would hide a small learning rate."""
    shown = trials.copy()
    for name in search.about["hyperparameters"]:
        if pd.api.types.is_float_dtype(shown[name]):
            shown[name] = [None if pd.isna(value) else f"{value:.4g}" for value in shown[name]]
    return shown


def _value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def columns_shown(search: Search) -> list[str]:
    """The columns of the table of trials that a terminal shows."""
    return ["trial", "status", *search.about["objectives"], *search.about["hyperparameters"], "epochs_done", "seconds"]
