"""The verdicts on the claims as slides show them: a few words and the numbers; the sentences are in the notes."""

from __future__ import annotations

from typing import Any

from assay.report.broad.charts import difference
from assay.report.broad.evaluation import Evaluation, TaskShown, rows
from assay.report.broad.verdicts import claim_name
from assay.report.document import Strip, Text

_TONE = {"supported": "good", "not supported": "bad"}


def claims_table(e: Evaluation, tasks: list[TaskShown], claims: tuple[str, ...]) -> Strip | Text:
    """A row for each of these claims, each task and each team: the verdict, then the difference with its interval."""
    table_rows = []
    for claim in claims:
        for task in tasks:
            for row in _judged(e, task, claim):
                who = f"{e.team(row['team'])}, {task.title.lower()}"
                cells = (
                    (claim_name(row), "", ""),
                    (row["verdict"], _TONE.get(row["verdict"], "open"), ""),
                    (_numbers(e, task, row), "", ""),
                )
                table_rows.append((who, cells))
    if not table_rows:
        return Text("No claim could be judged: the analysis holds none.")
    return Strip("Verdicts", ("claim", "verdict", "difference (95 % interval)"), tuple(table_rows))


def claims_notes(e: Evaluation, tasks: list[TaskShown], claims: tuple[str, ...]) -> str:
    """The sentences of the verdicts with what each rests on, one a line."""
    judged = [row for claim in claims for task in tasks for row in _judged(e, task, claim)]
    return "\n".join(f"{row['sentence']} {row.get('detail', '')}".strip() for row in judged)


def _judged(e: Evaluation, task: TaskShown, claim: str) -> list[dict[str, Any]]:
    table = e.table("claims", task.name, "team", "claim", "contrast", "verdict", "sentence")
    return [row for row in rows(table) if row["claim"] == claim]


def _numbers(e: Evaluation, task: TaskShown, claim: dict[str, Any]) -> str:
    """The difference that decides a claim, with its interval; why there is none where there is none."""
    table = e.table("contrasts", task.name, "contrast", "team", "difference", "low", "high")
    chosen = [r for r in rows(table) if (r["contrast"], r["team"]) == (claim["contrast"], claim["team"])]
    return f"{difference(chosen[0])} {task.metric}" if chosen else "no comparison"
