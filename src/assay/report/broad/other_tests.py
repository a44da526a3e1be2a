"""What other tests say of the same contrasts: tests over folds, practical equality, and a posterior; for those who ask.

No verdict rests on them.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from assay.report.broad.cells import p_value, said
from assay.report.broad.evaluation import Evaluation, TaskShown, rows
from assay.report.document import Block, Table, Text

OVER_FOLDS = {
    "Wilcoxon p": ("wilcoxon_p", "exact, of signed ranks over folds"),
    "sign p": ("sign_p", "exact, of the signs over folds"),
    "paired t p": ("paired_t_p", "of the differences over folds, taken to be independent"),
}
EQUALITY = {
    "not inferior p": ("noninferior_p", "one-sided, for a loss of the margin or more"),
    "equivalent": ("equivalent", "whether the 95 % interval (with few groups 97.5 %) lies within the margin"),
    "equivalence p": ("equivalent_p", "of two one-sided tests (TOST)"),
    "P(better)": ("p_better", "posterior probability of an advantage of the margin or more"),
    "P(comparable)": ("p_comparable", "posterior probability of a difference below the margin"),
    "P(worse)": ("p_worse", "posterior probability of a loss of the margin or more"),
}


def other_tests_blocks(e: Evaluation) -> list[Block]:
    """Two tables for each task: tests over folds, and practical equality."""
    blocks: list[Block] = []
    for task in e.tasks:
        for what, columns in (("tests over folds", OVER_FOLDS), ("practical equality", EQUALITY)):
            if (table := _table(e, task, what, columns)) is not None:
                blocks.append(table)
    if not blocks:
        return []
    k = e.protocol["k"]
    folds = (
        f"No verdict rests on these. Tests over folds see only how results vary between training sets, not the chance "
        f"of the common test set, and so raise many false alarms. Of {k} folds, p of Wilcoxon and of the sign test "
        f"cannot fall below 2/2^{k} = {2 / 2**k:.2g}."
    )
    posterior = (
        "The posterior is Student's t around the difference, with the two-component variance and at most K − 1 degrees "
        "of freedom (after Benavoli, Corani, Demšar & Zaffalon 2017). Not adjusted for many contrasts."
    )
    return [Text(folds), Text(posterior), *blocks]


def _table(e: Evaluation, task: TaskShown, what: str, columns: dict[str, tuple[str, str]]) -> Table | None:
    table = e.table("contrasts", task.name, "contrast", "team", *(column for column, _ in columns.values()))
    table_rows = []
    for row in rows(table):
        if str(row["contrast"]).startswith("6") and row["status"] == "ok":
            cells: dict[str, Any] = {"contrast": row["contrast"], "team": e.team(row["team"])}
            for name, (column, _) in columns.items():
                value = row[column]
                cells[name] = (
                    f"{value:.2f}" if name.startswith("P(") else said(value) if name == "equivalent" else p_value(value)
                )
            table_rows.append(cells)
    if not table_rows:
        return None
    notes = {name: note for name, (_, note) in columns.items()}
    return Table(f"{task.title}: {what}", pd.DataFrame(table_rows), notes, e.csv("contrasts"))
