"""How perturbation response is shown: a sentence and a curve per subject, the scores as a table."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd

from assay.report.document import Items, LineChart, Point, Table, Text
from assay.report.measures.section import shows
from assay.report.measures.stimuli import inputs_shown
from assay.runs.manifest import MeasureRecord
from assay.runs.tables import Tables
from assay.stimuli.perturbations import in_words

NOTES = {
    "gi": "area between the ideal and the actual cumulative curve, as a share of the ideal: low is good, 0 is ideal",
    "pal": "area under the cumulative curve over the top 60 % of magnitudes, divided by the bottom 10 %: 84 is ideal",
    "mean accuracy": "mean over the points of the curve",
    "end accuracy": "accuracy at the largest magnitude",
    "random accuracy": "accuracy with a magnitude of its own for every input, uniform over the range",
    "low": "lower end of the 95 % interval (bootstrap over inputs)",
    "high": "upper end of the 95 % interval",
    "n": "inputs",
    "left_out": "inputs with no partner to be mixed with",
}


@shows("perturbation")
def section(label: str, record: MeasureRecord, tables: Tables) -> list[Any]:
    """The blocks of a report for one perturbation measure."""
    table = tables.table(label)
    blocks: list[Any] = [
        Text(
            f"{inputs_shown(record, table)} They are perturbed more and more; what counts is the true label. The "
            "Gi-score is the share of the ideal network's area that is lost (low is "
            "good); the Pal-score compares large magnitudes with small ones (84 is ideal, for curves that fall)."
        )
    ]
    for (name, layer), rows in table.groupby(["perturbation", "layer"], sort=False):
        blocks.append(Items(tuple(_sentences(rows))))
        blocks.append(
            _chart(rows, f"Accuracy under {in_words(str(name))} at {'the input' if layer == '0' else f'layer {layer}'}")
        )
    scores = table[table["quantity"] != "accuracy"].drop(columns="magnitude")
    blocks.append(Table("Scores", scores, NOTES))
    return blocks


def _sentences(rows: pd.DataFrame) -> list[str]:
    sentences = []
    for (subject, name, layer, at), group in rows.groupby(["subject", "perturbation", "layer", "at"], sort=False):
        kind = in_words(str(name))
        what = f"{kind} at the input" if layer == "0" else f"{kind} after {at}"
        gi = group[group["quantity"] == "gi"]
        curve = group[group["quantity"] == "accuracy"]
        if curve["status"].ne("ok").any():
            bad = int(curve["status"].ne("ok").sum())
            sentences.append(
                f"{subject}, {what}: outputs are not finite at {bad} of {len(curve)} magnitudes; no scores."
            )
        elif len(gi):
            first, last = curve["value"].iloc[[0, -1]]
            course = f"goes from {first:.1%} to {last:.1%}"
            start, end = curve["magnitude"].iloc[[0, -1]]
            if start < 0 < end:
                middle = curve["value"].iloc[curve["magnitude"].abs().argmin()]
                course = f"is {middle:.1%} in the middle, {first:.1%} at {start:g}, {last:.1%} at {end:g}"
            score = gi.iloc[0]
            interval = f" ({score['low']:.3f} to {score['high']:.3f})" if score["low"] == score["low"] else ""
            sentences.append(f"{subject}, {what}: accuracy {course}; Gi {score['value']:.3f}{interval}.")
    return sentences


def _chart(rows: pd.DataFrame, caption: str) -> LineChart:
    lines = []
    for subject, curve in rows[rows["quantity"] == "accuracy"].groupby("subject", sort=False):
        points = tuple(map(_point, curve[curve["status"] == "ok"].to_dict("records")))
        lines.append((str(subject), points))
    magnitudes = rows.loc[rows["quantity"] == "accuracy", "magnitude"]
    span = (float(magnitudes.min()), float(magnitudes.max())) if magnitudes.nunique() > 1 else None
    return LineChart(caption, "magnitude α", "accuracy", tuple(lines), x_range=span)


def _point(row: dict[Hashable, Any]) -> Point:
    band = None if pd.isna(row["low"]) else (row["low"], row["high"])
    return Point(
        row["magnitude"], row["value"], band, f"{row['magnitude']:g}", f"{row['value']:.1%} of {row['n']} inputs"
    )
