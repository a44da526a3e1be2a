"""Differences in invariance between two networks, or two layers, that were shown the same stimuli."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from assay.core.errors import AssayError, nearest
from assay.core.fingerprint import fingerprint
from assay.measures.evidence import Measured
from assay.stats.differences import difference
from assay.stats.evidence import Evidence
from assay.stimuli.invariance_test import InvarianceTest

NONE_HELD_OUT = "too few clips or stimuli to hold any out"
_OF = {"best units": "held_out", "all units": "mean_held_out"}


def score_of(measured: Measured, number: int, of: str = "best units") -> Evidence:
    """The score on held-out stimuli in one row of the table of `assay.Invariance`, with its resamples."""
    row = measured.table.iloc[number]
    draws = measured.draws.get(number, np.zeros((0, len(_OF))))[:, list(_OF).index(of)]
    df = float(row["df"] if of == "best units" else row["mean_df"])
    value, status = float(row[_OF[of]]), str(row["status"])
    if np.isnan(value) and status == "ok":
        status = NONE_HELD_OUT
    n = _independent(measured.shown, str(row["transformation"])) or int(row["stimuli"])
    most = float(row.get("largest", np.inf))  # runs of before do not say it
    most = np.inf if np.isnan(most) else most
    return Evidence("invariance", value, "", "higher", draws=draws, n=n, status=status, df=df, least=0.0, most=most)


def _independent(test: InvarianceTest | None, transformation: str) -> int:
    """The number of clips or pictures of a test that draws them; 0 where that is not known, or all there are."""
    for part in () if test is None else test.parts():
        if part.sampled and transformation in part.transformations:
            return int(part.blocks(transformation).max()) + 1
    return 0


def invariance_differences(
    one: Measured, other: Measured, layer: str | None = None, other_layer: str | None = None
) -> pd.DataFrame:
    """How much more invariant one layer is than another, on held-out stimuli, for every transformation that both have.

    Where both were shown the same stimuli, their resamples are the same: d ± t·s, with s the standard deviation of the
    differences over resamples of the stimuli; units are drawn for each layer by itself. Where they were shown others, s
    is that of two independent scores.

    Args:
        one: What `Invariance.measured` found of a network.
        other: What it found of another network, or the same again to compare two layers of one network.
        layer: The layer of the first; by default its last.
        other_layer: The layer of the second; by default its last.

    Returns:
        One row per transformation, for the best units (p as measured) and for all (p = 1): ``score`` and
        ``other_score`` on held-out stimuli (``held_out`` and ``mean_held_out`` of the tables, not their ``score``),
        their ``difference`` with its 95 % interval ``low``, ``high``, and whether it is ``paired``: whether both were
        shown the same stimuli. The interval is NaN where there are too few resamples or clips to tell. What was
        measured with other settings is refused.

    Example:
        ```python
        found = measure.measured(network)
        assay.invariance_differences(found, found, "layer4", "layer1")
        ```
    """
    for given in (one, other):
        if not isinstance(given, Measured):
            raise AssayError(
                f"a {type(given).__name__} has no resamples to pair: give what Invariance.measured returns"
            )
    first, second = (_rows_of(m, name) for m, name in ((one, layer), (other, other_layer)))
    shared = [name for name in first if name in second]
    if not shared:
        raise AssayError(f"the two share no transformation: {', '.join(first)} and {', '.join(second)}")
    for setting, value in one.how.items():
        theirs = other.how.get(setting, value)
        if theirs != value or isinstance(theirs, int) != isinstance(
            value, int
        ):  # 1 is a number of stimuli, 1.0 a share
            raise AssayError(
                f"the two were measured with {setting}={value!r} and {setting}={other.how[setting]!r}: their scores "
                "cannot be compared; measure both alike"
            )
    same = one.shown is other.shown or fingerprint(one.shown) == fingerprint(other.shown)
    rows = []
    for name in shared:
        (a, a_layer), (b, b_layer) = first[name], second[name]
        for of in _OF:
            x, y = (replace(score_of(m, n, of), common=same) for m, n in ((one, a), (other, b)))
            apart = difference(x, y)
            low, high = (np.nan, np.nan) if apart is None else apart.interval()
            rows.append(
                {
                    "transformation": name,
                    "of": of,
                    "layer": a_layer,
                    "other_layer": b_layer,
                    "score": x.value,
                    "other_score": y.value,
                    "difference": x.value - y.value,
                    "low": low,
                    "high": high,
                    "paired": same,
                }
            )
    return pd.DataFrame(rows)


def _rows_of(measured: Measured, layer: str | None) -> dict[str, tuple[int, str]]:
    """The row of a layer for each transformation, with the layer's name."""
    table = measured.table.reset_index(drop=True)
    known = list(dict.fromkeys(table["layer"]))
    if layer is not None and layer not in known:
        raise AssayError(f"no layer {layer!r} was measured{nearest(layer, known)}")
    chosen = table[table["layer"] == (known[-1] if layer is None else layer)]
    numbers = np.flatnonzero(table["layer"] == chosen["layer"].iloc[0]).tolist()
    return dict(zip(chosen["transformation"], zip(numbers, chosen["layer"], strict=True), strict=True))
