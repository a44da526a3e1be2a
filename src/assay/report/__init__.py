"""Reports: a run read into one neutral document, and the document written as a page."""

from assay.report.html import html
from assay.report.run import document
from assay.report.study import is_study, study_document
from assay.runs.run import Run

__all__ = ["document", "html", "write_report"]


def write_report(run: Run) -> str:
    """Write ``report.html``, the page of a run or of a study, into the run's folder; return its path."""
    page = html(study_document(run) if is_study(run) else document(run))
    run.folder.write("report.html", page.encode())
    return run.folder.path("report.html")
