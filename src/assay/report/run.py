"""A run read into a document: what was asked, what each measure found, and what failed."""

from __future__ import annotations

from typing import Any

import pandas as pd

from assay.report.document import Document, Facts, Failure, Section, Table, Text
from assay.report.measures import section_of
from assay.runs.manifest import Manifest
from assay.runs.run import Run


def document(run: Run) -> Document:
    """What a run asked and found."""
    m = run.manifest
    sections = [_asked(m)]
    for label, described in m.measures.items():
        show = section_of(described.measure)
        table = run.summary(label)
        blocks = [Text("No cell of this measure is done.")] if table.empty else show(label, described, run)
        sections.append(Section(label, tuple(blocks)))
    if failures := run.failures:
        blocks = [Failure(f"{f.subject} × {f.measure}", f.error or "", f.traceback or "") for f in failures]
        sections.append(Section("Failures", tuple(blocks)))
    done = run.done
    asked = len(run.keys)
    status = "complete" if done == asked else f"{asked - done} of {asked} cells not done"
    subtitle = f"{len(m.subjects)} subjects × {len(m.measures)} measures, {m.started[:16].replace('T', ' ')} UTC"
    return Document(f"assay: {run.path.rstrip('/').rpartition('/')[2]}", subtitle, status, tuple(sections), m.to_json())


def _asked(m: Manifest) -> Section:
    subjects = pd.DataFrame(
        [
            {
                "subject": name,
                "network": s.network,
                "preprocessing": s.preprocess or "none: pixels in [0, 1]",
                "precision": s.dtype,
                "device": s.device,
                "weights and code": s.fingerprint[:12],
            }
            for name, s in m.subjects.items()
        ]
    )
    blocks: list[Any] = [Table("Subjects", subjects)]
    for label, d in m.measures.items():
        rows = [("measure", d.measure)]
        for name, value in d.settings.items():
            rows.append((name, _said(value) + ("" if name in d.given else " (default)")))
        blocks.append(Facts((("", label), *rows)))
    return Section("What was asked", tuple(blocks))


def _said(value: Any) -> str:
    """A setting as people read it; of a thing what it says of itself."""
    if isinstance(value, list):
        return ", ".join(map(_said, value))
    return str(value["is"] if isinstance(value, dict) and "is" in value else value)
