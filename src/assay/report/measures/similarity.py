"""How human-model similarity is shown: sentences, a curve across layers, scores beside the noise ceiling, RDMs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from assay.report.document import DotChart, Items, LineChart, Mark, Pictures, Point, Series, Table, Text
from assay.report.figures import as_png
from assay.report.many import MANY
from assay.report.measures.section import shows
from assay.report.measures.sentences import digits
from assay.report.measures.stimuli import described
from assay.report.rdm_figures import mds_figure, rdm_figure, rdm_icon
from assay.runs.manifest import MeasureRecord
from assay.runs.tables import Tables
from assay.stats.scaling import mds, stress
from assay.stimuli.rdm_pictures import rdm_from_png, thumbnails_from

NOTES = {
    "kind": "a layer; all layers concatenated; a baseline; a bound of the noise ceiling",
    "hms": "similarity to the mean RDM of people",
    "low": "lower end of the 95 % interval of hms (bootstrap over images)",
    "high": "upper end of the 95 % interval of hms",
    "subject_mean": "mean similarity to the RDMs of single people, the scale of the noise ceiling",
    "subject_low": "lower end of the 95 % interval of subject_mean (bootstrap over images and people)",
    "subject_high": "upper end of the 95 % interval of subject_mean",
    "features": "features of the layer; 0 where the row is of no layer",
    "n": "images",
    "people": "people",
}
_PICTURED = 10  # number of layers pictured at most, evenly over the depth
_FULL = 3  # networks whose RDM and MDS are drawn in full size


@shows("human-similarity")
def section(label: str, record: MeasureRecord, tables: Tables) -> list[Any]:
    """The blocks of a report for one measure of human-model similarity."""
    table = tables.table(label)
    settings = record.settings
    shown = described(settings["stimuli"])
    first = table[table["subject"] == table["subject"].iloc[0]]  # baselines, ceiling and people are the same for all
    blocks: list[Any] = [
        Text(
            f"Shown: {shown}. The RDM of each layer (dissimilarity: {settings['metric']}) is compared with those of "
            f"people ({settings['method']}), on two scales that must not be mixed: hms is the similarity to the mean "
            "RDM of people; subject_mean is the mean similarity to single people, and only that may be set against the "
            "noise ceiling."
        ),
        Items(tuple(_sentences(table, first))),
        _curve(table, first),
        _scores(table, first),
    ]
    if table["subject"].nunique() <= MANY:
        blocks += [_small(str(subject), rows) for subject, rows in table.groupby("subject", sort=False)]
    blocks += _full(table, first)
    drawn = ["order", "rdm", "thumbnails"]
    scored = table[table["kind"] != "people"].drop(columns=drawn, errors="ignore").reset_index(drop=True)
    blocks.append(Table("Human-model similarity by layer", scored, NOTES))
    return blocks


def _sentences(table: pd.DataFrame, first: pd.DataFrame) -> list[str]:
    sentences = []
    baselines = first[first["kind"] == "baseline"]
    scores = zip(baselines["layer"], baselines["hms"].astype(float), strict=True)
    said = ", ".join(f"{name} {digits(hms, '.3f')}" for name, hms in scores)
    if said:
        sentences.append(f"Without any network (hms): {said}.")
    bounds = first[first["kind"] == "ceiling"]
    if len(bounds) == 2:
        lower, upper = (_value(row, "subject_mean", "subject_low", "subject_high") for _, row in bounds.iterrows())
        sentences.append(
            f"Noise ceiling (subject_mean): lower bound {lower}, upper bound {upper}. The true model is expected "
            "between the two, and no model above the upper. (In parentheses: 95 % intervals.)"
        )
    for subject, rows in table.groupby("subject", sort=False):
        if table["subject"].nunique() > MANY:
            break
        layers = rows[(rows["kind"] == "layer") & np.isfinite(rows["hms"])]
        together = rows[rows["kind"] == "all"].iloc[0]
        if layers.empty:
            sentences.append(f"{subject}: no layer has an RDM ({rows['status'].iloc[0]}).")
            continue
        best = layers.loc[layers["hms"].idxmax()]
        whole = _value(together) if np.isfinite(together["hms"]) else f"undefined ({together['status']})"
        sentences.append(
            f"{subject}: {whole} with all layers together; highest at {best['layer']}, {_value(best)}, the best of "
            f"{len(layers)} and so partly luck."
        )
    return sentences


def _value(row: pd.Series, value: str = "hms", low: str = "low", high: str = "high") -> str:
    """A number of a row, with its interval where it has one."""
    spread = "" if pd.isna(row[low]) else f" ({digits(row[low], '.3f')} to {digits(row[high], '.3f')})"
    return f"{digits(row[value], '.3f')}{spread}"


def _curve(table: pd.DataFrame, first: pd.DataFrame) -> LineChart:
    lines = []
    for subject, every in table.groupby("subject", sort=False):
        rows = every[every["kind"] == "layer"]
        points = []
        for i, (_, row) in enumerate(rows.iterrows()):
            if pd.isna(row["hms"]):
                continue
            band = None if pd.isna(row["low"]) else (float(row["low"]), float(row["high"]))
            depth = i / max(len(rows) - 1, 1)
            points.append(Point(depth, float(row["hms"]), band, str(row["layer"]), _value(row)))
        lines.append((str(subject), tuple(points)))
    pixels = first[(first["kind"] == "baseline") & (first["layer"] == "pixels")]["hms"]
    reference = ("pixels", float(pixels.iloc[0])) if len(pixels) else None
    return LineChart(
        "Similarity to the mean RDM of people across layers (band: 95 % interval over images)",
        "relative depth: input to output",
        "human-model similarity (hms)",
        tuple(lines),
        reference,
    )


def _scores(table: pd.DataFrame, first: pd.DataFrame) -> DotChart:
    """All layers of each network, and the baselines, beside the noise ceiling; the highest first."""
    together = table[(table["kind"] == "all") & np.isfinite(table["subject_mean"])]
    if len(together) > MANY:
        together = together.nlargest(MANY, "subject_mean")
    groups: list[str] = []
    marks: list[Mark] = []
    for series, rows, name in ((0, together, "subject"), (1, first[first["kind"] == "baseline"], "layer")):
        for _, row in rows.sort_values("subject_mean", ascending=False).iterrows():
            ends = row["subject_low"], row["subject_high"]
            interval = None if pd.isna(ends[0]) else (float(ends[0]), float(ends[1]))
            detail = f"{row[name]}: {_value(row, 'subject_mean', 'subject_low', 'subject_high')}"
            marks.append(Mark(len(groups), series, float(row["subject_mean"]), interval, detail))
            groups.append(str(row[name]))
    bounds = first[first["kind"] == "ceiling"]["subject_mean"].tolist()
    return DotChart(
        "Mean similarity to single people beside the noise ceiling: all layers together, and baselines (bars: 95 % "
        "intervals over images and people)",
        "mean similarity to single people (subject_mean)",
        tuple(groups),
        (Series("networks", 0), Series("baselines", 6, 1)),
        tuple(marks),
        f"Mean similarity to single people of {len(groups)} networks and baselines, and the noise ceiling",
        rows=True,
        spread=False,
        band=("noise ceiling", bounds[0], bounds[1]) if len(bounds) == 2 else None,
    )


def _small(subject: str, rows: pd.DataFrame) -> Pictures:
    """RDMs of some layers, of all together and of people, one pixel for each pair."""
    layers = rows[(rows["kind"] == "layer") & (rows["rdm"].map(len) > 0)]
    step = max(-(-len(layers) // _PICTURED), 1)
    ends = rows[rows["kind"].isin(["all", "people"]) & (rows["rdm"].map(len) > 0)]
    chosen = pd.concat([layers.iloc[::step], ends])
    items = tuple(
        (
            rdm_icon(rdm_from_png(bytes(row["rdm"]))),
            str(row["layer"]) if pd.isna(row["hms"]) else f"{row['layer']}: {digits(row['hms'], '.2f')}",
        )
        for _, row in chosen.iterrows()
    )
    return Pictures(f"RDMs of {subject} by layer, with hms (dark: alike, bright: unlike)", items)


def _full(table: pd.DataFrame, first: pd.DataFrame) -> list[Pictures]:
    """The RDM and the MDS of people and of the networks most like them, with the stimuli."""
    people = first[first["kind"] == "people"]
    if people.empty or not len(people["rdm"].iloc[0]):
        return []
    pictures = thumbnails_from(bytes(people["thumbnails"].iloc[0]))
    together = table[(table["kind"] == "all") & (table["rdm"].map(len) > 0)].nlargest(_FULL, "hms")
    drawn = [("People, mean", people["rdm"].iloc[0])]
    drawn += [(f"{row['subject']}, all layers", row["rdm"]) for _, row in together.iterrows()]
    matrices, planes = [], []
    for name, rdm in drawn:
        percentiles = rdm_from_png(bytes(rdm)) * (100 / 255)
        matrices.append((as_png(rdm_figure(percentiles, pictures, label="percentile of dissimilarity")), name))
        points = mds(percentiles)
        planes.append((as_png(mds_figure(points, pictures)), f"{name} (stress {stress(percentiles, points):.2f})"))
    which = f"people and the {len(drawn) - 1} networks most like them" if len(drawn) > 1 else "people"
    return [
        Pictures(f"RDMs of {which}, with the images", tuple(matrices), large=True),
        Pictures(f"The images in a plane, by their dissimilarities (MDS), for {which}", tuple(planes), large=True),
    ]
