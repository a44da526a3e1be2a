"""How measures of single numbers are shown: a sentence for each key number, a chart that compares networks, a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from assay.report.document import DotChart, Items, Mark, Series, Table, Text
from assay.report.measures.section import shows
from assay.report.measures.sentences import number_sentences
from assay.report.measures.stimuli import inputs_shown
from assay.runs.manifest import MeasureRecord
from assay.runs.tables import Tables

NOTES = {
    "value": "the number itself",
    "low": "lower end of the 95 % interval",
    "high": "upper end of the 95 % interval",
    "n": "inputs, rounds or layers that it rests on",
    "status": "ok, or what is wrong with the value",
}


@dataclass(frozen=True)
class Shown:
    """Which quantities of a measure share a chart, what its axis says, and what a reader should know first."""

    label: str
    about: str
    takes: Callable[[str, str], bool]
    name: Callable[[str], str] = str


SHOWN = {
    "norms": Shown(
        "logarithm of the norm",
        "Norms depend on the weights alone: they are exact for these networks, and comparable between networks of one "
        "architecture.",
        lambda quantity, layer: not layer and quantity.startswith("log "),
        lambda quantity: quantity.removeprefix("log "),
    ),
    "margins": Shown(
        "distance to the decision boundary, in units of the data's spread",
        "The margin of an input is how far it is, to first order, from being classified otherwise; only inputs that "
        "are classified rightly have one.",
        lambda quantity, layer: layer == "input" and quantity.startswith("normalised margin p"),
        lambda quantity: f"percentile {quantity.rpartition('p')[2]}",
    ),
    "sharpness": Shown(
        "log 1/size² of the perturbation of the weights",
        "The size is the largest perturbation of the weights that costs no more accuracy than allowed: the higher, the "
        "sharper the minimum.",
        lambda quantity, layer: quantity.startswith("log inverse squared"),
        lambda quantity: quantity.removeprefix("log inverse squared "),
    ),
    "clusters": Shown(
        "Davies–Bouldin index",
        "The index compares the spread of a class with its distance from the nearest other class: the lower, the "
        "better the layer separates the classes.",
        lambda quantity, layer: True,
    ),
    "augmentation": Shown(
        "drop of accuracy",
        "The drop is the accuracy on pictures as they are, less that on the same pictures augmented.",
        lambda quantity, layer: quantity.endswith(" drop") and quantity != "mean drop",
        lambda quantity: quantity.removesuffix(" drop"),
    ),
}


def section(label: str, record: MeasureRecord, tables: Tables) -> list[Any]:
    """The blocks of a report for a measure whose table lists quantities."""
    table = tables.table(label)
    shown = SHOWN[record.measure]
    blocks: list[Any] = [Text(f"{inputs_shown(record, table)} {shown.about}".strip())]
    sentences = number_sentences(tables.evidence(label))
    if sentences:
        blocks.append(Items(tuple(sentences)))
    chart = _chart(table, shown, label)
    if chart is not None:
        blocks.append(chart)
    blocks.append(Table(f"All numbers of {label}", table, NOTES))
    return blocks


for _measure in SHOWN:
    shows(_measure)(section)


def _chart(table: pd.DataFrame, shown: Shown, label: str) -> DotChart | None:
    subjects = list(table["subject"].unique())
    wanted = [shown.takes(str(q), str(layer)) for q, layer in zip(table["quantity"], table["layer"], strict=True)]
    rows = table[np.array(wanted, dtype=bool) & np.isfinite(table["value"].to_numpy(dtype=float))]
    if rows.empty:
        return None
    groups = list(dict.fromkeys(rows["quantity"]))
    marks = []
    for row in rows.to_dict("records"):
        bounds = (row["low"], row["high"])
        known = bool(np.isfinite(bounds).all())
        spread = f" ({bounds[0]:.3g} to {bounds[1]:.3g})" if known else ""
        detail = f"{row['subject']}, {shown.name(row['quantity'])}: {row['value']:.4g}{spread}, n = {row['n']}"
        place = (groups.index(row["quantity"]), subjects.index(row["subject"]))
        marks.append(Mark(*place, float(row["value"]), (float(bounds[0]), float(bounds[1])) if known else None, detail))
    series = tuple(Series(str(name), i % 8, i // 8) for i, name in enumerate(subjects))
    alt = f"{label} of {len(subjects)} networks: {', '.join(map(shown.name, groups))}"
    return DotChart(
        f"{label}: networks compared (bars: 95 % intervals)",
        shown.label,
        tuple(map(shown.name, groups)),
        series,
        tuple(marks),
        alt,
    )
