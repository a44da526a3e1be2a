"""How the results of a measure become a section: its own way, where one is registered, or a plain table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assay.report.document import Table
from assay.runs.manifest import MeasureRecord
from assay.runs.run import Run

MeasureSection = Callable[[str, MeasureRecord, Run], list[Any]]
_ways: dict[str, MeasureSection] = {}


def shows(measure: str) -> Callable[[MeasureSection], MeasureSection]:
    """Register how a measure's results are shown; measures without their own way get a table."""

    def register(section: MeasureSection) -> MeasureSection:
        _ways[measure] = section
        return section

    return register


def section_of(measure: str) -> MeasureSection:
    """The way in which a measure's results are shown, by the name of the measure."""
    return _ways.get(measure, plain_section)


def plain_section(label: str, described: MeasureRecord, run: Run) -> list[Any]:
    """The table of a measure, without its pictures."""
    frame = run.summary(label)
    return [Table(label, frame.drop(columns=[c for c in frame if frame[c].map(lambda v: isinstance(v, bytes)).any()]))]
