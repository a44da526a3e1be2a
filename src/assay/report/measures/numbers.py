"""How measures of single numbers are shown: a sentence for each key number, a chart that compares networks, a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from assay.report.document import DotChart, Items, Mark, Series, Table, Text
from assay.report.measures.section import shows
from assay.report.measures.sentences import number_sentences
from assay.report.measures.stimuli import inputs_shown
from assay.runs.manifest import MeasureRecord
from assay.runs.tables import Tables
from assay.stats.differences import interval
from assay.stats.evidence import Evidence

NOTES = {
    "value": "the number itself",
    "low": "lower end of the 95 % interval",
    "high": "upper end of the 95 % interval",
    "n": "inputs, rounds or layers that it rests on",
    "status": "ok, or what is wrong with the value",
}

MEDIAN, PERCENTILE = "normalised margin median", "normalised margin p"


@dataclass(frozen=True)
class Shown:
    """Which quantities of a measure share a chart, what its axis says, and what a reader should know first.

    Args:
        label: What the axis of the chart says.
        about: What a reader should know first.
        takes: Whether a quantity at a layer is in the chart.
        name: What the chart calls a quantity.
        place: A number by which the quantities of the chart are in order, where the order of the table is not it.
    """

    label: str
    about: str
    takes: Callable[[str, str], bool]
    name: Callable[[str], str] = str
    place: Callable[[str], float] = field(default=lambda quantity: 0.0)


SHOWN = {
    "norms": Shown(
        "logarithm of the norm",
        "Norms depend on the weights alone: they are exact for these networks, and comparable between networks of one "
        "architecture.",
        lambda quantity, layer: not layer and quantity.startswith("log "),
        lambda quantity: quantity.removeprefix("log "),
    ),
    "margins": Shown(
        "distance to the boundary, in units of the data's spread",
        "The margin of an input is how far it is, to first order, from being classified otherwise; only inputs that "
        "are classified rightly have one.",
        lambda quantity, layer: layer == "input" and (quantity == MEDIAN or quantity.startswith(PERCENTILE)),
        lambda quantity: "median" if quantity == MEDIAN else f"percentile {quantity.removeprefix(PERCENTILE)}",
        lambda quantity: 50.0 if quantity == MEDIAN else float(quantity.removeprefix(PERCENTILE)),
    ),
    "sharpness": Shown(
        "log 1/size² of the perturbation of the weights",
        "The size is the largest perturbation of the weights that costs no more accuracy than allowed: the higher, the "
        "sharper the minimum.",
        lambda quantity, layer: quantity.startswith("log inverse squared"),
        lambda quantity: quantity.removeprefix("log inverse squared "),
    ),
    "distance": Shown(
        "squared distance",
        "Distances from the initial weights depend on the weights alone: they are exact for these networks, and "
        "comparable between networks of one architecture.",
        lambda quantity, layer: not layer and quantity.startswith("squared "),
        lambda quantity: quantity.removeprefix("squared ").removesuffix(" distance"),
    ),
    "margin-bounds": Shown(
        "logarithm of the norm over the margin",
        "The margin is that of the input at the 10th percentile: norms over it stay the same where the scores of a "
        "network are multiplied by a number.",
        lambda quantity, layer: quantity.endswith(" over margin"),
        lambda quantity: quantity.removeprefix("log ").removesuffix(" over margin"),
    ),
    "pac-bayes": Shown(
        "PAC-Bayes measure",
        "The measure grows with the distance of the weights from where they began, and shrinks with the noise that "
        "they bear; its root over that of the number of training inputs bounds the error under the noise.",
        lambda quantity, layer: quantity.startswith("pac-bayes") and not quantity.endswith("flatness"),
        lambda quantity: quantity.removeprefix("pac-bayes "),
    ),
    "training-speed": Shown(
        "sum of training losses",
        "Speed is read from the history of training; the network itself is not run.",
        lambda quantity, layer: "sum of losses" in quantity,
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
    table, evidence = tables.table(label), tables.evidence(label)
    shown = SHOWN[record.measure]
    blocks: list[Any] = [Text(f"{inputs_shown(record, table)} {shown.about}".strip())]
    table = _with_intervals(table, evidence)
    sentences = number_sentences(evidence)
    if sentences:
        blocks.append(Items(tuple(sentences)))
    chart = _chart(table, shown, label)
    if chart is not None:
        blocks.append(chart)
    blocks.append(Table(f"All numbers of {label}", table, NOTES))
    return blocks


for _measure in SHOWN:
    shows(_measure)(section)


def _with_intervals(table: pd.DataFrame, evidence: Mapping[str, Sequence[Evidence]]) -> pd.DataFrame:
    """The table with the intervals that sentences give, so that a number has one interval in a report.

    The two follow from different rules: that of a sentence counts what rounds share, or that a number is a proportion.
    """
    shown = table.reset_index(drop=True)
    for subject, numbers in evidence.items():
        for number in numbers:
            is_it = (shown["subject"] == subject) & (shown["value"] == number.value) & (shown["n"] == number.n)
            if is_it.sum() == 1:
                shown.loc[is_it, ["low", "high"]] = interval(number) or (np.nan, np.nan)
    return shown


def _chart(table: pd.DataFrame, shown: Shown, label: str) -> DotChart | None:
    subjects = list(table["subject"].unique())
    wanted = [shown.takes(str(q), str(layer)) for q, layer in zip(table["quantity"], table["layer"], strict=True)]
    rows = table[np.array(wanted, dtype=bool) & np.isfinite(table["value"].to_numpy(dtype=float))]
    if rows.empty:
        return None
    groups = sorted(dict.fromkeys(map(str, rows["quantity"])), key=shown.place)
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
    caption = f"{label}: networks compared" if len(subjects) > 1 else f"{label} of {subjects[0]}"
    return DotChart(
        caption + (" (bars: 95 % intervals)" if any(mark.interval for mark in marks) else ""),
        shown.label,
        tuple(map(shown.name, groups)),
        series,
        tuple(marks),
        alt,
    )
