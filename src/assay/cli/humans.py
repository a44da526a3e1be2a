"""The command ``assay humans``: how alike people's RDMs are, and how well any model could do."""

from __future__ import annotations

from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.terminal import AsJson, out, print_json, print_table
from assay.core.errors import AssayError

if TYPE_CHECKING:
    from assay.stimuli import RdmSet

_METHODS = ("pearson", "spearman")
_LOW, _HIGH = "_low", "_high"  # of the keys of the ends of an interval
BETWEEN, CEILING, MODELS = "human-human similarity", "noise ceiling", "models"


def humans(
    path: Annotated[
        Path, typer.Argument(help="Folder of the 92-image set (92_brainRDMs.mat, …), or a file or folder of RDMs.")
    ],
    subjects: Annotated[
        str | None,
        typer.Option(help="The person of each RDM, joined by commas, where one person has several (sessions)."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(help="Method of comparison; may be given several times. By default pearson and spearman."),
    ] = None,
    bootstrap: Annotated[
        int, typer.Option(help="Number of resamples for the 95 % intervals of ceiling and models; 0 for none.")
    ] = 200,
    as_json: AsJson = False,
) -> None:
    """Say how alike the RDMs of people are, and how well any model could do (the noise ceiling).

    Human-human similarity is the mean over all pairs of RDMs. The noise ceiling has two bounds, between which the score
    of the true model, averaged over single people, is expected: set a network's "subject_mean" against them, not its
    "hms", which is the similarity to the mean of all people.
    """
    rdms, people, models = _loaded(path)
    if subjects is not None:
        people = tuple(name.strip() for name in subjects.split(","))
    methods = tuple(method or _METHODS)
    by_person = _by_person(rdms, people)
    tables = {
        BETWEEN: _between(rdms, methods),
        CEILING: _ceilings(by_person, methods, bootstrap),
        MODELS: _models(models, by_person, bootstrap),
    }
    if as_json:
        print_json(tables)
        return
    print_table(f"Human-human similarity over all pairs of {len(rdms)} RDMs", [_brief(row) for row in tables[BETWEEN]])
    out.print()
    of_people = f"Noise ceiling of {len(by_person)} people: similarity of one to the pool of the others, and of all"
    bounds = {"lower": "lower bound", "upper": "upper bound"}
    _print(of_people, tables[CEILING], bounds, f"over other stimuli and other people ({bootstrap} resamples)")
    if tables[MODELS]:
        out.print()
        about = "Models that come with the data, by Spearman: hms is the similarity to the mean of all people,"
        out.print(f"{about} subject_mean the mean similarity to single people, the scale of the ceiling", style="bold")
        scales = {"hms": "hms", "subject_mean": "subject_mean"}
        _print("", tables[MODELS], scales, "of hms over other stimuli, of subject_mean over other people too")


def _print(title: str, rows: list[dict[str, Any]], values: dict[str, str], over: str) -> None:
    """Print the values of rows by what they are called, and under them, where there are any, their intervals."""
    names = [key for key in rows[0] if key not in values and not key.endswith((_LOW, _HIGH))]
    print_table(title, [{n: row[n] for n in names} | _digits({values[k]: row[k] for k in values}) for row in rows])
    shown = [
        {name: row[name] for name in names}
        | {called: f"{row[key + _LOW]:.3f} to {row[key + _HIGH]:.3f}" for key, called in values.items()}
        for row in rows
        if all(isfinite(row[key + _LOW]) for key in values)
    ]
    if shown:
        print_table(f"95 % intervals {over}", shown)


def _brief(row: dict[str, Any]) -> dict[str, Any]:
    """The mean and the standard deviation as papers write them."""
    return {"method": row["method"], "mean (SD)": f"{row['mean']:.4f} ({row['sd']:.4f})", "pairs": row["pairs"]}


def _digits(row: dict[str, Any]) -> dict[str, Any]:
    return {key: f"{value:.5f}" if isinstance(value, float) else value for key, value in row.items()}


def _loaded(path: Path) -> tuple[RdmSet, tuple[str, ...], dict[str, Any]]:
    """The RDMs of people, the person of each, and RDMs of models by name, where the data have some."""
    from assay.stimuli import as_human_stimuli, load_brain92, load_rdms

    if not (path / "92_brainRDMs.mat").exists():
        rdms = load_rdms(path / "rdms" if (path / "rdms").is_dir() else path)
        return rdms, rdms.names, {}
    brain = load_brain92(path)
    models = {"monkey IT": brain.monkey.vectors[0]}
    if brain.models is not None:
        models = {name: brain.models[name] for name in brain.models.names if name != "monkeyIT"} | models
    return brain.sessions, as_human_stimuli(brain).subjects, models


def _between(rdms: RdmSet, methods: tuple[str, ...]) -> list[dict[str, Any]]:
    from assay.measures.similarity.ceiling import similarity_between_subjects

    rows = []
    for method in methods:
        between = similarity_between_subjects(rdms, method)
        rows.append({"method": method, "mean": float(between.mean), "sd": float(between.sd), "pairs": between.pairs})
    return rows


def _ceilings(by_person: RdmSet, methods: tuple[str, ...], draws: int) -> list[dict[str, Any]]:
    from assay.measures.similarity.ceiling import RANK_METHODS, noise_ceiling
    from assay.measures.similarity.compare import method_named

    rows = []
    for method in methods:
        views = "ranks" if method_named(method) in RANK_METHODS else "standardised values"
        for pooling, words in (("standardised", views), ("raw", "raw values")):
            bounds = noise_ceiling(by_person, method, pooling=pooling)  # type: ignore[arg-type]
            ends = {"lower": float(bounds.lower), "upper": float(bounds.upper)}
            rows.append(
                {"method": method, "pooled on": words, **ends, **_ends_of_bounds(by_person, method, pooling, draws)}
            )
    return rows


def _ends_of_bounds(by_person: RdmSet, method: str, pooling: Any, draws: int) -> dict[str, float]:
    """The ends of the intervals of both bounds; NaN for methods that resamples of stimuli make slow or undefined."""
    from assay.measures.similarity.compare import method_named
    from assay.measures.similarity.inference import bootstrap_rdms

    intervals = [(nan, nan), (nan, nan)]
    if draws and not method_named(method).startswith(("tau", "whitened")):
        intervals = bootstrap_rdms(
            by_person.mean, by_person, method, resample="both", draws=draws, pooling=pooling
        ).ceiling_intervals()
    lower, upper = intervals
    return _ends("lower", lower) | _ends("upper", upper)


def _models(models: dict[str, Any], by_person: RdmSet, draws: int) -> list[dict[str, Any]]:
    from assay.measures.similarity.compare import compare_rdms
    from assay.measures.similarity.inference import bootstrap_rdms

    if not models:
        return []
    scored = list(models.values())
    ends = {name: _ends("hms", (nan, nan)) | _ends("subject_mean", (nan, nan)) for name in models}
    if draws:
        to_mean = bootstrap_rdms(scored, by_person.mean, draws=draws, ceiling=False).table()
        to_people = bootstrap_rdms(scored, by_person, resample="both", draws=draws, ceiling=False).table()
        for key, table in (("hms", to_mean), ("subject_mean", to_people)):
            for name, low, high in zip(models, table["low"], table["high"], strict=True):
                ends[name] |= _ends(key, (float(low), float(high)))
    return [
        {
            "model": name,
            "hms": float(compare_rdms(rdm, by_person.mean)),
            "subject_mean": float(compare_rdms(rdm, by_person).mean()),
            **ends[name],
        }
        for name, rdm in models.items()
    ]


def _ends(key: str, interval: tuple[float, float]) -> dict[str, float]:
    return {key + _LOW: interval[0], key + _HIGH: interval[1]}


def _by_person(rdms: RdmSet, people: tuple[str, ...]) -> RdmSet:
    from assay.stimuli.human import mean_by_person

    if len(people) != len(rdms):
        raise AssayError(f"--subjects names {len(people)} people for {len(rdms)} RDMs: name the person of each")
    return mean_by_person(rdms, people)
