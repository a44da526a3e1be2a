"""The report as one neutral document: sections of text, tables and charts, before any format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from assay.store.run import Run


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Items:
    """A list of sentences."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Facts:
    """Names and values."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Table:
    """Columns, rows, and what each column means."""

    caption: str
    frame: pd.DataFrame
    notes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Point:
    """One point of a line: position, value, the ends of its band, and what to say of it."""

    x: float
    y: float
    band: tuple[float, float] | None
    label: str
    detail: str


@dataclass(frozen=True)
class LineChart:
    """One line per subject, a dashed reference, a band around each line."""

    caption: str
    x_label: str
    y_label: str
    lines: tuple[tuple[str, tuple[Point, ...]], ...]
    reference: tuple[str, float] | None = None


@dataclass(frozen=True)
class Pictures:
    """Pictures (PNG), each with a line under it."""

    caption: str
    items: tuple[tuple[bytes, str], ...]


@dataclass(frozen=True)
class Failure:
    """A cell that failed: who, what, why, and the whole traceback."""

    title: str
    reason: str
    traceback: str


@dataclass(frozen=True)
class Section:
    """A heading and what is under it."""

    title: str
    blocks: tuple[Text | Items | Facts | Table | LineChart | Pictures | Failure, ...]


@dataclass(frozen=True)
class Document:
    """A whole report."""

    title: str
    subtitle: str
    status: str
    sections: tuple[Section, ...]
    manifest: dict[str, Any]


MeasureSection = Callable[[str, dict[str, Any], Run], list[Any]]
_measure_sections: dict[str, MeasureSection] = {}


def shows(measure: str) -> Callable[[MeasureSection], MeasureSection]:
    """Register how a measure's results are shown; measures without their own way get a table."""

    def register(section: MeasureSection) -> MeasureSection:
        _measure_sections[measure] = section
        return section

    return register


def document(run: Run) -> Document:
    """What a run asked and found."""
    m = run.manifest
    sections = [_asked(m)]
    for label, described in m["measures"].items():
        show = _measure_sections.get(described["measure"], _plain_section)
        table = run.summary(label)
        blocks = [Text("No cell of this measure is done.")] if table.empty else show(label, described, run)
        sections.append(Section(label, tuple(blocks)))
    if failures := run.failures:
        blocks = [Failure(f"{f.subject} × {f.measure}", f.error or "", f.traceback or "") for f in failures]
        sections.append(Section("Failures", tuple(blocks)))
    done = sum(cell.status == "done" for cell in run.cells)
    asked = len(run.keys)
    status = "complete" if done == asked else f"{asked - done} of {asked} cells not done"
    subtitle = (
        f"{len(m['subjects'])} subjects × {len(m['measures'])} measures, {m['started'][:16].replace('T', ' ')} UTC"
    )
    return Document(f"assay: {run.path.rstrip('/').rpartition('/')[2]}", subtitle, status, tuple(sections), m)


def _asked(m: dict[str, Any]) -> Section:
    subjects = pd.DataFrame(
        [
            {
                "subject": name,
                "network": s["class"],
                "preprocessing": s["preprocess"] or "none: pixels in [0, 1]",
                "precision": s["dtype"],
                "device": s["device"],
                "weights and code": s["fingerprint"][:12],
            }
            for name, s in m["subjects"].items()
        ]
    )
    blocks: list[Any] = [Table("Subjects", subjects)]
    for label, d in m["measures"].items():
        rows = [("measure", d["measure"])]
        for name, value in d["settings"].items():
            shown = value["is"] if isinstance(value, dict) and "is" in value else str(value)
            rows.append((name, shown + ("" if name in d["given"] else " (default)")))
        blocks.append(Facts((("", label), *rows)))
    return Section("What was asked", tuple(blocks))


def _plain_section(label: str, described: dict[str, Any], run: Run) -> list[Any]:
    frame = run.summary(label)
    return [Table(label, frame.drop(columns=[c for c in frame if frame[c].map(lambda v: isinstance(v, bytes)).any()]))]
