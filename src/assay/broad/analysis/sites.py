"""The same evaluation at two sites: do the results agree, how closely, and where do they part?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from assay.broad.analysis.scores import RunResult, TaskTruth
from assay.broad.data.dataset import Array
from assay.core.errors import AssayError
from assay.stats.correlation import spearman

COLUMNS = {
    "task": "str", "run": "str", "agreement": "str", "largest_difference": "float64", "rank_correlation": "float64",
    "metric": "str", "mean_a": "float64", "mean_b": "float64", "metric_difference": "float64",
    "first_differing_stage": "str",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Site:
    """The results of one site.

    Args:
        results: The runs of the site.
        partitions: Hash of the partition of each task.
        stages: For each (task, run), hashes of the output of each stage, in the order of the stages; may be empty.
        verdicts: For each (task, run), what was concluded from it, in any form that can be compared (such as the
            claims of its team); may be empty.
    """

    results: Sequence[RunResult]
    partitions: Mapping[str, str]
    stages: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    verdicts: Mapping[tuple[str, str], Any] = field(default_factory=dict)


def compare_sites(
    a: Site, b: Site, truths: Sequence[TaskTruth], tolerance: float = 1e-6, metric_tolerance: float = 0.02
) -> pd.DataFrame:
    """Compare the predictions of two sites, one row for each run.

    ``agreement`` is the closest kind of agreement that holds: ``identical`` predictions; ``numerically close``, no two
    predictions further apart than the tolerance; ``same conclusion``, the same verdicts where both sites give verdicts,
    else grand means no further apart than the metric's tolerance; ``different conclusion``. Runs that cannot be
    compared say so: ``other partition``, ``only at a``, ``only at b``, ``nothing to compare`` (neither has
    predictions), ``other shape``.

    Args:
        a: Results of one site.
        b: Results of the other site.
        truths: The truth about the test instances of each task.
        tolerance: Ignore differences between single predictions up to this size.
        metric_tolerance: Ignore differences between grand means up to this size.

    Returns:
        ``largest_difference`` of single predictions, ``rank_correlation`` (Spearman's, the mean over folds and
        labels), grand means of both, and the first stage whose hashes differ, where hashes are given.

    Plan §3.1, §6.
    """
    left = _by_run(a.results)
    right = _by_run(b.results)
    if not left.keys() & right.keys():
        raise AssayError("the sites share no run: compare results of the same tasks and runs")
    truth_of = {truth.task: truth for truth in truths}
    rows = []
    for key in dict.fromkeys([*left, *right]):
        task, run = key
        row: dict[str, Any] = {"task": task, "run": run, "metric": "", "first_differing_stage": ""}
        row["first_differing_stage"] = _first_difference(a.stages.get(key, {}), b.stages.get(key, {}))
        x, y = (side[key].predictions if key in side else None for side in (left, right))
        if a.partitions.get(task) != b.partitions.get(task):
            row["agreement"] = "other partition"
        elif x is None or y is None:
            alone = "only at b" if y is not None else "only at a" if x is not None else "nothing to compare"
            row["agreement"] = alone
        elif x.shape != y.shape:
            row["agreement"] = "other shape"
        else:
            if task not in truth_of:
                raise AssayError(f"task {task!r} has no truth: give the truths of all tasks")
            row |= _differences(x, y, truth_of[task])
            row["agreement"] = _agreement(row, a.verdicts.get(key), b.verdicts.get(key), tolerance, metric_tolerance)
        rows.append(row)
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def _agreement(row: Mapping[str, Any], a: Any, b: Any, tolerance: float, metric_tolerance: float) -> str:
    if row["largest_difference"] == 0:
        return "identical"
    if row["largest_difference"] <= tolerance:
        return "numerically close"
    given = a is not None and b is not None
    same = a == b if given else abs(row["metric_difference"]) <= metric_tolerance
    return "same conclusion" if same else "different conclusion"


def _differences(x: Array, y: Array, truth: TaskTruth) -> dict[str, Any]:
    for name, values in (("a", x), ("b", y)):
        fault = truth.metric.fault(values)
        if fault:
            raise AssayError(f"{truth.task}, site {name}: {fault}")
    mean_a, mean_b = (float(np.nanmean([truth.metric.values(truth.targets, fold) for fold in side])) for side in (x, y))
    return {
        "largest_difference": float(np.abs(x.astype(np.float64) - y).max()),
        "rank_correlation": _rank_correlation(x, y),
        "metric": truth.metric.name,
        "mean_a": mean_a,
        "mean_b": mean_b,
        "metric_difference": mean_b - mean_a,
    }


def _rank_correlation(x: Array, y: Array) -> float:
    """Mean rank correlation over folds and labels.

    Columns that are constant at both sites agree; those that are constant at one site only have no correlation.
    """
    correlations = []
    for fold in range(x.shape[0]):
        for c in range(x.shape[2]):
            p = x[fold, :, c]
            q = y[fold, :, c]
            both_constant = np.ptp(p) == 0 and np.ptp(q) == 0
            correlations.append(1.0 if both_constant else spearman(p, q))
    known = [value for value in correlations if not np.isnan(value)]
    return float(np.mean(known)) if known else float("nan")


def _first_difference(a: Mapping[str, str], b: Mapping[str, str]) -> str:
    return next((stage for stage, value in a.items() if stage in b and b[stage] != value), "")


def _by_run(results: Sequence[RunResult]) -> dict[tuple[str, str], RunResult]:
    return {(r.task, r.run): r for r in results}
