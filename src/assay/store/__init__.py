"""Runs on disk: manifest, cells (atomic, keyed by content), tables."""

from assay.store.cells import CellInfo, CellKey
from assay.store.run import Run

__all__ = ["CellInfo", "CellKey", "Run"]
