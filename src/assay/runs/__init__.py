"""Runs on disk: manifest, cells (atomic, keyed by content), tables."""

from assay.runs.cells import CellInfo, CellKey
from assay.runs.run import Run

__all__ = ["CellInfo", "CellKey", "Run"]
