"""The verdicts on the claims: a sentence each, and all of them in one table."""

from __future__ import annotations

from typing import Any

import pandas as pd

from assay.report.broad.evaluation import Evaluation, TaskShown, rows
from assay.report.document import (
    Block,
    Findings,
    Strip,
    Table,
    Text,
)

MAIN_CLAIMS = ("central", "comparable in quality", "non-inferior")
HEADLINES = ("central", "comparable in quality")  # what the terminal says
DIAGNOSTIC_CLAIMS = ("deep learning helps", "depth helps")
_TONE = {"supported": "good", "not supported": "bad"}


def headlines(claims: pd.DataFrame) -> list[str]:
    """The few sentences that matter most: each team's central claim and comparability, on each task as a whole.

    Args:
        claims: The analysis' table of claims.
    """
    chosen = claims[claims["claim"].isin(HEADLINES) & ~claims["task"].str.contains(":")]
    return [str(sentence) for sentence in chosen["sentence"]]


def verdicts(e: Evaluation, tasks: list[TaskShown], claims: tuple[str, ...]) -> Block:
    """A sentence for each of these claims, each task and each team, with its numbers."""
    items = []
    for claim in claims:
        for task in tasks:
            for row in rows(e.table("claims", task.name, "team", "claim", "verdict", "sentence")):
                if row["claim"] == claim:
                    asked = f"{task.title} · {e.team(row['team'])} · {claim_name(row)}: {row['verdict']}"
                    items.append((_TONE.get(row["verdict"], "open"), asked, row["sentence"]))
    return Findings(tuple(items)) if items else Text("No claim could be judged: the analysis holds none.")


def verdict_details(e: Evaluation) -> Block:
    """What every verdict rests on: the test, the sizes, the plan's own rule and its diagnosis."""
    table = e.table("claims", None, "team", "claim", "contrast", "verdict", "sentence", "detail")
    details = [
        {"claim": claim_name(row), "verdict": row["verdict"], "sentence": row["sentence"], "detail": row["detail"]}
        for row in rows(table)
    ]
    if not details:
        return Text("No claim could be judged: the analysis holds none.")
    return Table("Every verdict with its sentence and detail", pd.DataFrame(details), {}, e.csv("claims"))


def verdict_matrix(e: Evaluation, tasks: tuple[TaskShown, ...]) -> Block:
    """All verdicts in one table: a row for each task and team, a column for each claim."""
    table = e.table("claims", None, "team", "claim", "verdict", "sentence")
    names = list(dict.fromkeys(claim_name(row) for row in rows(table)))
    verdict_rows = []
    for task in tasks:
        of_task = rows(table[table["task"] == task.name])
        for team in dict.fromkeys(row["team"] for row in of_task):
            judged = {claim_name(row): row for row in of_task if row["team"] == team}
            cells = [
                (judged[n]["verdict"], _TONE.get(judged[n]["verdict"], "open"), judged[n]["sentence"])
                if n in judged
                else ("–", "", "")
                for n in names
            ]
            verdict_rows.append((f"{task.title} · {e.team(team)}", tuple(cells)))
    return Strip("Verdicts on all claims", tuple(names), tuple(verdict_rows))


def claim_name(row: dict[str, Any]) -> str:
    """Name of a claim with its contrast, such as ``central (6 v 3)``."""
    return f"{row['claim']} ({row['contrast']})" if row.get("contrast") else str(row["claim"])
