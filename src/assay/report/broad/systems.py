"""The systems that were compared: what they are made of, what was handed in, and whether they conform."""

from __future__ import annotations

import pandas as pd

from assay.broad.run.results import Results
from assay.broad.systems.team import system_hash
from assay.report.broad import text
from assay.report.broad.cells import settings_text
from assay.report.broad.evaluation import Evaluation, rows
from assay.report.document import (
    Block,
    Table,
)


def component_table(e: Evaluation) -> Table:
    """Who brought which module, with its parameters and the hash of its source."""
    made = []
    parties = [("evaluators", e.manifest["evaluators"]), *((t["name"], t["parts"]) for t in e.manifest["teams"])]
    for who, by_modality in parties:
        for modality, parts in by_modality.items():
            for role, module in parts.items():
                if isinstance(module, dict):
                    made.append(
                        {
                            "who": who,
                            "task": modality,
                            "part": role,
                            "module": module["module"],
                            "parameters": settings_text(module["parameters"]),
                            "source": module["source"][:12],
                        }
                    )
    return Table("Components", pd.DataFrame(made), {"source": "first digits of the SHA-256 of its source"})


def checklist_table(e: Evaluation) -> Table:
    """What each team handed in, and how deep its learners are (the plan, §3.2)."""
    made = []
    for team in e.manifest["teams"]:
        given = team.get("documents") or {}
        for name in (*text.DOCUMENTS, *(n for n in given if n not in text.DOCUMENTS)):
            place = given.get(name)
            row = {"team": team["name"], "item": text.DOCUMENTS.get(name, name)}
            made.append(row | {"status": "handed in" if place else "missing", "detail": place or "–"})
        for modality, parts in team["parts"].items():
            layers = next(
                (r.layers for (task, run), r in e.records.items()
                 if task.partition(":")[0] == modality and run == f"6{team['letter']}" and r.layers), None,
            )  # fmt: skip
            row = {"team": team["name"], "item": f"{modality}: the same algorithms in at least three layers"}
            enough = "not known" if layers is None else "three or more" if len(layers) >= 3 else "non-conforming"
            made.append(row | {"status": enough, "detail": "–" if layers is None else ", ".join(layers)})
            came = (
                ("pre-trained (declared)", parts["declaration"]) if parts.get("trained_from") else ("trained here", "–")
            )
            row = {"team": team["name"], "item": f"{modality}: learner"}
            made.append(row | {"status": came[0], "detail": came[1]})
    return Table("Submission checklist", pd.DataFrame(made))


def conformance_table(e: Evaluation) -> Table | None:
    """What ``assay broad check`` found of the systems; of those that have changed since, that it is out of date."""
    checks = Results(e.files.url).read_checks()
    if checks is None or checks.empty:
        return None
    systems = {
        (team["name"], modality): system_hash(parts)[:12]
        for team in e.manifest["teams"]
        for modality, parts in team["parts"].items()
    }
    made = []
    for row in rows(checks):
        system = row.pop("system")
        now = systems.get((row["team"], row["task"]))
        made.append(row if system == now else row | {"status": "out of date"})
    notes = {"status": "out of date: source or parameters have changed since it was checked"}
    return Table("Conformance (the plan, §3.2)", pd.DataFrame(made), notes, "conformance.csv")


def system_blocks(e: Evaluation) -> list[Block]:
    """Components, documents and, where it was checked, conformance."""
    conformance = conformance_table(e)
    return [component_table(e), checklist_table(e), *([] if conformance is None else [conformance])]
