"""A run as a document: its subjects and settings, the results of each measure, and what failed."""

from __future__ import annotations

from typing import Any

import pandas as pd

from assay.plans.examination_record import ExaminationRecord
from assay.report.document import Document, Facts, Failure, Items, Section, Table, Text
from assay.report.first_screen import first_screen
from assay.report.measures import section_of
from assay.report.profiles import profiles
from assay.runs.manifest import Manifest
from assay.runs.run import Run

MOST_OPEN = 2  # sections of more measures than this are folded


def document(run: Run) -> Document:
    """Read a run into a document: its subjects and settings, the results of each measure, and what failed."""
    m = run.manifest
    top = [*first_screen(run), *profiles(run)]
    sections = [Section("To be looked at first", (Items(tuple(m.notes)),))] if m.notes else []
    sections += [Section("At a glance", tuple(top))] if top else []
    fold = bool(top) and len(m.measures) > MOST_OPEN
    for label, record in m.measures.items():
        show = section_of(record.measure)
        table = run.summary(label)
        blocks = [Text("No cell of this measure is done.")] if table.empty else show(label, record, run)
        sections.append(Section(label, tuple(blocks), folded=fold))
    if sentences := ExaminationRecord.read(run.folder).sentences:
        sections.append(Section("Left out or shown with less, for want of time", (Items(tuple(sentences)),)))
    if failures := run.failures:
        blocks = [Failure(f"{f.subject} × {f.measure}", f.error or "", f.traceback or "") for f in failures]
        sections.append(Section("Failures", tuple(blocks)))
    sections.append(_settings_section(m))
    done = run.done
    planned = len(run.keys)
    status = "complete" if done == planned else f"{planned - done} of {planned} cells not done"
    asked = f"{_count(len(m.subjects), 'network')} × {_count(len(m.measures), 'measure')}"
    subtitle = f"{asked}, {m.started[:16].replace('T', ' ')} UTC"
    return Document(f"assay: {run.path.rstrip('/').rpartition('/')[2]}", subtitle, status, tuple(sections), m.to_json())


def _count(number: int, of: str) -> str:
    return f"{number} {of}{'' if number == 1 else 's'}"


def _settings_section(m: Manifest) -> Section:
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
    for label, record in m.measures.items():
        rows = [("measure", record.measure)]
        for name, value in record.settings.items():
            rows.append((name, _setting_text(value) + ("" if name in record.given else " (default)")))
        blocks.append(Facts((("", label), *rows)))
    return Section("What was asked", tuple(blocks), folded=True)


def _setting_text(value: Any) -> str:
    """Write a setting for readers; an object that describes itself (``is``) by its description."""
    if isinstance(value, list):
        return ", ".join(map(_setting_text, value))
    return str(value["is"] if isinstance(value, dict) and "is" in value else value)
