"""How object matching is shown: sentences, the accuracy by what changed beside chance, and the table."""

from __future__ import annotations

from typing import Any

import pandas as pd

from assay.report.document import DotChart, Items, Mark, Series, Table, Text
from assay.report.measures.section import shows
from assay.report.measures.sentences import number_sentences
from assay.report.measures.stimuli import described
from assay.runs.manifest import MeasureRecord
from assay.runs.tables import Tables

NOTES = {
    "factor": "in what the match differs from the probe; mix: in several; all: all trials",
    "accuracy": "share of trials in which the most similar picture shows the same object",
    "low": "lower end of the 95 % interval over objects",
    "high": "upper end of the 95 % interval over objects",
    "chance": "one over the pictures of a gallery",
    "n": "trials",
    "objects": "objects that were probed",
    "status": "ok, or why the layer has no accuracy",
}


@shows("matching")
def section(label: str, record: MeasureRecord, tables: Tables) -> list[Any]:
    """The blocks of a report for one measure of object matching."""
    table = tables.table(label)
    shown = described(record.settings["objects"])
    first = table.iloc[0]
    pictures = round(1 / first["chance"])
    alike = record.settings.get("distractors") == "alike"
    others = "taken under the conditions of the match" if alike else "drawn at random"
    blocks: list[Any] = [
        Text(
            f"Shown: {shown}. A probe is compared, by the cosine of a layer's responses, with a gallery of {pictures} "
            f"pictures: one of the same object, in which something changed, and {pictures - 1} of other objects, "
            f"{others}. Chance is {first['chance']:.3g}; pictures that are equally similar share the match."
        )
    ]
    if sentences := number_sentences(tables.evidence(label)):
        blocks.append(Items(tuple(sentences)))
    blocks.append(_chart(table))
    blocks.append(Table("Object matching by what changed", table, NOTES))
    return blocks


def _chart(table: pd.DataFrame) -> DotChart:
    factors = list(dict.fromkeys(table["factor"]))
    networks = list(dict.fromkeys(table["subject"]))
    marks = []
    absent = {}
    for row in table.to_dict("records"):
        group = factors.index(row["factor"])
        if pd.isna(row["accuracy"]):
            absent[group] = str(row["status"])
            continue
        ends = None if pd.isna(row["low"]) else (float(row["low"]), float(row["high"]))
        detail = f"{row['n']} trials with {row['objects']} objects"
        marks.append(Mark(group, networks.index(row["subject"]), float(row["accuracy"]), ends, detail))
    return DotChart(
        "Accuracy by what changed (bars: 95 % intervals over objects; dashed: chance)",
        "accuracy",
        tuple(map(str, factors)),
        tuple(Series(str(network), i) for i, network in enumerate(networks)),
        tuple(marks),
        f"Accuracy of {len(networks)} networks by {len(factors)} factors",
        reference=float(table["chance"].iloc[0]),
        absent=tuple(absent.items()) if not marks else (),
    )
