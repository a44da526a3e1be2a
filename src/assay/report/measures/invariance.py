"""How invariance is shown: a sentence per subject, a curve across layers, what drives the best units, a table."""

from __future__ import annotations

from typing import Any

import pandas as pd

from assay.report.document import Findings, Items, LineChart, Pictures, Point, Table, Text
from assay.report.many import MANY
from assay.report.measures.section import shows
from assay.runs.manifest import MeasureRecord
from assay.runs.tables import Tables

NOTES = {
    "score": "Inv_p: mean invariance score of the best-scoring proportion of units; 1/G is the most there can be",
    "low": "lower end of the 95 % interval (bootstrap over units and stimuli)",
    "high": "upper end of the 95 % interval",
    "n": "units in that mean",
    "z": "stimuli that the score of a unit rests on: the median over units of |Z|",
    "mean_score": "mean over all units that have a score",
    "p10": "tenth percentile of those scores, and so on",
    "negative": "share of those units that fire when their response is small (sign −1)",
    "units": "units of the layer",
    "ok": "units with a score",
    "tied": "units with a score whose repeated responses make them fire more often than asked for",
    "constant": "units without a score: always the same response",
    "sparse": "units without a score: above their smallest response on too few stimuli",
    "always_on": "units without a score: firing on more than half of the stimuli",
    "silent": "units without a score: firing on none of this transformation's stimuli",
    "not_finite": "units without a score: NaN or infinity",
}
FEWEST = 5
"""Stimuli below which the score of a unit is not worth reading by itself."""
_PICTURED = 12  # number of layers pictured at most, evenly over the depth


@shows("invariance")
def section(label: str, record: MeasureRecord, tables: Tables) -> list[Any]:
    """The blocks of a report for one invariance measure."""
    table = tables.table(label)
    settings = record.settings
    rate = settings["firing_rate"]
    blocks: list[Any] = [
        Text(
            f"Shown: {settings['test']['is']}. A unit fires on {rate:.2%} of the stimuli; its score is how much more "
            "often it fires on transforms of what drives it most: "
            f"{1 / rate:.0f} is complete invariance, and 1 is none. Where the transforms of a stimulus include the "
            f"stimulus itself, a score without invariance is {1 / rate:.0f}/m instead of 1, with m the number of "
            f"transforms. A layer's score is the mean of its best {settings['top']:.0%} of units."
        )
    ]
    blocks += _warnings(table)
    for name, group in table.groupby("transformation", sort=False):
        blocks.append(Items(tuple(_sentences(group, str(name)))))
        blocks.append(_chart(group, str(name), 1 / rate))
        if group["subject"].nunique() <= MANY:
            blocks += [_pictures(str(s), str(name), rows) for s, rows in group.groupby("subject", sort=False)]
    blocks.append(Table("Invariance by layer", table.drop(columns=["order", "test", "pictures"]), NOTES))
    return blocks


def _warnings(table: pd.DataFrame) -> list[Findings]:
    """A warning where the scores of units rest on a handful of stimuli."""
    scored = table[table["status"] == "ok"]
    if "z" not in scored or scored.empty or scored["z"].median() >= FEWEST:  # runs of before have no such column
        return []
    few = scored["z"].median()
    answer = (
        f"The score of a unit rests on {few:g} stimul{'us' if few == 1 else 'i'} (median over layers), so that single "
        "units take few values and the best of them are the best by luck: show more stimuli, or raise near_max."
    )
    return [Findings((("bad", "Few stimuli", answer),))]


def _sentences(group: pd.DataFrame, name: str) -> list[str]:
    sentences = []
    for subject, rows in group.groupby("subject", sort=False):
        scored = rows[rows["status"] == "ok"]
        not_finite = int(rows["not_finite"].sum())
        if scored.empty:
            sentences.append(f"{subject}, {name}: no unit of any layer has a score.")
        else:
            first, last = scored.iloc[0], scored.iloc[-1]
            best = scored.iloc[int(scored["score"].to_numpy().argmax())]
            sentences.append(
                f"{subject}, {name}: {_value(first)} at {first['layer']}, {_value(last)} at {last['layer']}; "
                f"most at {best['layer']} ({_value(best)})."
            )
        if not_finite:
            where = ", ".join(rows[rows["not_finite"] > 0]["layer"].astype(str).head(3))
            sentences.append(f"{subject}: {not_finite} units returned NaN or infinity ({where}) and have no score.")
    return sentences


def _value(row: pd.Series) -> str:
    spread = "" if pd.isna(row["low"]) else f" ({row['low']:.1f} to {row['high']:.1f})"
    return f"{row['score']:.1f}{spread}"


def _chart(group: pd.DataFrame, name: str, most: float) -> LineChart:
    lines = []
    for subject, rows in group.groupby("subject", sort=False):
        points = []
        for i, (_, row) in enumerate(rows.iterrows()):
            if pd.isna(row["score"]):
                continue
            band = None if pd.isna(row["low"]) else (float(row["low"]), float(row["high"]))
            detail = f"{_value(row)}, {int(row['n'])} of {int(row['ok'] + row['tied'])} units with a score"
            depth = i / max(len(rows) - 1, 1)
            points.append(Point(depth, float(row["score"]), band, str(row["layer"]), detail))
        lines.append((str(subject), tuple(points)))
    caption = f"Invariance to {name} across layers (band: 95 % interval)"
    return LineChart(caption, "relative depth: input to output", "invariance score", tuple(lines), ("most", most))


def _pictures(subject: str, name: str, rows: pd.DataFrame) -> Pictures:
    pictured = rows[rows["pictures"].map(len) > 0]
    step = max(-(-len(pictured) // _PICTURED), 1)
    items = tuple(
        (bytes(row["pictures"]), f"{row['layer']}, unit {row['best_unit']}: {row['best_score']:.1f}")
        for _, row in pictured.iloc[::step].iterrows()
    )
    return Pictures(f"What drives the unit of {subject} that is most invariant to {name}, layer by layer", items)
