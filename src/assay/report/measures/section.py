"""How the results of a measure become a section: by the function registered for it, or else by its own table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assay.report.many import readable
from assay.report.measures.plain import plain_section
from assay.runs.manifest import MeasureRecord
from assay.runs.tables import Tables

MeasureSection = Callable[[str, MeasureRecord, Tables], list[Any]]
_section_functions: dict[str, MeasureSection] = {}


def shows(measure: str) -> Callable[[MeasureSection], MeasureSection]:
    """Register the function that shows a measure's results; a measure without one gets a `plain_section`."""

    def register(section: MeasureSection) -> MeasureSection:
        _section_functions[measure] = section
        return section

    return register


def section_of(measure: str) -> MeasureSection:
    """The function that shows the results of a measure, by its name; of many networks, how they are spread."""
    show = _section_functions.get(measure, plain_section)

    def section(label: str, record: MeasureRecord, tables: Tables) -> list[Any]:
        return [readable(block) for block in show(label, record, tables)]

    return section
