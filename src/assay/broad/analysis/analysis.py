"""The plan's analysis: from the predictions of all runs to tables, contrasts, rankings and verdicts (§5.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from assay.broad.analysis.comparisons import adjust_labels, adjust_planned, by_label, compared, judged, ranked
from assay.broad.analysis.scores import RunResult, TaskTruth, combined, scored
from assay.broad.conditions import Contrast
from assay.core.csv_files import read_table, to_csv
from assay.core.errors import AssayError
from assay.core.folder import Folder

MARGINS = {"MAP": 0.02, "RMSE": 0.02}

_TEXT, _WHOLE, _NUMBER, _YES = "str", "Int64", "float64", "boolean"
_SIZES = {"n_folds": _WHOLE, "n_labels": _WHOLE, "n_instances": _WHOLE, "n_distinct": _WHOLE, "n_groups": _WHOLE}
_TESTED = {"difference": _NUMBER, "low": _NUMBER, "high": _NUMBER, "p": _NUMBER}
_PAIR = {"task": _TEXT, "metric": _TEXT, "contrast": _TEXT, "team": _TEXT}
TABLES: dict[str, dict[str, str]] = {
    "values": {"task": _TEXT, "run": _TEXT, "label": _TEXT, "fold": _WHOLE, "value": _NUMBER},
    "by_fold": {"task": _TEXT, "run": _TEXT, "fold": _WHOLE, "mean": _NUMBER, "se": _NUMBER, "n": _WHOLE},
    "grand": {"task": _TEXT, "metric": _TEXT, "run": _TEXT, "mean": _NUMBER, "se": _NUMBER, **_SIZES},
    "contrasts": {
        **_PAIR, "question": _TEXT, "focal": _TEXT, "other": _TEXT, "status": _TEXT, "reason": _TEXT,
        **_TESTED, "planned": _YES, "p_holm": _NUMBER, "n_family": _WHOLE, "plan_rule": _TEXT,
        "margin": _NUMBER, "noninferior": _YES, "noninferior_p": _NUMBER, "equivalent": _YES, "equivalent_p": _NUMBER,
        "p_better": _NUMBER, "p_comparable": _NUMBER, "p_worse": _NUMBER,
        "mdd": _NUMBER, "v_fold": _NUMBER, "v_test": _NUMBER, "df": _NUMBER, "few_groups": _YES,
        "paired_t_p": _NUMBER, "wilcoxon_p": _NUMBER, "sign_p": _NUMBER, **_SIZES,
    },
    "labels": {**_PAIR, "label": _TEXT, **_TESTED, "p_bh": _NUMBER, "n_folds": _WHOLE, "n_instances": _WHOLE},
    "rankings": {
        "task": _TEXT, "metric": _TEXT, "rank": _WHOLE, "team": _TEXT, "run": _TEXT, "value": _NUMBER, "se": _NUMBER,
        "tied": _YES, "plan_rule": _TEXT, "stability": _NUMBER, **_SIZES,
    },
    "claims": {
        "task": _TEXT, "team": _TEXT, "claim": _TEXT, "contrast": _TEXT, "verdict": _TEXT,
        "sentence": _TEXT, "detail": _TEXT,
    },
    "status": {"task": _TEXT, "run": _TEXT, "status": _TEXT, "reason": _TEXT},
    "extra": {"task": _TEXT, "metric": _TEXT, "run": _TEXT, "mean": _NUMBER, "se": _NUMBER, **_SIZES},
}  # fmt: skip


@dataclass(frozen=True)
class Analysis:
    """The tables of an analysis by name, as `TABLES` lists them; each row is one observation."""

    tables: dict[str, pd.DataFrame]

    def write(self, folder: Folder) -> None:
        """Write the tables as CSV to ``analysis/``; the same analysis gives the same bytes (12 digits)."""
        for name, table in self.tables.items():
            folder.write(f"analysis/{name}.csv", to_csv(table, float_format="%.12g"))

    @classmethod
    def read(cls, folder: Folder) -> Analysis:
        """Read the tables that `write` wrote."""
        tables = {}
        for name, columns in TABLES.items():
            if not folder.exists(f"analysis/{name}.csv"):
                raise AssayError(f"{folder.url} holds no analysis/{name}.csv: analyse the results first")
            empty = {c: [""] for c, kind in columns.items() if kind != _TEXT}
            remedy, how = "analyse the results again", {"keep_default_na": False, "na_values": empty}
            tables[name] = read_table(folder, f"analysis/{name}.csv", columns, remedy, dtype=columns, **how)
        return cls(tables)


def analyze_results(
    results: Sequence[RunResult],
    truths: Sequence[TaskTruth],
    contrasts: Sequence[Contrast],
    margins: Mapping[str, float] = MARGINS,
    bootstrap: int = 1000,
    seed: int = 0,
    extra: Sequence[RunResult] = (),
    teams: Mapping[str, str] | None = None,
) -> Analysis:
    """Analyse the results as the plan's §5.6 asks, with the statistics that are needed to interpret them.

    Values per label and fold are averaged over labels within a fold, then over folds. The five ratings
    (``text:Overall``, …) are tasks of their own and also one task ``text``, whose value in fold i is the mean over
    ratings of the RMSE in their fold i (mRMSE). The ratings share their draws, of groups where instances have groups,
    else of reviews by their ids, so that what their test sets have in common counts. Where neither is known their draws
    are independent, and the test-set variance of the mean of R ratings is the sum of theirs by R².

    A run that failed is shown as missing and nothing takes its place: contrasts and claims that need it are undecided.

    Args:
        results: All runs of all tasks.
        truths: The truth about the test instances of all tasks.
        contrasts: Pairs of conditions to compare; those that start from condition 6 are the planned ones, adjusted
            together by Holm (the ratings of a text task are one family, their mean another). Those of missing runs
            count as well.
        margins: The largest loss that still counts as comparable, by metric.
        bootstrap: Number of random draws of the test set.
        seed: Seed of the random draws.
        extra: Further runs to score (learning curves, layers), in a table of their own.
        teams: Names of the teams by letter, for the sentences.

    Plan §5.6, §5.1.
    """
    keys = [(r.task, r.run) for r in (*results, *extra)]
    for task, run in keys:
        if keys.count((task, run)) > 1:
            raise AssayError(f"run {run!r} of {task} is there twice: give each run once")
        if task not in {t.task for t in truths}:
            raise AssayError(f"run {run!r} is of task {task!r}, of which no truth is given")
    tasks = [scored(t, [r for r in results if r.task == t.task], truths, bootstrap, seed) for t in truths]
    extra_scores = [scored(t, [r for r in extra if r.task == t.task], truths, 0, seed) for t in truths]
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    rows["status"] = [row for scores in (*tasks, *extra_scores) for row in scores.statuses()]
    rows["extra"] = [row for scores in (*extra_scores, *combined(truths, extra_scores)) for row in scores.grand()]
    for scores in [*tasks, *combined(truths, tasks)]:
        margin = margins.get(scores.metric.name)
        if margin is None:
            raise AssayError(f"margins has none for {scores.metric.name}: declare the largest loss that is comparable")
        rows["values"] += scores.rows()
        rows["by_fold"] += scores.by_fold()
        rows["grand"] += scores.grand()
        pairs = [(contrast, team) for contrast in contrasts for team in scores.teams]
        rows["contrasts"] += [compared(scores, contrast, team, margin) for contrast, team in pairs]
        rows["labels"] += [row for contrast, team in pairs for row in by_label(scores, contrast, team)]
        rows["rankings"] += ranked(scores, seed)
    adjust_planned(rows["contrasts"])
    adjust_labels(rows["labels"])
    rows["claims"] = judged(rows["contrasts"], teams or {})
    tables = {name: pd.DataFrame(rows[name], columns=list(columns)).astype(columns) for name, columns in TABLES.items()}
    return Analysis(tables)
