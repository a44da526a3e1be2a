"""Figures of perceptual curvature: what observers could tell apart, and how curved sequences are to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from assay.core.errors import AssayError, shown
from assay.core.plot import Plot
from assay.report.document import DotChart, LineChart, Mark, Point, Series
from assay.report.figures import plotted


def plot_discrimination(pairs: pd.DataFrame) -> Plot:
    """Draw how often frames were told apart by how many frames lie between them, beside what was fitted.

    Args:
        pairs: The table ``pairs`` of a `perceptual_curvature`, or the table of a `Discrimination`, which has no fit.

    Returns:
        A figure that a notebook shows; ``plot.save("discrimination.png")`` writes it.
    """
    return plotted(discrimination_chart(pairs))


def discrimination_chart(pairs: pd.DataFrame) -> LineChart:
    """The chart of `plot_discrimination`, for a report."""
    needed = ("first", "second", "correct", "trials")
    missing = [name for name in needed if name not in pairs] if isinstance(pairs, pd.DataFrame) else list(needed)
    if missing:
        raise AssayError(f"pairs={shown(pairs)} has no column {missing[0]!r}: give the pairs of a perceptual curvature")
    answered, fitted = [], []
    for apart, rows in pairs.groupby(pairs["second"] - pairs["first"]):
        trials = int(rows["trials"].sum())
        share, label = float(rows["correct"].sum() / trials), f"{apart} frames apart"
        answered.append(Point(float(apart), share, None, label, f"{share:.1%} of {trials} trials"))
        if "predicted" in rows:
            expected = float((rows["predicted"] * rows["trials"]).sum() / trials)
            fitted.append(Point(float(apart), expected, None, label, f"{expected:.1%} expected"))
    lines = (("answered", tuple(answered)), *((("fitted", tuple(fitted)),) if fitted else ()))
    reach = (float(answered[0].x), float(answered[-1].x))
    caption = "How often frames were told apart"
    return LineChart(caption, "frames apart", "share correct", lines, ("chance", 0.5), x_range=reach)


def plot_perceptual_curvature(fits: Mapping[str, Any], pixels: Mapping[str, float] | None = None) -> Plot:
    """Draw the perceptual curvature of sequences or observers with its 95 % intervals, beside that of the pixels.

    Args:
        fits: What `perceptual_curvature` returned, by the name of the sequence or observer.
        pixels: The curvature of the pixels, in degrees, by the same names; None to leave it out.

    Returns:
        A figure that a notebook shows; ``plot.save("perception.png")`` writes it.
    """
    return plotted(perceptual_curvature_chart(fits, pixels))


def perceptual_curvature_chart(fits: Mapping[str, Any], pixels: Mapping[str, float] | None = None) -> DotChart:
    """The chart of `plot_perceptual_curvature`, for a report."""
    if not isinstance(fits, Mapping) or not fits:
        raise AssayError(f"fits={shown(fits)} must be one or more perceptual curvatures by name")
    if pixels is not None and not isinstance(pixels, Mapping):
        raise AssayError(f"pixels={shown(pixels)} must be curvatures by the names of the fits, as {{'first': 81.1}}")
    unknown = [name for name in pixels or {} if name not in fits]
    if unknown:
        raise AssayError(f"pixels has {unknown[0]!r}, which is not among the fits: {', '.join(map(str, fits))}")
    marks = []
    for group, (name, fit) in enumerate(fits.items()):
        detail = "" if fit.settled else "the chains do not agree"
        marks.append(Mark(group, 0, float(fit.curvature_deg), (float(fit.low), float(fit.high)), detail))
        if pixels and name in pixels:
            marks.append(Mark(group, 1, float(pixels[name]), None, ""))
    series = (Series("perceptual", 0), *((Series("pixels", 1, 1),) if pixels else ()))
    return DotChart(
        "Perceptual curvature (bars: 95 % intervals)",
        "curvature (degrees)",
        tuple(map(str, fits)),
        series,
        tuple(marks),
        f"Perceptual curvature of {len(fits)} sequences or observers",
        rows=True,
        spread=bool(pixels),
    )
