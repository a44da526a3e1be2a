"""Stability of metrics during training: within a network, and across networks that differ in their first weights.

Blanchard et al. 2019, §4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy

from assay.core.errors import AssayError
from assay.stats.bootstrap import bootstrap_draws
from assay.stats.convergence import converged
from assay.studies.trajectories import EPOCH, each_network, measurements, require_trajectories

NAN = float("nan")


def stable_epochs(
    trajectories: pd.DataFrame, metrics: Sequence[str], window: float = 25, sd: float = 0.01
) -> pd.DataFrame:
    """The epoch from which each metric of each network was stable: its SD was at most ``sd`` over ``window`` epochs.

    Args:
        trajectories: A table with one row per network and epoch: ``network``, ``epoch`` and a column for each metric.
        metrics: The columns to examine. Where one has no value it was not measured, unless it was due: then measuring
            failed, and no window with that row is stable, as in a live training.
        window: Number of epochs during which a metric must be stable.
        sd: The largest standard deviation that counts as stable.

    Returns:
        One row per network and metric: ``network``, ``metric``, ``stable_epoch``, the epoch at which the window ends
        (NaN if it was never stable), and ``last_epoch``, the last that was measured.

    Example:
        >>> table = pd.DataFrame({"network": "a", "epoch": range(0, 50, 5), "hms": [0, 0.1, *[0.2] * 8]})
        >>> stable_epochs(table, ["hms"])["stable_epoch"].item()
        35.0
    """
    require_trajectories(trajectories, metrics)
    rows = []
    for network, of_network in each_network(trajectories):
        for metric in metrics:
            measured = measurements(of_network, metric)
            epoch = converged(measured[metric].tolist(), measured[EPOCH].tolist(), window, sd)
            known = of_network[EPOCH][of_network[metric].notna()]
            rows.append(
                {
                    "network": network,
                    "metric": metric,
                    "stable_epoch": NAN if epoch is None else float(epoch),
                    "last_epoch": float(known.max()) if len(known) else NAN,
                }
            )
    return pd.DataFrame(rows)


def when_stable(stable: pd.DataFrame, draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """How many networks became stable in each metric, and when.

    Args:
        stable: The table of `stable_epochs`.
        draws: Number of resamples of the networks for the interval of the median.
        seed: Seed of the resamples.

    Returns:
        One row per metric: ``networks``; ``share_stable``; ``mean_epoch`` and ``sd_epoch`` of those that became stable;
        ``median_epoch`` of all networks, those that never did counting as later than any, with ``low`` and ``high``,
        its 95 % interval over networks (percentile bootstrap). It is infinite where half of the networks or more never
        became stable.

    Example:
        >>> table = pd.DataFrame({"network": list("abc"), "metric": "hms", "stable_epoch": [30.0, 35.0, np.nan]})
        >>> when_stable(table)[["share_stable", "mean_epoch", "median_epoch"]].round(2).to_numpy().tolist()
        [[0.67, 32.5, 35.0]]
    """
    rows = []
    for metric, of_metric in stable.groupby("metric", sort=False):
        epochs = of_metric["stable_epoch"].to_numpy(dtype=float)
        reached = epochs[np.isfinite(epochs)]
        counted = np.where(np.isfinite(epochs), epochs, np.inf)
        drawn = bootstrap_draws(counted, _median, draws, seed)
        # Quantiles that do not interpolate, because of the infinite ones.
        low, high = np.quantile(drawn, (0.025, 0.975), method="nearest") if len(drawn) else (NAN, NAN)
        rows.append(
            {
                "metric": metric,
                "networks": len(epochs),
                "share_stable": len(reached) / len(epochs),
                "mean_epoch": float(reached.mean()) if len(reached) else NAN,
                "sd_epoch": float(reached.std(ddof=1)) if len(reached) > 1 else NAN,
                "median_epoch": float(_median(counted)),
                "low": float(low),
                "high": float(high),
            }
        )
    return pd.DataFrame(rows)


def by_epoch(trajectories: pd.DataFrame, metrics: Sequence[str], confidence: float = 0.95) -> pd.DataFrame:
    """Mean and standard deviation of metrics over networks, epoch by epoch.

    Of networks that differ in their first weights only, the standard deviation says how far a metric depends on those.

    Args:
        trajectories: A table with one row per network and epoch: ``network``, ``epoch`` and a column for each metric.
        metrics: The columns to describe.
        confidence: How often the intervals contain the mean.

    Returns:
        One row per metric and epoch: ``metric``, ``epoch``, ``mean``, ``sd`` (of n − 1), ``low`` and ``high``, the
        interval of the mean (Student's t), and ``n``, the networks measured then.

    Example:
        >>> table = pd.DataFrame({"network": ["a", "b"], "epoch": [5, 5], "hms": [0.1, 0.3]})
        >>> by_epoch(table, ["hms"])[["mean", "sd", "n"]].round(4).to_numpy().tolist()
        [[0.2, 0.1414, 2.0]]
    """
    require_trajectories(trajectories, metrics)
    if not 0 < confidence < 1:
        raise AssayError(f"confidence={confidence} is not between 0 and 1: use 0.95")
    rows = []
    for metric in metrics:
        finite = trajectories[np.isfinite(trajectories[metric].to_numpy(dtype=float))]
        for epoch, at_epoch in finite.groupby(EPOCH):
            values = at_epoch[metric].to_numpy(dtype=float)
            n, mean = len(values), float(values.mean())
            sd = float(values.std(ddof=1)) if n > 1 else NAN
            half = float(scipy.stats.t.ppf((1 + confidence) / 2, n - 1)) * sd / np.sqrt(n) if n > 1 else NAN
            ends = {"low": mean - half, "high": mean + half}
            rows.append({"metric": metric, "epoch": epoch, "mean": mean, "sd": sd, **ends, "n": n})
    return pd.DataFrame(rows)


def _median(values: np.ndarray[Any, Any]) -> float:
    """The middle value, or of two middle ones the mean; infinite if one of them is."""
    ordered = np.sort(values)
    n = len(ordered)
    return float((ordered[(n - 1) // 2] + ordered[n // 2]) / 2)
