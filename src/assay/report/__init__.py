"""Reports: a run read into one neutral document, and the document written as a page."""

from assay.report import invariance as _invariance
from assay.report import perturbation as _perturbation
from assay.report import straightness as _straightness
from assay.report.content import document
from assay.report.html import html
from assay.store.run import Run

__all__ = ["document", "html", "write_report"]

_ = (_invariance, _perturbation, _straightness)  # imported for the ways of showing that they register


def write_report(run: Run) -> str:
    """Write ``report.html`` into the run; return its path."""
    run.folder.write("report.html", html(document(run)).encode())
    return run.folder.path("report.html")
