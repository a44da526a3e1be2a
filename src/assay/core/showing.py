"""How runs and measures ask the report to show them: the one place where a room asks a room above it.

Imports point down the column of rooms, so that neither a measure nor a run knows the report. People look for plots on
the things that are plotted, though: ``run.plot(…)``. Those methods ask here. The report is found by its name, when it
is first asked, and what it must answer is written down in `Report`. Nothing that is measured may ask here: the code
that is found by name is no part of a cell's fingerprint.
"""

from __future__ import annotations

import importlib
from typing import Any, Protocol, cast

from assay.core.page import Page
from assay.core.plot import Plot

_REPORT = "assay.report"


class Report(Protocol):
    """What the room ``report`` answers to runs and measures."""

    def plot_run(self, run: Any, measure: str) -> Plot:
        """The charts of one measure of a run."""

    def plot_tables(self, measure: Any, tables: Any) -> Plot:
        """The charts of a measure's own tables, one for each subject."""

    def report_page(self, run: Any, path: Any) -> Page:
        """The page of a run, written to a file."""

    def compare_networks(self, run: Any, a: str | None, b: str | None) -> Any:
        """The differences between two networks of a run."""


def the_report() -> Report:
    """The room ``report``, imported when it is first asked for something."""
    return cast(Report, importlib.import_module(_REPORT))
