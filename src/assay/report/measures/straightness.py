"""How straightness is shown: a sentence per subject, a curve across layers, a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from assay.report.document import Items, LineChart, Point, Table, Text
from assay.report.many import MANY
from assay.report.measures.section import shows
from assay.report.measures.sentences import digits
from assay.report.measures.stimuli import clips_shown
from assay.runs.manifest import MeasureRecord
from assay.runs.tables import Tables
from assay.stats.differences import interval
from assay.stats.evidence import Evidence

NOTES = {
    "curvature_deg": "mean over sequences of the mean angle between successive steps, in degrees",
    "sem_deg": "standard error of that mean over sequences",
    "condition": "natural, or the control that was shown",
    "low": "lower end of the 95 % interval of curvature_deg (Student's t over sequences)",
    "high": "upper end of the 95 % interval of curvature_deg",
    "change_deg": "difference from the pixels of the same frames, or from the tokens; negative: the layer straightens",
    "change_low": "lower end of the 95 % interval of change_deg (Student's t over scenes; clips of one count as one)",
    "change_high": "upper end of the 95 % interval of change_deg",
    "n": "sequences in the mean",
    "left_out": "sequences left out because no angle was defined or the layer was not finite",
}
TEXT_CONDITIONS = {"natural": "texts", "shuffled": "shuffled texts"}
CONDITIONS = {
    "natural": "natural sequences",
    "pixel_fade": "pixel-fade control",
    "contrast_fade": "contrast-fade control",
}


@shows("straightness")
def section(label: str, record: MeasureRecord, tables: Tables) -> list[Any]:
    """The blocks of a report for one straightness measure."""
    summary, table = tables.summary(label), tables.table(label)
    conditions = TEXT_CONDITIONS if _of_texts(table) else CONDITIONS
    shown = clips_shown(record, table, conditions)
    advice = (
        "As input count the tokens, all equally far apart: three different ones in a row turn by 120°."
        if _of_texts(table)
        else "Compare networks only on images of one size: the size alone changes curvature by several degrees."
    )
    blocks: list[Any] = [Text(f"{shown} {advice}")]
    changes = _changes(tables.evidence(label))
    for condition, group in summary.groupby("condition", sort=False):
        name = conditions.get(str(condition), str(condition))
        said = _sentences(table[table["condition"] == condition], name, changes.get(str(condition), {}))
        if len(said) > MANY:
            blocks.append(Text(_tally([verb for verb, _ in said], name)))
        blocks.append(Items(tuple(sentence for _, sentence in said)))
        blocks.append(_chart(group, name))
    blocks.append(Table("Curvature by layer", summary.drop(columns="order"), NOTES))
    return blocks


def _of_texts(table: pd.DataFrame) -> bool:
    """Whether texts were shown, whose first layer are the tokens; of clips it is the pixels."""
    return bool((table["layer"] == "tokens").any())


def _changes(evidence: Mapping[str, Sequence[Evidence]]) -> dict[str, dict[str, Evidence]]:
    """The change at the last layer, by condition and subject."""
    changes: dict[str, dict[str, Evidence]] = {}
    for subject, numbers in evidence.items():
        for one in numbers:
            _, at_last, condition = one.quantity.partition("at the last layer")
            if at_last:
                named = condition.removeprefix(", ").replace(" ", "_") or "natural"
                changes.setdefault(named, {})[subject] = one
    return changes


def _sentences(table: pd.DataFrame, name: str, changes: Mapping[str, Evidence]) -> list[tuple[str, str]]:
    """What the last layer of each subject does to curvature: a change is said where its interval over scenes is.

    Each sentence comes with its verb, which is empty where there is no clear change.
    """
    sentences = []
    first = "tokens" if _of_texts(table) else "pixels"
    for subject, rows in table.groupby("subject", sort=False):
        last = rows[rows["order"] == rows["order"].max()]
        layer, good = last["layer"].iloc[0], last[last["status"] == "ok"]
        if good.empty:
            sentences.append(("", f"{subject}, {name}: undefined at {_undefined(rows)}."))
            continue
        by_clip = dict(zip(good["sequence"], good["change_deg"], strict=True))
        change, curvature = good["change_deg"].mean(), good["curvature_deg"].mean()
        bounds = interval(changes.get(str(subject)) or Evidence("change", float(change), items=by_clip))
        of = "" if len(good) == len(last) else f" of {len(last)}: the others have no angle there"
        at = f"{curvature:.1f}° at {layer}, n = {len(good)}{of}"
        moved = f"{digits(change, '+.1f')}°"
        if bounds is None:
            sentences.append(("", f"{subject}, {name}: {moved} from the {first} on one sequence; {at}."))
            continue
        low, high = bounds
        verb = "straightens" if high < 0 else "curves" if low > 0 else ""
        said = f"{verb} {name} by {abs(change):.1f}°" if verb else f"makes no clear change to {name}: {moved}"
        spread = f"{digits(low, '+.1f')}° to {digits(high, '+.1f')}°"
        sentences.append((verb, f"{subject} {said} (95 % interval {spread}; {at})."))
    return sentences


def _undefined(rows: pd.DataFrame) -> str:
    """The last layers of a subject, in which no sequence has an angle, as part of a sentence."""
    defined = rows.assign(defined=rows["status"] == "ok").groupby("order", sort=True)["defined"].any()
    names = rows.drop_duplicates("order").set_index("order")["layer"]
    since = defined[defined].index.max() if defined.any() else -1
    undefined = [names[order] for order in defined.index if order > since]
    return undefined[0] if len(undefined) == 1 else f"layers {undefined[0]} to {undefined[-1]}"


def _tally(verbs: list[str], name: str) -> str:
    """How many of many networks straighten, curve, or do neither clearly."""
    straighten, curve = verbs.count("straightens"), verbs.count("curves")
    return (
        f"At their last layers {straighten} of {len(verbs)} networks straighten {name} and {curve} curve them; "
        f"{len(verbs) - straighten - curve} make no clear change."
    )


def _chart(group: pd.DataFrame, name: str) -> LineChart:
    first = "tokens" if _of_texts(group) else "pixels"
    lines = []
    for subject, rows in group.groupby("subject", sort=False):
        points = []
        for i, (_, row) in enumerate(rows.iterrows()):
            if pd.isna(row["curvature_deg"]):
                continue
            value, low, high = (float(row[column]) for column in ("curvature_deg", "low", "high"))
            band = None if pd.isna(low) else (low, high)
            spread = "" if band is None else f" ({low:.2f}° to {high:.2f}°)"
            detail = f"{value:.2f}°{spread}, {row['change_deg']:+.2f}° from {first}, n = {row['n']}"
            depth = i / max(len(rows) - 1, 1)
            points.append(Point(depth, value, band, str(row["layer"]), detail))
        lines.append((str(subject), tuple(points)))
    start = group[group["layer"] == first]["curvature_deg"].dropna()
    reference = (first, float(start.iloc[0])) if len(start) else None
    return LineChart(
        f"Curvature across layers, {name} (band: 95 % interval over sequences)",
        "relative depth: input to output",
        "curvature (degrees)",
        tuple(lines),
        reference,
    )
