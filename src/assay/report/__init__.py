"""Reports: a run read into one neutral document, and the document written as a page."""

from pathlib import Path

from assay.core.page import Page
from assay.report.html import html, write_page
from assay.report.pair import compare_networks
from assay.report.plots import plot_run, plot_tables
from assay.report.run import document
from assay.report.study import is_study, study_document
from assay.runs.run import Run

__all__ = ["compare_networks", "document", "html", "plot_run", "plot_tables", "report_page", "write_report"]


def write_report(run: Run) -> str:
    """Write ``report.html``, the page of a run or of a study, into the run's folder; return its path."""
    return report_page(run).path


def report_page(run: Run, path: str | Path | None = None) -> Page:
    """Write the page of a run or of a study, and return it.

    Args:
        run: The run.
        path: The file to write, or any URL that fsspec can write to; by default ``report.html`` in the run's folder.
    """
    return write_page(html(study_document(run) if is_study(run) else document(run)), run.folder, path)
