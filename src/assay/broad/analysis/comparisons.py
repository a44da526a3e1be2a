"""Rows of the analysis' tables: conditions compared, teams ranked, claims judged (the plan, §5.6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from assay.broad.analysis.claims import CLAIMS, excludes_margin, judge
from assay.broad.analysis.scores import Scores
from assay.broad.analysis.two_component import standard_errors_apart, with_folds_redrawn
from assay.broad.conditions import Contrast
from assay.broad.data.dataset import Array
from assay.stats.bootstrap import ranking_stability
from assay.stats.equivalence import equivalence_p, minimum_detectable_difference, noninferiority_p, student_posterior
from assay.stats.multiplicity import benjamini_hochberg, holm
from assay.stats.paired import paired_t_p, sign_p, standard_error, wilcoxon_p

FOCAL = 6  # the condition of most interest (§5.2): planned contrasts start from it, and teams are ranked by it


def compared(scores: Scores, contrast: Contrast, team: str, margin: float) -> dict[str, Any]:
    """Compare two conditions of a team: a row of the table of contrasts."""
    focal = scores.run_of(contrast.focal, team)
    other = scores.run_of(contrast.other, team)
    row: dict[str, Any] = {
        **_names(scores, contrast, team), "question": contrast.question, "focal": focal or "", "other": other or "",
        "planned": contrast.focal == FOCAL, "margin": margin,
    }  # fmt: skip
    reason = _missing_reason(scores, contrast, team)
    if reason or focal is None or other is None:
        return row | {"status": "undecided", "reason": reason, "plan_rule": "undecided"}
    sign = scores.metric.sign
    a = sign * scores.means(focal)
    b = sign * scores.means(other)
    d = a - b
    interval = scores.interval(d, scores.test_variance(focal, other))
    estimate = (interval.difference, interval.variance)
    noninferior_p = noninferiority_p(*estimate, margin, interval.df)
    equivalent_p = equivalence_p(*estimate, margin, interval.df)
    posterior = student_posterior(*estimate, min(len(d) - 1, interval.df), margin)
    return row | {
        "status": "ok", "reason": "",
        "difference": interval.difference, "low": interval.low, "high": interval.high, "p": interval.p,
        "plan_rule": _plan_rule(a, b, contrast.focal, contrast.other),
        "noninferior": excludes_margin(noninferior_p, scores.extent.few), "noninferior_p": noninferior_p,
        "equivalent": excludes_margin(equivalent_p, scores.extent.few), "equivalent_p": equivalent_p,
        "p_better": posterior.better, "p_comparable": posterior.equal, "p_worse": posterior.worse,
        "mdd": minimum_detectable_difference(interval.variance, df=interval.df),
        "v_fold": interval.v_fold, "v_test": interval.v_test, "df": interval.df, "few_groups": scores.extent.few,
        "paired_t_p": paired_t_p(d), "wilcoxon_p": wilcoxon_p(d), "sign_p": sign_p(d),
        **scores.sizes(focal),
    }  # fmt: skip


def by_label(scores: Scores, contrast: Contrast, team: str) -> list[dict[str, Any]]:
    """Compare two conditions label by label, to explore; no rows where the task has only one label."""
    focal = scores.run_of(contrast.focal, team)
    other = scores.run_of(contrast.other, team)
    if len(scores.labels) == 1 or focal is None or other is None or _missing_reason(scores, contrast, team):
        return []
    d = scores.metric.sign * (scores.values[focal] - scores.values[other])
    drawn = (scores.draws[focal] - scores.draws[other]).mean(axis=0)
    rows = []
    for c, label in enumerate(scores.labels):
        if np.isfinite(d[:, c]).all():
            v_test = scores.extent.inflation * float(np.nanvar(drawn[c], ddof=1))
            interval = scores.interval(d[:, c], v_test)
            numbers = {
                "difference": interval.difference,
                "low": interval.low,
                "high": interval.high,
                "p": interval.p,
            }
            sizes = {"n_folds": len(d), "n_instances": scores.extent.instances}
            rows.append({**_names(scores, contrast, team), "label": label, **numbers, **sizes})
    return rows


def ranked(scores: Scores, seed: int) -> list[dict[str, Any]]:
    """Rank the teams by the mean of their focal run; teams without one come last, without a rank.

    Each team is compared with its neighbour in the order (the one above; for the first, the one below); they are
    ``tied`` where the two-component interval of their difference covers 0. ``stability`` is the share of draws, of
    test instances and of folds, in which the whole order holds.
    """
    sign = scores.metric.sign
    focal_runs = {team: scores.run_of(FOCAL, team) for team in scores.teams}
    in_order = [(team, run) for team, run in focal_runs.items() if run is not None and run in scores.values]
    in_order.sort(key=lambda pair: -sign * float(scores.means(pair[1]).mean()))
    stability = float("nan")
    if len(in_order) > 1:
        drawn = sign * with_folds_redrawn(np.stack([scores.drawn(run) for _, run in in_order]), seed)
        complete = drawn[:, np.isfinite(drawn).all(axis=0)]
        stability = ranking_stability(-np.arange(len(in_order)), complete)
    rows: list[dict[str, Any]] = []
    for place, (team, run) in enumerate(in_order):
        row = {"task": scores.task, "metric": scores.called, "rank": place + 1, "team": team, "run": run}
        means = scores.means(run)
        row |= {"value": means.mean(), "se": float(standard_error(means)), **scores.sizes(run)}
        if len(in_order) > 1:
            _, neighbour = in_order[place - 1 if place else 1]
            interval = scores.interval(means - scores.means(neighbour), scores.test_variance(run, neighbour))
            apart = standard_errors_apart(means, scores.means(neighbour))
            row["tied"] = interval.low <= 0 <= interval.high or scores.extent.units < 2
            row["plan_rule"] = "standard errors apart" if apart else "standard errors overlap"
        rows.append({"plan_rule": "", "stability": stability, **row})
    for team in scores.teams:
        if team not in dict(in_order):
            unranked = {"team": team, "run": focal_runs[team] or "", "plan_rule": ""}
            rows.append({"task": scores.task, "metric": scores.called, **unranked})
    return rows


def _names(scores: Scores, contrast: Contrast, team: str) -> dict[str, Any]:
    return {"task": scores.task, "metric": scores.called, "contrast": contrast.name, "team": team}


def _missing_reason(scores: Scores, contrast: Contrast, team: str) -> str:
    """Say why a contrast cannot be computed; an empty string if it can."""
    for condition in (contrast.focal, contrast.other):
        run = scores.run_of(condition, team)
        if run is None:
            return f"there is no run of condition {condition} for team {team}"
        if run not in scores.values:
            return f"run {run} has no predictions to score: {scores.reasons[run]}"
    if scores.extent.units < 2:
        return "all test instances belong to one group, which cannot show how results vary between groups"
    return ""


def _plan_rule(a: Array, b: Array, focal: int, other: int) -> str:
    if not standard_errors_apart(a, b):
        return "no difference suggested"
    return f"{focal if a.mean() > b.mean() else other} is better"


def adjust_planned(rows: list[dict[str, Any]]) -> None:
    """Adjust the p values of the planned contrasts by Holm, within each family (a task, or all its ratings together).

    The family is what was planned: a contrast that could not be computed still counts, so that a missing run never
    makes it easier for the others. ``n_family`` is its size.
    """
    for members in _families([row for row in rows if row["planned"]]):
        adjusted = holm(np.array([row.get("p", np.nan) for row in members]), family=len(members))
        for row, p in zip(members, adjusted, strict=True):
            row |= {"p_holm": float(p), "n_family": len(members)}


def adjust_labels(rows: list[dict[str, Any]]) -> None:
    """Adjust the p values of the labels by Benjamini and Hochberg, within each family: they only explore."""
    for members in _families(rows):
        for row, p in zip(members, benjamini_hochberg(np.array([row["p"] for row in members])), strict=True):
            row["p_bh"] = float(p)


def _families(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    families: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        before, colon, _ = str(row["task"]).partition(":")
        families.setdefault(before + colon, []).append(row)
    return list(families.values())


def judged(contrasts: list[dict[str, Any]], teams: Mapping[str, str]) -> list[dict[str, Any]]:
    """Judge every claim for each task and team: rows of the table of claims.

    Args:
        contrasts: Rows of the table of contrasts.
        teams: Names of the teams by letter, for the sentences.
    """
    rows = []
    for task, team in dict.fromkeys((row["task"], row["team"]) for row in contrasts):
        for claim in CLAIMS:
            for row in contrasts:
                if (row["task"], row["team"], row["contrast"]) == (task, team, claim.contrast):
                    judgement = judge(claim, row, teams.get(team, f"Team {team}"))
                    columns = {"contrast": claim.contrast, **asdict(judgement)}
                    rows.append({"task": task, "team": team, "claim": claim.name, **columns})
    return rows
