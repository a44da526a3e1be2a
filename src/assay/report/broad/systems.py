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
    """Which party contributed which module, with its parameters and the hash of its source."""
    components = []
    parties = [("evaluators", e.manifest["evaluators"]), *((t["name"], t["parts"]) for t in e.manifest["teams"])]
    for party, by_modality in parties:
        for modality, parts in by_modality.items():
            for role, module in parts.items():
                if isinstance(module, dict):
                    components.append(
                        {
                            "who": party,
                            "task": modality,
                            "part": role,
                            "module": module["module"],
                            "parameters": settings_text(module["parameters"]),
                            "source": module["source"][:12],
                        }
                    )
    return Table("Components", pd.DataFrame(components), {"source": "first digits of the SHA-256 of its source"})


def checklist_table(e: Evaluation) -> Table:
    """What each team handed in, and how deep its learners are (the plan, §3.2)."""
    items = []
    for team in e.manifest["teams"]:
        documents = team.get("documents") or {}
        for name in (*text.DOCUMENTS, *(n for n in documents if n not in text.DOCUMENTS)):
            path = documents.get(name)
            row = {"team": team["name"], "item": text.DOCUMENTS.get(name, name)}
            items.append(row | {"status": "handed in" if path else "missing", "detail": path or "–"})
        for modality, parts in team["parts"].items():
            layers = next(
                (r.layers for (task, run), r in e.records.items()
                 if task.partition(":")[0] == modality and run == f"6{team['letter']}" and r.layers), None,
            )  # fmt: skip
            row = {"team": team["name"], "item": f"{modality}: the same algorithms in at least three layers"}
            depth = "not known" if layers is None else "three or more" if len(layers) >= 3 else "non-conforming"
            items.append(row | {"status": depth, "detail": "–" if layers is None else ", ".join(layers)})
            pretrained = bool(parts.get("trained_from"))
            items.append(
                {
                    "team": team["name"],
                    "item": f"{modality}: learner",
                    "status": "pre-trained (declared)" if pretrained else "trained here",
                    "detail": parts["declaration"] if pretrained else "–",
                }
            )
    return Table("Submission checklist", pd.DataFrame(items))


def conformance_table(e: Evaluation) -> Table | None:
    """Results of ``assay broad check``; those of a system that has changed since are marked as out of date."""
    checks = Results(e.files.url).read_checks()
    if checks is None or checks.empty:
        return None
    current_hashes = {
        (team["name"], modality): system_hash(parts)[:12]
        for team in e.manifest["teams"]
        for modality, parts in team["parts"].items()
    }
    results = []
    for row in rows(checks):
        checked_hash = row.pop("system")
        current_hash = current_hashes.get((row["team"], row["task"]))
        results.append(row if checked_hash == current_hash else row | {"status": "out of date"})
    notes = {"status": "out of date: source or parameters have changed since it was checked"}
    return Table("Conformance (the plan, §3.2)", pd.DataFrame(results), notes, "conformance.csv")


def system_blocks(e: Evaluation) -> list[Block]:
    """Components, documents and, if it was checked, conformance of the systems."""
    conformance = conformance_table(e)
    return [component_table(e), checklist_table(e), *([] if conformance is None else [conformance])]
