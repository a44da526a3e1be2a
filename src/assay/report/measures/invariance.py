"""How invariance is shown: a sentence per subject, a curve across layers, what drives the best units, a table."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from assay.core.rounding import ceiling
from assay.report.document import Findings, Items, LineChart, Pictures, Point, Table, Text
from assay.report.many import MANY
from assay.report.measures.section import shows
from assay.runs.manifest import MeasureRecord
from assay.runs.tables import Tables

NOTES = {
    "score": "Inv_p: mean invariance score of the best-scoring proportion of units; 1/G is the most there can be",
    "held_out": "what the best units of one half of the clips or pictures score on the other half, so that no luck in "
    "the choice raises it (for gratings, which are a whole grid: the score)",
    "held_out_low": "lower end of its 95 % interval (bootstrap over units and blocks of stimuli)",
    "held_out_high": "upper end of its 95 % interval",
    "n": "units in that mean",
    "z": "stimuli that the score of a unit rests on: the median over units of |Z|",
    "z_clips": "clips (or trajectories of gratings, or pictures) that they come from: the median over units",
    "clips": "clips that the Z of any unit comes from",
    "z_quantile": "share of all stimuli that drive a unit at least as much as the last of its Z: the median over units",
    "mean_score": "Inv_1: mean over all units that have a score",
    "mean_held_out": "the same for all units, each with the sign that the other half chose; then its 95 % interval",
    "largest": "the largest score there can be: 1/G, or less where units fire on fewer stimuli than any trajectory has",
    "on_trajectory": "stimuli on the longest trajectory; 0 where transforms are made besides",
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
DETAILS = (
    *("magnitudes", "firing_by_magnitude", "mean_firing_by_magnitude"),
    *("unit_score", "unit_sign", "unit_status", "unit_selectivity", "unit_width"),
)
"""Columns of arrays, which no table shows."""
SATURATED = 0.95
"""Share of the most there can be, above which a test tells nothing apart."""
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
    blocks += _warnings(table, settings["near_max"], rate)
    for name, group in table.groupby("transformation", sort=False):
        blocks.append(Items(tuple(_sentences(group, str(name)))))
        blocks.append(_chart(group, str(name), 1 / rate))
        if "magnitudes" in group:
            blocks.append(_by_magnitude(group, str(name)))
        if group["subject"].nunique() <= MANY:
            blocks += [_pictures(str(s), str(name), rows) for s, rows in group.groupby("subject", sort=False)]
    left_out = ("order", "test", "pictures", "p25", "p75", "df", "mean_df", "stimuli", *DETAILS)
    shown = [c for c in table if c not in left_out]
    blocks.append(Table("Invariance by layer", table[shown], NOTES))
    return blocks


def _warnings(table: pd.DataFrame, near_max: float, rate: float) -> list[Findings]:
    """Warnings where scores rest on a handful of stimuli, Z is not near-maximal, or a test is saturated."""
    warnings: list[tuple[str, str, str]] = []
    scored = table[table["status"] == "ok"]
    few = scored["z"].median() if "z" in scored and len(scored) else FEWEST  # runs of before have no such column
    if few < FEWEST:
        answer = (
            f"The score of a unit rests on {few:g} stimul{'us' if few == 1 else 'i'} (median over layers), so that "
            "single units take few values and the best of them are the best by luck: show more stimuli, or raise "
            "near_max."
        )
        warnings.append(("bad", "Few stimuli", answer))
    warnings += _cannot_fill(scored, rate)
    for name, rows in scored.groupby("transformation", sort=False):
        asked, reached = _quantiles(rows, near_max, rate)
        if reached > 2 * asked:
            answer = (
                f"Z holds what drives a unit most among the stimuli of {name}, yet {reached / rate:.0%} of all stimuli "
                f"on which it fires drive it at least as much, where {asked / rate:.0%} were asked for: its scores are "
                "those of stimuli near the threshold. Do not pool this test with others."
            )
            warnings.append(("bad", f"{name}: Z is not near-maximal", answer))
        if len(rows) > 1 and rows["score"].min() > SATURATED / rate:
            answer = (
                f"All layers score above {SATURATED / rate:.0f} of at most {1 / rate:.0f}, so that the test cannot "
                "tell them apart: transform more, or remove what does not change from the stimuli."
            )
            warnings.append(("open", f"{name}: at the ceiling", answer))
    return [Findings(tuple(warnings))] if warnings else []


def _cannot_fill(scored: pd.DataFrame, rate: float) -> list[tuple[str, str, str]]:
    """Warnings for transformations on whose trajectories there are more stimuli than a unit may fire on."""
    warnings = []
    shown = scored[scored["on_trajectory"] > 0] if "on_trajectory" in scored else scored[:0]
    for name, rows in shown.groupby("transformation", sort=False):
        n, longest = int(rows["stimuli"].max()), int(rows["on_trajectory"].max())
        fires = ceiling(rate * n)
        if fires < longest:
            cut = float(rows["largest"].max()) > 1.001 * n / longest
            answer = (
                f"A unit fires on {fires} of the {n} stimuli of {name}, and on the trajectory of one there are up to "
                f"{longest}, so that it cannot fire on all of them: {n / longest:.1f} is the most that a score can be"
                + ", and higher ones are of stimuli near the end of a clip, whose trajectories are shorter" * cut
                + f". Show at least {ceiling(longest / rate)} stimuli, or raise firing_rate."
            )
            warnings.append(("bad", f"{name}: too few stimuli to fire on a trajectory", answer))
    return warnings


def _quantiles(rows: pd.DataFrame, near_max: int | float, rate: float) -> tuple[float, float]:
    """The share of stimuli that was asked to be in Z, and that which drives units as much as the last of it."""
    if "z_quantile" not in rows:  # a run of before
        return 1.0, 1.0
    n = int(rows["stimuli"].max())
    firing = ceiling(rate * n)
    asked = near_max if isinstance(near_max, int) else ceiling(near_max * firing)
    return min(asked, firing) / n, float(rows["z_quantile"].median())


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
    if "held_out" not in row:  # a run of before, whose interval was around the score
        return f"{row['score']:.1f}"
    low, high = row["held_out_low"], row["held_out_high"]
    inside = [] if pd.isna(row["held_out"]) or _whole_grid(row) else [f"held out {row['held_out']:.1f}"]
    inside += [] if pd.isna(low) else [f"{low:.1f} to {high:.1f}"]
    return f"{row['score']:.1f}" + (f" ({', '.join(inside)})" if inside else "")


def _whole_grid(row: pd.Series) -> bool:
    """Whether the stimuli were all that there are, so that the score itself has the interval."""
    return math.isclose(row["held_out"], row["score"], rel_tol=1e-9)


def _chart(group: pd.DataFrame, name: str, most: float) -> LineChart:
    held_out = "held_out" in group and group["held_out"].notna().any()
    value = "held_out" if held_out else "score"
    lines = []
    for subject, rows in group.groupby("subject", sort=False):
        points = []
        for i, (_, row) in enumerate(rows.iterrows()):
            if pd.isna(row[value]):
                continue
            ends = (row["held_out_low"], row["held_out_high"]) if held_out else (float("nan"),) * 2
            band = None if pd.isna(ends[0]) else (float(ends[0]), float(ends[1]))
            detail = f"{_value(row)}, {int(row['n'])} of {int(row['ok'] + row['tied'])} units with a score"
            depth = i / max(len(rows) - 1, 1)
            points.append(Point(depth, float(row[value]), band, str(row["layer"]), detail))
        lines.append((str(subject), tuple(points)))
    of = " (band: 95 % interval)" * bool(held_out)
    if held_out and not all(_whole_grid(row) for _, row in group[group["held_out"].notna()].iterrows()):
        of = f", on held-out stimuli{of}"
    caption = f"Invariance to {name} across layers{of}"
    return LineChart(caption, "relative depth: input to output", "invariance score", tuple(lines), ("most", most))


def _by_magnitude(group: pd.DataFrame, name: str) -> LineChart:
    """How far the last layer of each network is invariant: its firing rate at every magnitude."""
    lines = []
    for subject, rows in group[group["status"] == "ok"].groupby("subject", sort=False):
        last = rows.iloc[-1]
        pairs = sorted(zip(last["magnitudes"], last["firing_by_magnitude"], strict=True))
        points = (Point(float(m), float(f), None, f"{m:g}", f"{f:.2f}") for m, f in pairs if not pd.isna(f))
        lines.append((f"{subject}, {last['layer']}", tuple(points)))
    caption = f"How often the best units of the last layer fire, by the magnitude of {name}"
    shown = [point.x for _, points in lines for point in points] or [0.0, 1.0]
    ends = (min(shown), max(shown))
    return LineChart(caption, f"magnitude of {name}", "firing rate", tuple(lines), x_range=ends)


def _pictures(subject: str, name: str, rows: pd.DataFrame) -> Pictures:
    pictured = rows[rows["pictures"].map(len) > 0]
    step = max(-(-len(pictured) // _PICTURED), 1)
    items = tuple(
        (bytes(row["pictures"]), f"{row['layer']}, unit {row['best_unit']}: {row['best_score']:.1f}")
        for _, row in pictured.iloc[::step].iterrows()
    )
    return Pictures(f"What drives the unit of {subject} that is most invariant to {name}, layer by layer", items)
