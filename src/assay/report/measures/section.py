"""How the results of a measure become a section: by the function registered for it, or else as a plain table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assay.report.document import Table
from assay.runs.manifest import MeasureRecord
from assay.runs.tables import Tables

MeasureSection = Callable[[str, MeasureRecord, Tables], list[Any]]
_section_functions: dict[str, MeasureSection] = {}


def shows(measure: str) -> Callable[[MeasureSection], MeasureSection]:
    """Register the function that shows a measure's results; a measure without one gets a plain table."""

    def register(section: MeasureSection) -> MeasureSection:
        _section_functions[measure] = section
        return section

    return register


def section_of(measure: str) -> MeasureSection:
    """The function that shows the results of a measure, by the measure's name."""
    return _section_functions.get(measure, plain_section)


def plain_section(label: str, record: MeasureRecord, tables: Tables) -> list[Any]:
    """Show the table of a measure, without its pictures."""
    frame = tables.summary(label)
    return [Table(label, frame.drop(columns=[c for c in frame if frame[c].map(lambda v: isinstance(v, bytes)).any()]))]
