"""Charts of many networks: how metrics agree, when they are stable, and what early stopping saves and loses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from assay.core.errors import AssayError
from assay.core.plot import Plot
from assay.report.document import DotChart, LineChart, Mark, Point, Series
from assay.report.figures import plotted

LEAST_READ = 0.2


def plot_agreement(*tables: pd.DataFrame) -> Plot:
    """Draw the correlations of metrics, one below the other, with their intervals.

    The range in which correlations are not interpreted, |ρ| < 0.2, is shaded.

    Args:
        tables: What `studies.metric_agreement` returned; several, such as the whole and the partial correlations, side
            by side.

    Returns:
        A figure that a notebook shows; ``plot.save("agreement.png")`` writes it.
    """
    return plotted(agreement_chart(*tables))


def agreement_chart(*tables: pd.DataFrame) -> DotChart:
    """The chart of `plot_agreement`, for a report."""
    _require(tables, ("first", "second", "given", "rho", "low", "high", "n"))
    whole = pd.concat(tables, ignore_index=True)
    pairs = list(dict.fromkeys(zip(whole["first"], whole["second"], strict=True)))
    kinds = list(dict.fromkeys(whole["given"]))
    marks = []
    for row in whole.to_dict("records"):
        if np.isfinite(row["rho"]):
            group, series = pairs.index((row["first"], row["second"])), kinds.index(row["given"])
            marks.append(Mark(group, series, float(row["rho"]), _ends(row), f"{row['n']} networks"))
    networks = int(whole["n"].max())
    return DotChart(
        f"Spearman's correlation of metrics over {networks} networks (bars: 95 % intervals)",
        "ρ",
        tuple(f"{first} – {second}" for first, second in pairs),
        tuple(Series(f"given {kind}" if kind else "all networks", i) for i, kind in enumerate(kinds)),
        tuple(marks),
        f"Correlations of {len(pairs)} pairs of metrics",
        reference=0.0,
        rows=True,
        spread=len(kinds) > 1,
        band=("not interpreted", -LEAST_READ, LEAST_READ),
    )


def plot_by_epoch(table: pd.DataFrame, band: str = "sd") -> Plot:
    """Draw metrics over the epochs, each in a chart of its own: the mean over networks.

    Args:
        table: What `studies.by_epoch` returned.
        band: What is shaded around the mean: ``"sd"``, the standard deviation over networks, or ``"interval"``, the
            95 % interval of the mean.
    """
    return plotted(*by_epoch_charts(table, band))


def by_epoch_charts(table: pd.DataFrame, band: str = "sd") -> list[LineChart]:
    """The charts of `plot_by_epoch`, for a report."""
    _require([table], ("metric", "epoch", "mean", "sd", "low", "high", "n"))
    if band not in ("sd", "interval"):
        raise AssayError(f"band={band!r} is not 'sd' or 'interval'")
    charts = []
    for metric, rows in table.groupby("metric", sort=False):
        points = []
        for row in rows.to_dict("records"):
            ends = _ends(row) if band == "interval" else _around(row["mean"], row["sd"])
            points.append(
                Point(float(row["epoch"]), float(row["mean"]), ends, f"epoch {row['epoch']}", f"n={row['n']}")
            )
        shaded = "SD over networks" if band == "sd" else "95 % interval of the mean"
        caption = f"{metric} over {int(rows['n'].max())} networks (band: {shaded})"
        reach = (float(rows["epoch"].min()), float(rows["epoch"].max()))
        charts.append(LineChart(caption, "epoch", str(metric), ((str(metric), tuple(points)),), x_range=reach))
    return charts


def plot_stable(stable: pd.DataFrame) -> Plot:
    """Draw the share of networks whose metrics have become stable by each epoch.

    Args:
        stable: What `studies.stable_epochs` returned.
    """
    return plotted(stable_chart(stable))


def stable_chart(stable: pd.DataFrame) -> LineChart:
    """The chart of `plot_stable`, for a report."""
    _require([stable], ("network", "metric", "stable_epoch", "last_epoch"))
    epochs = np.unique(stable["stable_epoch"].dropna().to_numpy(dtype=float))
    last = float(stable["last_epoch"].max())
    lines = []
    for metric, rows in stable.groupby("metric", sort=False):
        reached = rows["stable_epoch"].to_numpy(dtype=float)
        points = []
        for epoch in np.unique([0.0, *epochs, last]):
            share = float((reached <= epoch).mean())  # NaN is never reached
            points.append(
                Point(float(epoch), share, None, f"epoch {epoch:.0f}", f"{share:.0%} of {len(rows)} networks")
            )
        lines.append((str(metric), tuple(points)))
    networks = stable["network"].nunique()
    caption = f"Share of {networks} networks whose metric has become stable"
    return LineChart(caption, "epoch", "share of networks", tuple(lines), x_range=(0.0, last))


def plot_tradeoff(*tables: pd.DataFrame, performance: str = "performance") -> Plot:
    """Draw what early stopping loses for the training time that it saves, one line per signal.

    Args:
        tables: What `studies.saving_tradeoff` returned, of one or several signals.
        performance: What the axis calls the performance that is lost, with its unit.
    """
    return plotted(tradeoff_chart(*tables, performance=performance))


def tradeoff_chart(*tables: pd.DataFrame, performance: str = "performance") -> LineChart:
    """The chart of `plot_tradeoff`, for a report."""
    _require(tables, ("signal", "sd", "saved", "lost", "low", "high", "n"))
    whole = pd.concat(tables, ignore_index=True)
    lines = []
    for signal, rows in whole.groupby("signal", sort=False):
        ordered = rows.sort_values("saved").to_dict("records")
        points = (
            Point(float(row["saved"]), float(row["lost"]), _ends(row), f"SD ≤ {row['sd']:.3g}", f"n={row['n']}")
            for row in ordered
        )
        lines.append((f"stopped by {signal}", tuple(points)))
    caption = "What early stopping loses for what it saves (bands: 95 % intervals over networks)"
    return LineChart(caption, "training time saved", f"{performance} lost", tuple(lines), ("nothing lost", 0.0))


def _ends(row: dict[Any, Any]) -> tuple[float, float] | None:
    low, high = float(row["low"]), float(row["high"])
    return (low, high) if np.isfinite([low, high]).all() else None


def _around(mean: float, sd: float) -> tuple[float, float] | None:
    return (float(mean - sd), float(mean + sd)) if np.isfinite(sd) else None


def _require(tables: Sequence[pd.DataFrame], columns: Sequence[str]) -> None:
    if not tables or not all(len(table) for table in tables):
        raise AssayError("there is nothing to draw: give a table with rows")
    for table in tables:
        missing = [column for column in columns if column not in table]
        if missing:
            raise AssayError(f"the table has no column {missing[0]!r}: give what the study returned")
