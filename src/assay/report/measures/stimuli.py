"""What the networks were shown, in a sentence whose numbers are those of the table."""

from __future__ import annotations

from typing import Any

import pandas as pd

from assay.runs.manifest import MeasureRecord


def inputs_shown(record: MeasureRecord, table: pd.DataFrame) -> str:
    """The sentence that says how many of which inputs were shown; empty for a measure that shows no data.

    The number is the largest ``n`` of the table, with what was left out of it, and not the size of the data, of which
    a measure may draw a sample.

    Args:
        record: The measure as it was asked.
        table: Its table.
    """
    data = record.settings.get("data")
    if data is None:
        return ""
    description = described(data)
    if {"rounds", "images"} <= record.settings.keys():  # n counts the rounds
        return f"Shown: {record.settings['rounds']} draws of up to {record.settings['images']} of {description}."
    left_out = table.get("left_out", 0)
    shown = int((table["n"] + left_out).max())
    part = "" if description.startswith(f"{shown} ") else f"{shown} of "
    return f"Shown: {part}{description}."


def described(setting: Any) -> str:
    """What a record says of the stimuli that were a measure's setting."""
    return str(setting["is"]) if isinstance(setting, dict) and "is" in setting else str(setting)


def clips_shown(record: MeasureRecord, table: pd.DataFrame, conditions: dict[str, str]) -> str:
    """The sentence that says which clips were shown, and how many of each condition where there are several.

    Args:
        record: The measure as it was asked.
        table: Its table, one row for each layer and clip.
        conditions: Conditions by name, in words.
    """
    clips = table.groupby("condition", sort=False)["sequence"].nunique()
    counts = [f"{count} {conditions.get(str(name), str(name))}" for name, count in clips.items()]
    parts = f" ({', '.join(counts)})" if len(counts) > 1 else ""
    return f"Shown: {record.settings['sequences']['is']}{parts}."
